"""What the theory says about posteriors at one gamma and lam, and a population of them, gathered for a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.theory.bias import first_order_bias, pre_asymptotic_bias
from focalcal.theory.bounds import (
    entropy_bound,
    global_bound,
    interior_bound,
    interior_threshold,
    log_classes_bound,
    slope_bound,
)
from focalcal.theory.calibration import (
    CalibrationBounds,
    CalibrationChain,
    EceChain,
    ScoreDecomposition,
    calibration_bounds,
    calibration_chain,
    ece_chain,
    expected_brier,
    murphy_population,
)
from focalcal.theory.consistency import same_decision
from focalcal.theory.minimiser import Solution, SolverError, minimise, minimise_l1
from focalcal.theory.population import SAME_CONFIDENCE, mean, top_label
from focalcal.theory.posteriors import distributions

if TYPE_CHECKING:
    from jaxtyping import Float

ANCHORS = ("l2", "l1")


@dataclass(frozen=True)
class PosteriorFacts:
    """q* for one posterior (K,), with what bounds and predicts its displacement; None is what there is no theory of:
    bounds and first order at lam = 0, and all three for the absolute anchor, "l1".

    `tie`: the posterior has no single largest class, so that there is no one decision to keep.
    """

    eta: Float[np.ndarray, " k"]
    gamma: float
    lam: float
    anchor: str
    solution: Solution
    bounds: dict[str, float] | None
    first_order: Float[np.ndarray, " k"] | None
    pre_asymptotic: Float[np.ndarray, " k"] | None
    decision_kept: bool
    tie: bool

    @property
    def distortion_l2(self) -> float:
        """|q* - eta|_2."""
        return float(np.linalg.norm(self.solution.displacement))

    @property
    def distortion_inf(self) -> float:
        """|q* - eta|_inf."""
        return float(np.abs(self.solution.displacement).max())

    def record(self) -> dict[str, Any]:
        """For JSON: lists and numbers, None for infinity."""
        solution = self.solution
        return {
            "eta": self.eta.tolist(),
            "gamma": self.gamma,
            "lam": self.lam,
            "anchor": self.anchor,
            "q": solution.q.tolist(),
            "displacement": solution.displacement.tolist(),
            "distortion_l2": self.distortion_l2,
            "distortion_inf": self.distortion_inf,
            "bounds": self.bounds and {n: value if np.isfinite(value) else None for n, value in self.bounds.items()},
            "first_order_bias": None if self.first_order is None else self.first_order.tolist(),
            "pre_asymptotic_bias": None if self.pre_asymptotic is None else self.pre_asymptotic.tolist(),
            "decision_kept": self.decision_kept,
            "tie": self.tie,
            "multiplier": float(solution.multiplier),
            "stationarity": float(solution.stationarity),
            "feasibility": float(solution.feasibility),
            "steps": int(solution.steps),
            "status": str(solution.status),
        }


def posterior_facts(
    etas: Any,
    *,
    gamma: float,
    lam: float,
    anchor: str = "l2",
    place: Callable[[int], str] = lambda row: f"posterior {row + 1}: ",
) -> list[PosteriorFacts]:
    """The facts about each row of etas (N, K), solved together; one that did not converge raises with its place.

    `anchor` is "l2", the Brier score, or "l1", |q - e_y|_1.
    """
    if anchor not in ANCHORS:
        raise ValueError(f"anchor must be one of {', '.join(map(repr, ANCHORS))}, got {anchor!r}")
    rows = distributions("eta", etas)  # the others divide by the sums themselves, which twice is not the same
    solution = (minimise if anchor == "l2" else minimise_l1)(etas, gamma=gamma, lam=lam)
    failed = np.flatnonzero(~solution.converged)
    if len(failed):
        row = int(failed[0])
        raise SolverError(f"{place(row)}{solution.status[row]}; stationarity {solution.stationarity[row]:.2g}")
    known, none = anchor == "l2", [None] * len(rows)
    bounds = posterior_bounds(etas, gamma=gamma, lam=lam) if known and lam > 0 else none
    first = first_order_bias(etas, gamma=gamma, lam=lam) if known and lam > 0 else none
    newton = pre_asymptotic_bias(etas, gamma=gamma, lam=lam) if known else none
    kept = same_decision(rows, solution.q, np.full(len(rows), float(gamma)))
    return [
        PosteriorFacts(
            eta=eta,
            gamma=float(gamma),
            lam=float(lam),
            anchor=anchor,
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


@dataclass(frozen=True)
class PopulationFacts:
    """Expectations over the states: S the confidence, Z whether the predicted class is the true one.

    gamma and lam are those that q* was solved at, None for predictions that were given; so are the bounds, which also
    want lam > 0.
    """

    states: int
    classes: int
    gamma: float | None
    lam: float | None
    n_bins: int
    confidence: float
    accuracy: float
    chain: CalibrationChain
    ece: EceChain
    murphy: ScoreDecomposition
    brier: float
    bounds: CalibrationBounds | None

    def record(self) -> dict[str, Any]:
        """For JSON, where the chain's `cal2` is also what the best map of the confidence can gain."""
        return asdict(self)


def population_facts(
    eta: Any,
    weights: Any = None,
    *,
    probs: Any = None,
    gamma: float | None = None,
    lam: float | None = None,
    n_bins: int = 15,
    tolerance: float = SAME_CONFIDENCE,
) -> PopulationFacts:
    """The facts about predictions (N, K) of the states with posteriors eta (N, K), or about q* at gamma and lam.

    Either `probs` or both gamma and lam are given. States whose confidences are within `tolerance` count as equal.
    """
    if (probs is None) == (gamma is None or lam is None) or (gamma is None) != (lam is None):
        raise ValueError(
            f"either probs or both gamma and lam must be given, got probs {'left out' if probs is None else 'given'}, "
            f"gamma = {gamma} and lam = {lam}; predictions have no gamma, and without them q* is solved for"
        )
    displacement = bounds = None
    if gamma is not None and lam is not None:
        solution = minimise(eta, gamma=gamma, lam=lam)
        probs, displacement = solution.unwrap(), solution.displacement
        bounds = calibration_bounds(eta, weights, gamma=gamma, lam=lam) if lam > 0 else None
    given: dict[str, Any] = {"displacement": displacement}
    top = top_label(probs, eta, weights, displacement)
    return PopulationFacts(
        states=len(np.asarray(eta)),
        classes=top.eta.shape[1],
        gamma=gamma,
        lam=lam,
        n_bins=n_bins,
        confidence=mean(top.weight, top.confidence),
        accuracy=mean(top.weight, top.accuracy),
        chain=calibration_chain(probs, eta, weights, tolerance=tolerance, **given),
        ece=ece_chain(probs, eta, weights, n_bins=n_bins, **given),
        murphy=murphy_population(probs, eta, weights, tolerance=tolerance, **given),
        brier=expected_brier(probs, eta, weights, **given),
        bounds=bounds,
    )
