"""All that the theory says about posteriors at one gamma and lam, gathered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.reports.tables import Table, number
from focalcal.theory.bias import first_order_bias, pre_asymptotic_bias
from focalcal.theory.bounds import (
    entropy_bound,
    global_bound,
    interior_bound,
    interior_threshold,
    log_classes_bound,
)
from focalcal.theory.consistency import keeps_decision
from focalcal.theory.minimiser import Solution, SolverError, minimise
from focalcal.theory.posteriors import distributions
from focalcal.theory.sharp_bounds import slope_bound

if TYPE_CHECKING:
    from jaxtyping import Float

_BOUND_NAMES = {
    "slope": "slope at the posterior",
    "global": "global",
    "entropy": "entropy",
    "log_classes": "log classes",
    "interior": "interior",
}
FIRST_ORDER, NEWTON = "q* - eta, first order", "q* - eta, one Newton step"


@dataclass(frozen=True)
class PosteriorFacts:
    """q* for one posterior (K,), with what bounds and predicts its displacement; None is what lam = 0 does not have.

    `tie`: the posterior has no single largest class, so that there is no one decision to keep.
    """

    eta: Float[np.ndarray, " k"]
    gamma: float
    lam: float
    solution: Solution
    bounds: dict[str, float] | None
    first_order: Float[np.ndarray, " k"] | None
    pre_asymptotic: Float[np.ndarray, " k"]
    decision_kept: bool
    tie: bool

    def classes(self) -> Table:
        """A row for each class."""
        columns: dict[str, Any] = {
            "class": np.arange(1, len(self.eta) + 1),
            "eta": self.eta,
            "q*": self.solution.q,
            "q* - eta": self.solution.displacement,
        }
        if self.first_order is not None:
            columns[FIRST_ORDER] = self.first_order
        return Table(columns | {NEWTON: self.pre_asymptotic}, digits=4)

    def figures(self) -> Table:
        """A row for each number that is not about one class."""
        solution = self.solution
        rows = {
            "distortion |q* - eta|_2": number(_norm(solution.displacement), digits=4),
            "distortion |q* - eta|_inf": number(np.abs(solution.displacement).max(), digits=4),
            **{f"bound: {name}": text for name, text in bound_texts(self.bounds or {}).items()},
            "predicted |.|_2: first order": "-"
            if self.first_order is None
            else number(_norm(self.first_order), digits=4),
            "predicted |.|_2: one Newton step": number(_norm(self.pre_asymptotic), digits=4),
            "decision kept": "tie: no single largest class" if self.tie else "yes" if self.decision_kept else "no",
            "multiplier": number(float(solution.multiplier), digits=4),
            "stationarity": number(float(solution.stationarity)),
            "feasibility": number(float(solution.feasibility)),
            "steps": str(solution.steps),
            "status": str(solution.status),
        }
        return Table({"figure": list(rows), "value": list(rows.values())})

    def record(self) -> dict[str, Any]:
        """The same for JSON: lists and numbers, None for infinity."""
        solution = self.solution
        return {
            "eta": self.eta.tolist(),
            "gamma": self.gamma,
            "lam": self.lam,
            "q": solution.q.tolist(),
            "displacement": solution.displacement.tolist(),
            "distortion_l2": _norm(solution.displacement),
            "distortion_inf": float(np.abs(solution.displacement).max()),
            "bounds": None if self.bounds is None else {name: _finite(value) for name, value in self.bounds.items()},
            "first_order_bias": None if self.first_order is None else self.first_order.tolist(),
            "pre_asymptotic_bias": self.pre_asymptotic.tolist(),
            "decision_kept": self.decision_kept,
            "tie": self.tie,
            "multiplier": float(solution.multiplier),
            "stationarity": float(solution.stationarity),
            "feasibility": float(solution.feasibility),
            "steps": int(solution.steps),
            "status": str(solution.status),
        }


def posterior_facts(
    etas: Any, *, gamma: float, lam: float, place: Callable[[int], str] = lambda row: f"posterior {row + 1}: "
) -> list[PosteriorFacts]:
    """The facts about each row of etas (N, K), solved together; one that did not converge raises with its place."""
    rows = distributions("eta", etas)  # the others divide by the sums themselves, which twice is not the same
    solution = minimise(etas, gamma=gamma, lam=lam)
    failed = np.flatnonzero(~solution.converged)
    if len(failed):
        row = int(failed[0])
        raise SolverError(f"{place(row)}{solution.status[row]}; stationarity {solution.stationarity[row]:.2g}")
    bounds = posterior_bounds(etas, gamma=gamma, lam=lam) if lam > 0 else [None] * len(rows)
    first = first_order_bias(etas, gamma=gamma, lam=lam) if lam > 0 else [None] * len(rows)
    newton, kept = (f(etas, gamma=gamma, lam=lam) for f in (pre_asymptotic_bias, keeps_decision))
    return [
        PosteriorFacts(
            eta=eta,
            gamma=float(gamma),
            lam=float(lam),
            solution=Solution(**{part.name: getattr(solution, part.name)[i] for part in fields(Solution)}),
            bounds=bounds[i],
            first_order=first[i],
            pre_asymptotic=newton[i],
            decision_kept=bool(kept[i]),
            tie=int((eta == eta.max()).sum()) > 1,
        )
        for i, eta in enumerate(rows)
    ]


def posterior_bounds(etas: Any, *, gamma: float, lam: float) -> list[dict[str, float]]:
    """For each row of etas (N, K), the bounds on |q* - eta|_2 by name, and the lam from which the interior holds."""
    count, classes = distributions("eta", etas).shape
    columns = {
        "slope": slope_bound(etas, gamma=gamma, lam=lam),
        "global": global_bound(etas, gamma=gamma, lam=lam),
        "entropy": entropy_bound(etas, lam=lam),
        "log_classes": np.full(count, log_classes_bound(classes, lam=lam)),
        "interior": interior_bound(etas, gamma=gamma, lam=lam),
        "interior_from_lam": interior_threshold(etas, gamma=gamma),
    }
    return [{name: float(values[i]) for name, values in columns.items()} for i in range(count)]


def bound_texts(bounds: Mapping[str, float]) -> dict[str, str]:
    """One posterior's bounds as they are printed, by what they are called."""

    def text(name: str) -> str:
        if np.isfinite(bounds[name]):
            return number(bounds[name], digits=4)
        return f"none below lam = {number(bounds['interior_from_lam'], digits=4)}" if name == "interior" else "none"

    return {title: text(name) for name, title in _BOUND_NAMES.items() if name in bounds}


def _norm(values: np.ndarray) -> float:
    return float(np.linalg.norm(values))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
