"""Isotonic regression, one class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from sklearn.isotonic import IsotonicRegression
from torch import Tensor

from focalcal.posthoc.calibrator_inputs import as_float64
from focalcal.posthoc.one_vs_rest import OneVsRestCalibrator, interpolated
from focalcal.posthoc.storage import Decoder, curves, rising_curves

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class IsotonicCalibration(OneVsRestCalibrator):
    """The rising function of p_k nearest in squares to 1[label = k], normalised; p = softmax(logits).

    Zadrozny and Elkan (2002), by scikit-learn's `IsotonicRegression`: linear between the fitted points, constant
    beyond them. Flat stretches make classes tie, so the predicted class can change.

    Attributes: `thresholds_` and `values_`, for each class the points of its map; `classes_`, `n_features_in_`.
    """

    _state: ClassVar[dict[str, Decoder]] = {"thresholds_": rising_curves, "values_": curves}
    thresholds_: list[Any]
    values_: list[Any]

    def _check_state(self) -> None:
        if [len(t) for t in self.thresholds_] != [len(v) for v in self.values_]:
            raise ValueError("thresholds_ and values_ must have as many numbers in every class")

    def _fit(self, logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"], weights: Float[Tensor, " n"]) -> None:
        probs, index = as_float64(logits.double().softmax(1)), labels.cpu().numpy()
        self.thresholds_, self.values_ = [], []
        for k in range(probs.shape[1]):
            map_k = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
            map_k.fit(probs[:, k], (index == k).astype(np.float64), sample_weight=as_float64(weights))
            self.thresholds_.append(map_k.X_thresholds_.astype(np.float64))
            self.values_.append(map_k.y_thresholds_.astype(np.float64))

    def _tensors(self) -> dict[str, Tensor]:
        most = max(map(len, self.values_))  # shorter maps repeat their last point, beyond which they are constant
        return {
            name: torch.from_numpy(np.stack([np.pad(curve, (0, most - len(curve)), mode="edge") for curve in curves]))
            for name, curves in (("thresholds", self.thresholds_), ("values", self.values_))
        }

    def _class_probs(self, logits: Float[Tensor, "n k"], **tensors: Tensor) -> Float[Tensor, "n k"]:
        return interpolated(tensors["thresholds"], tensors["values"], logits.softmax(1))
