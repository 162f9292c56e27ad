"""Isotonic regression, one class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import isotonic_regression

from focalcal.core.numerics import softmax
from focalcal.posthoc.one_vs_rest import OneVsRestCalibrator, interpolated
from focalcal.posthoc.storage import Decoder, curves, rising_curves

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class IsotonicCalibration(OneVsRestCalibrator):
    """The rising function of p_k nearest in squares to 1[label = k], normalised; p = softmax(logits).

    Zadrozny and Elkan (2002): linear between the fitted points, the ends of its flat stretches, and constant beyond
    them. Flat stretches make classes tie, so the predicted class can change.

    Attributes: `thresholds_` and `values_`, for each class the points of its map; `classes_`, `n_features_in_`.
    """

    _state: ClassVar[dict[str, Decoder]] = {"thresholds_": rising_curves, "values_": curves}
    thresholds_: list[Any]
    values_: list[Any]

    def _check_state(self) -> None:
        if [len(t) for t in self.thresholds_] != [len(v) for v in self.values_]:
            raise ValueError("thresholds_ and values_ must have as many numbers in every class")

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        probs = softmax(logits.astype(np.float64))
        self.thresholds_, self.values_ = [], []
        for k in range(probs.shape[1]):
            points, place = np.unique(probs[:, k], return_inverse=True)
            count = np.bincount(place, weights)
            rising = isotonic_regression(np.bincount(place, weights * (labels == k)) / count, weights=count)
            ends = np.unique([rising.blocks[:-1], rising.blocks[1:] - 1])
            self.thresholds_.append(points[ends])
            self.values_.append(np.clip(rising.x[ends], 0.0, 1.0))

    def _arrays(self) -> dict[str, Any]:
        return {"thresholds": as_one(self.thresholds_), "values": as_one(self.values_)}

    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        return interpolated(learnt["thresholds"], learnt["values"], softmax(logits))


def as_one(curves: list[Any]) -> Any:
    """Shorter ones repeat their last point, beyond which the map is constant."""
    table = np.empty((len(curves), max(map(len, curves))))
    for row, curve in zip(table, curves, strict=True):
        row[: len(curve)] = curve
        row[len(curve) :] = curve[-1]
    return table
