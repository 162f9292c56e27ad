"""Tables of what the theory says about posteriors, gradients and populations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.pages.tables import Table, number

if TYPE_CHECKING:
    from focalcal.theory.calibration import CalibrationBounds
    from focalcal.theory.facts import PopulationFacts, PosteriorFacts
    from focalcal.theory.gradients import GradientFacts

_BOUND_NAMES = {
    "slope": "slope at the posterior",
    "global": "global",
    "entropy": "entropy",
    "log_classes": "log classes",
    "interior": "interior",
}
_POPULATION_BOUNDS = {
    "slope": "slope at the posteriors",
    "simplex": "all posteriors",
    "potential": "focal potential",
    "log_classes": "log classes",
    "interior": "interior",
}
_PART_NAMES = {"focal": "focal", "l2": "l2 anchor", "l1": "l1 anchor", "ce": "cross-entropy"}
FIRST_ORDER, NEWTON = "q* - eta, first order", "q* - eta, Newton step"


def class_table(facts: PosteriorFacts) -> Table:
    """One row per class."""
    columns: dict[str, Any] = {
        "class": np.arange(1, len(facts.eta) + 1),
        "eta": facts.eta,
        "q*": facts.solution.q,
        "q* - eta": facts.solution.displacement,
    }
    predicted = {FIRST_ORDER: facts.first_order, NEWTON: facts.pre_asymptotic}
    return Table(columns | {name: bias for name, bias in predicted.items() if bias is not None}, digits=4)


def posterior_table(facts: PosteriorFacts) -> Table:
    """One row per number that is not about one class."""
    solution = facts.solution
    rows = {
        "distortion |q* - eta|_2": number(facts.distortion_l2, digits=4),
        "distortion |q* - eta|_inf": number(facts.distortion_inf, digits=4),
        **{f"bound: {name}": text for name, text in bound_texts(facts.bounds or {}).items()},
        **{
            f"predicted |.|_2: {name}": number(float(np.linalg.norm(bias)), digits=4)
            for name, bias in (("first order", facts.first_order), ("one Newton step", facts.pre_asymptotic))
            if bias is not None
        },
        "decision kept": "tie: no single largest class" if facts.tie else "yes" if facts.decision_kept else "no",
        "multiplier": number(float(solution.multiplier), digits=4),
        "stationarity": number(float(solution.stationarity)),
        "feasibility": number(float(solution.feasibility)),
        "steps": str(solution.steps),
        "status": str(solution.status),
    }
    return Table({"figure": list(rows), "value": list(rows.values())})


def bound_texts(bounds: Mapping[str, float]) -> dict[str, str]:
    """One posterior's bounds as they are printed, by what they are called."""

    def text(name: str) -> str:
        if np.isfinite(bounds[name]):
            return number(bounds[name], digits=4)
        return f"none below lam = {number(bounds['interior_from_lam'], digits=4)}" if name == "interior" else "none"

    return {title: text(name) for name, title in _BOUND_NAMES.items() if name in bounds}


def gradient_table(facts: GradientFacts) -> Table:
    """One row per eps."""
    parts = {title: getattr(facts.gradients, name) for name, title in _PART_NAMES.items()}
    return Table({"eps": facts.eps, **parts, "anchor's share": facts.share}, digits=4)


def exponent_table(facts: GradientFacts) -> Table:
    """One row per part: the fitted exponent, and its limit."""
    limits = {"focal": facts.gamma + 1, "l2": 2.0, "l1": 1.0, "ce": 1.0}
    return Table(
        {
            "gradient": list(_PART_NAMES.values()),
            "exponent of eps": [getattr(facts.exponents, name) for name in _PART_NAMES],
            "limit": [limits[name] for name in _PART_NAMES],
        },
        digits=4,
    )


def population_table(facts: PopulationFacts) -> Table:
    """One row per number."""
    rows = {
        "mean confidence E[S]": facts.confidence,
        "accuracy E[Z]": facts.accuracy,
        "Cal2^2 = E(S - E[Z|S])^2": facts.chain.cal2,
        "  <= E(S - eta_yhat)^2": facts.chain.confidence_error,
        "  <= E|q - eta|_2^2": facts.chain.posterior_error,
        f"population ECE, {facts.n_bins} bins": facts.ece.ece,
        "  <= E|S - eta_yhat|": facts.ece.confidence_distance,
        "  <= E|q - eta|_2": facts.ece.posterior_distance,
        "Brier score of the confidence E(Z - S)^2": facts.murphy.brier,
        "  = calibration (Cal2^2)": facts.murphy.calibration,
        "  + refinement": facts.murphy.refinement,
        "Brier score E|q - e_Y|_2^2": facts.brier,
    }
    texts = {name: number(value, digits=4) for name, value in rows.items()}
    if facts.bounds is not None:
        texts |= {
            f"bound of Cal2^2: {title}": _population_bound(facts.bounds, name)
            for name, title in _POPULATION_BOUNDS.items()
        }
    return Table({"figure": list(texts), "value": list(texts.values())})


def _population_bound(bounds: CalibrationBounds, name: str) -> str:
    value = getattr(bounds, name)
    if np.isfinite(value):
        return number(value, digits=4)
    start = bounds.interior_from
    return f"none below lam = {number(start, digits=4)}" if np.isfinite(start) else "none: some eta_k is 0"
