"""A predictor over a discrete X: its top label in every state, and the states of equal confidence.

`probs` (N, K) are the predictions, `eta` (N, K) the posteriors and `weights` (N,) the probabilities of the N states
(None: equal). yhat is the most probable class of `probs`, the first of equal ones; S = max `probs` is the confidence as
reported, not rescaled, as in `focalcal.metrics`; Z = 1[Y = yhat], so that E[Z | X] = eta_yhat. States of weight 0 are
checked and never count. `displacement` (N, K) is probs - eta from whoever knows it to more digits than the subtraction
leaves: at a large lam the two agree in most of theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.arrays import as_array
from focalcal.core.checks import ROUNDING
from focalcal.theory.posteriors import at_least_zero, distributions, one_number, state_weights

if TYPE_CHECKING:
    from jaxtyping import Float, Int

SAME_CONFIDENCE = 1e-12  # room for rounding in float64; confidences from float32 need about 1e-6


@dataclass(frozen=True, eq=False)
class TopLabel:
    """The states that occur: P(X), S, E[Z | X] and the gap S - E[Z | X]; p - eta, and eta."""

    weight: Float[np.ndarray, " n"]
    confidence: Float[np.ndarray, " n"]
    accuracy: Float[np.ndarray, " n"]
    gap: Float[np.ndarray, " n"]
    displacement: Float[np.ndarray, "n k"]
    eta: Float[np.ndarray, "n k"]


def top_label(probs: Any, eta: Any, weights: Any = None, displacement: Any = None) -> TopLabel:
    """The arguments, checked, and what follows from them in each state."""
    posterior = state_rows("eta", distributions("eta", eta))
    distributions("probs", probs, used="used as they are")
    reported = _like(posterior, "probs", probs)
    difference = reported - posterior
    if displacement is not None:
        given = _like(posterior, "displacement", displacement)
        off = np.abs(given - difference).max()
        if not off <= ROUNDING:  # NaN is wrong, too
            raise ValueError(
                f"displacement must be probs - eta, within {ROUNDING:g}, got one that is off by {off:g}; "
                "pass that difference, or leave it out"
            )
        difference = given
    weight = state_weights(weights, len(posterior))
    rows = np.flatnonzero(weight)
    own = (rows, reported[rows].argmax(1))
    return TopLabel(weight[rows], reported[own], posterior[own], difference[own], difference[rows], posterior[rows])


def state_rows(name: str, array: Float[np.ndarray, "..."]) -> Float[np.ndarray, "n k"]:
    """Refuse what is not one row per state."""
    if array.ndim != 2 or len(array) == 0:
        raise ValueError(f"{name} must be (N, K), one row per state, got shape {array.shape}; one state is (1, K)")
    return array


def confidence_groups(top: TopLabel, tolerance: float = SAME_CONFIDENCE) -> list[Int[np.ndarray, " m"]]:
    """The indices of the states of each confidence, ascending: what E[. | S] is a mean over.

    Confidences equal in exact arithmetic can differ by rounding (posteriors that are permutations of one another), so
    in ascending order a state joins a group if its confidence is within `tolerance` of the group's first. Compared with
    its neighbour instead, a chain of close states could drift any distance.
    """
    width = one_number("tolerance", at_least_zero("tolerance", tolerance))
    order = np.argsort(top.confidence, kind="stable")
    ordered = top.confidence[order]
    starts = [0]
    while (after := int(np.searchsorted(ordered, ordered[starts[-1]] + width, side="right"))) < len(ordered):
        starts.append(after)
    return np.split(order, starts[1:])


def mean(weight: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"]) -> float:
    """sum of weight times value, with the rounding of the products alone."""
    return math.fsum(weight * values)


def _like(posterior: np.ndarray, name: str, values: Any) -> np.ndarray:
    array: np.ndarray = as_array(name, values).astype(np.float64)
    if array.shape != posterior.shape:
        raise ValueError(
            f"{name} must have the shape {posterior.shape} of eta, got {array.shape}; give each state a row"
        )
    return array
