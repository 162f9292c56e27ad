"""What Focal Calibration Loss does to a posterior, how to undo it, and which lam keeps it small.

python examples/distortion.py
"""

import numpy as np

from focalcal import theory


def main() -> None:
    eta = np.array([0.7, 0.2, 0.1])
    print(f"the true posterior          {eta}")
    for lam in (0.0, 1.0, 10.0, 100.0):
        solution = theory.minimise(eta, gamma=3.0, lam=lam)
        recovered = theory.recover(solution.q, gamma=3.0, lam=lam)
        assert np.allclose(recovered, eta, atol=1e-12)
        distance = np.linalg.norm(solution.displacement)
        bound = theory.slope_bound(eta, gamma=3.0, lam=lam) if lam else np.inf
        print(f"trained with lam = {lam:<6g} q* = {solution.q.round(4)}   |q* - eta| = {distance:.4f} <= {bound:.4f}")
    print(f"lam that keeps it within 0.01 here:         {theory.lam_for(0.01, eta, gamma=3.0):.1f}")
    print(f"lam that keeps it within 0.01 everywhere:   {theory.lam_for(0.01, classes=3, gamma=3.0):.1f}")


if __name__ == "__main__":
    main()
