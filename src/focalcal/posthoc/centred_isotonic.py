"""Centred isotonic regression, one class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focalcal.core.numerics import softmax
from focalcal.posthoc.isotonic import IsotonicCalibration

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy.typing import NDArray


class CentredIsotonic(IsotonicCalibration):
    """Isotonic regression with a point for every flat stretch, at the mean score of its rows; normalised.

    Oron and Flournoy (2017): the map rises strictly between the first and the last stretch, so that it makes no ties,
    and has less bias than the steps. Linear between the points, constant beyond them; stretches of exactly 0 or 1
    stay flat.

    Attributes: as those of `IsotonicCalibration`.
    """

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        super()._fit(logits, labels, weights)
        probs = softmax(logits.astype(np.float64))
        for k, (points, heights) in enumerate(zip(self.thresholds_, self.values_, strict=True)):
            self.thresholds_[k], self.values_[k] = _centred(points, heights, probs[:, k], weights)


def _centred(
    points: NDArray[np.float64], heights: NDArray[np.float64], scores: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of every stretch, or in their place its centre."""
    levels, first = np.unique(heights, return_index=True)
    last = np.append(first[1:], len(points)) - 1
    own = np.searchsorted(points[first], scores, side="right") - 1
    own = np.clip(own, 0, None)  # softmax of one row may round below that of many
    centre = np.bincount(own, weights * scores, len(levels)) / np.bincount(own, weights, len(levels))
    centre = np.clip(centre, points[first], points[last])
    flat = (levels <= 0) | (levels >= 1)
    ends = np.stack([np.where(flat, points[first], centre), np.where(flat, points[last], centre)], 1)
    kept = np.stack([np.ones(len(levels), dtype=bool), flat & (last > first)], 1).ravel()
    return ends.ravel()[kept], np.repeat(levels, 2)[kept]
