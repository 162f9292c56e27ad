"""How exact are the two closed forms of the bias q* - eta, and how loose are the bounds on its norm?

    python benchmarks/theory_bias.py

The tables of docs/math/pre_asymptotic_bias.md and docs/math/sharp_bounds.md. Posteriors are flat Dirichlet with
eta_min >= 1e-4, 200 for each number of classes. The error of a form is |form - exact|_2 / |exact|_2, the exact q* being
the solver's.
"""

from __future__ import annotations

import numpy as np

from focalcal.theory.bias import first_order_bias, pre_asymptotic_bias
from focalcal.theory.bounds import (
    global_bound,
    interior_constant,
    interior_threshold,
    simplex_bound,
    simplex_constant,
    slope_bound,
)
from focalcal.theory.minimiser import minimise

COUNT, SMALLEST = 200, 1e-4
LAMS = (1.0, 10.0, 100.0, 1000.0)


def flat_posteriors(classes: int, generator: np.random.Generator) -> np.ndarray:
    kept = np.empty((0, classes))
    while len(kept) < COUNT:
        drawn = generator.dirichlet(np.ones(classes), size=COUNT)
        kept = np.concatenate([kept, drawn[drawn.min(-1) >= SMALLEST]])
    return kept[:COUNT]


def exact_bias(eta: np.ndarray, gamma: float, lam: float) -> np.ndarray:
    solution = minimise(eta, gamma=gamma, lam=lam)
    solution.unwrap()
    return solution.displacement


def relative(error: float) -> str:
    return f"{error:.2g}" if error < 100 else f"{error:.0f}"


def errors(posteriors: dict[int, np.ndarray]) -> None:
    for title, of_all in (("median", np.median), ("worst", np.max)):
        print(f"\n{title} relative error: first order / Newton step\n")
        print("| K | gamma |" + "".join(f" lam = {lam:g} |" for lam in LAMS))
        print("|---:|---:|" + "---:|" * len(LAMS))
        for classes, eta in posteriors.items():
            for gamma in (1.0, 3.0, 5.0):
                cells = ""
                for lam in LAMS:
                    exact = exact_bias(eta, gamma, lam)
                    forms = (form(eta, gamma=gamma, lam=lam) for form in (first_order_bias, pre_asymptotic_bias))
                    misses = (np.linalg.norm(form - exact, axis=-1) / np.linalg.norm(exact, axis=-1) for form in forms)
                    cells += " " + " / ".join(relative(float(of_all(miss))) for miss in misses) + " |"
                print(f"| {classes} | {gamma:g} |{cells}")


def bounds(posteriors: dict[int, np.ndarray], gamma: float) -> None:
    print(f"\n|q* - eta|_2 and what bounds it, gamma = {gamma:g}: the largest of the same posteriors")
    print("(interior: 2 A sqrt(K) / lam, and for how many of them lam reaches its threshold)\n")
    print("| K | lam | exact | slope | simplex | global | interior | applies to |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for classes, eta in posteriors.items():
        for lam in LAMS:
            values = [
                np.linalg.norm(exact_bias(eta, gamma, lam), axis=-1).max(),
                slope_bound(eta, gamma=gamma, lam=lam).max(),
                simplex_bound(gamma=gamma, lam=lam),
                global_bound(eta, gamma=gamma, lam=lam).max(),
                2 * interior_constant(gamma) * np.sqrt(classes) / lam,
            ]
            reached = int((lam >= interior_threshold(eta, gamma=gamma)).sum())
            print(f"| {classes} | {lam:g} |" + "".join(f" {v:.2g} |" for v in values) + f" {reached} of {COUNT} |")


def main() -> None:
    generator = np.random.default_rng(0)
    posteriors = {classes: flat_posteriors(classes, generator) for classes in (3, 10, 100)}
    errors(posteriors)
    bounds(posteriors, gamma=3.0)
    print("\nB:", ", ".join(f"{simplex_constant(gamma):.4g} (gamma = {gamma:g})" for gamma in (0.5, 1, 2, 3, 5, 10)))


if __name__ == "__main__":
    main()
