"""The same minimiser by another way: SciPy's SLSQP in q itself, from several starts.

Slower and less exact than `minimise`, and sharing nothing with it but the problem: that is its use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focalcal.theory.potential import phi, phi_slope

if TYPE_CHECKING:
    from jaxtyping import Float

_SMALLEST = 1e-14  # phi is infinite at 0: SLSQP stays this far away


def slsqp(eta: Float[np.ndarray, " k"], *, gamma: float, lam: float, restarts: bool = True) -> Float[np.ndarray, " k"]:
    """argmin over the simplex of sum_k eta_k phi(q_k) + lam |q - eta|^2, for one eta with every eta_k > 0.

    Starts at eta and, with `restarts`, also at the uniform distribution and half-way; the lowest value wins.
    """
    from scipy.optimize import minimize

    starts = [eta, np.full_like(eta, 1 / len(eta)), (eta + 1 / len(eta)) / 2][: 3 if restarts else 1]
    results = [
        minimize(
            lambda q: (eta * phi(np.clip(q, 0, 1), gamma)).sum() + lam * ((q - eta) ** 2).sum(),
            start,
            jac=lambda q: eta * phi_slope(np.clip(q, 0, 1), gamma) + 2 * lam * (q - eta),
            method="SLSQP",
            bounds=[(_SMALLEST, 1.0)] * len(eta),
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like},
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        for start in starts
    ]
    return np.asarray(min(results, key=lambda result: result.fun).x)


def stationarity_of(q: Float[np.ndarray, " k"], eta: Float[np.ndarray, " k"], *, gamma: float, lam: float) -> float:
    """The stationarity figure of `Solution` for any q, with the multiplier that suits it best on average."""
    focal, anchor = eta * phi_slope(q, gamma), 2 * lam * (q - eta)
    multiplier = (focal + anchor).mean()
    return float((np.abs(focal + anchor - multiplier) / (np.abs(focal) + np.abs(anchor) + abs(multiplier))).max())
