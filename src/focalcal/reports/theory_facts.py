"""All that the theory says about one posterior at one gamma and lam, gathered."""

from __future__ import annotations

from dataclasses import dataclass
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
from focalcal.theory.minimiser import Solution, minimise
from focalcal.theory.posteriors import distributions
from focalcal.theory.sharp_bounds import slope_bound

if TYPE_CHECKING:
    from jaxtyping import Float

_BOUND_NAMES = {
    "slope": "bound: slope at the posterior",
    "global": "bound: global",
    "entropy": "bound: entropy",
    "log_classes": "bound: log classes",
    "interior": "bound: interior",
    "interior_from_lam": "lam from which the interior holds",
}


@dataclass(frozen=True)
class PosteriorFacts:
    """q* for one posterior (K,), with what bounds and predicts its displacement; None is what lam = 0 does not have."""

    eta: Float[np.ndarray, " k"]
    gamma: float
    lam: float
    solution: Solution
    bounds: dict[str, float] | None
    first_order: Float[np.ndarray, " k"] | None
    pre_asymptotic: Float[np.ndarray, " k"]
    decision_kept: bool

    def classes(self) -> Table:
        """A row for each class."""
        columns: dict[str, Any] = {
            "class": np.arange(1, len(self.eta) + 1),
            "eta": self.eta,
            "q*": self.solution.q,
            "q* - eta": self.solution.displacement,
        }
        if self.first_order is not None:
            columns["first order"] = self.first_order
        return Table(columns | {"one Newton step": self.pre_asymptotic}, digits=4)

    def figures(self) -> Table:
        """A row for each number that is not about one class."""
        solution = self.solution
        rows = {
            "distortion |q* - eta|_2": number(_norm(solution.displacement), digits=4),
            "distortion |q* - eta|_inf": number(np.abs(solution.displacement).max(), digits=4),
            **{_BOUND_NAMES[name]: _promise(value) for name, value in (self.bounds or {}).items()},
            "predicted |.|_2: first order": "-"
            if self.first_order is None
            else number(_norm(self.first_order), digits=4),
            "predicted |.|_2: one Newton step": number(_norm(self.pre_asymptotic), digits=4),
            "decision kept": "yes" if self.decision_kept else "no",
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
            "multiplier": float(solution.multiplier),
            "stationarity": float(solution.stationarity),
            "feasibility": float(solution.feasibility),
            "steps": int(solution.steps),
            "status": str(solution.status),
        }


def posterior_facts(eta: Any, *, gamma: float, lam: float) -> PosteriorFacts:
    """The facts about eta (K,); a solve that did not converge raises."""
    solution = minimise(eta, gamma=gamma, lam=lam)
    solution.unwrap()
    return PosteriorFacts(
        eta=distributions("eta", eta),
        gamma=float(gamma),
        lam=float(lam),
        solution=solution,
        bounds=posterior_bounds(eta, gamma=gamma, lam=lam) if lam > 0 else None,
        first_order=first_order_bias(eta, gamma=gamma, lam=lam) if lam > 0 else None,
        pre_asymptotic=pre_asymptotic_bias(eta, gamma=gamma, lam=lam),
        decision_kept=bool(keeps_decision(eta, gamma=gamma, lam=lam)),
    )


def posterior_bounds(eta: Any, *, gamma: float, lam: float) -> dict[str, float]:
    """The bounds on |q* - eta|_2 by name, and the lam from which on the interior one holds."""
    return {
        "slope": float(slope_bound(eta, gamma=gamma, lam=lam)),
        "global": float(global_bound(eta, gamma=gamma, lam=lam)),
        "entropy": float(entropy_bound(eta, lam=lam)),
        "log_classes": float(log_classes_bound(len(eta), lam=lam)),
        "interior": float(interior_bound(eta, gamma=gamma, lam=lam)),
        "interior_from_lam": float(interior_threshold(eta, gamma=gamma)),
    }


def _norm(values: np.ndarray) -> float:
    return float(np.linalg.norm(values))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _promise(value: float) -> str:
    return number(value, digits=4) if np.isfinite(value) else "none at this lam"
