"""How well calibrated a predictor over a discrete population is, exactly, gathered."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

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
from focalcal.theory.minimiser import minimise
from focalcal.theory.population import SAME_CONFIDENCE, mean, top_label


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
