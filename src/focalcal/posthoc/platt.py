"""Platt scaling, one class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from focalcal.posthoc.calibrator_inputs import as_float64
from focalcal.posthoc.logistic import logistic_coefficients
from focalcal.posthoc.one_vs_rest import OneVsRestCalibrator, bounded_logs
from focalcal.posthoc.storage import Decoder, vector

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class PlattScaling(OneVsRestCalibrator):
    """sigmoid(a_k s_k + c_k) for each class k, normalised; s_k = log p_k - log(1 - p_k), p = softmax(logits).

    a_k and c_k minimise the log loss against Platt's (1999) targets (n+ + 1) / (n+ + 2) and 1 / (n- + 2), which keep
    them finite for classes that are separable or absent. The score is the log odds, as exact for p near 1 as near 0.

    Attributes: `slope_` (K,), `intercept_` (K,), `classes_`, `n_features_in_`.
    """

    _state: ClassVar[dict[str, Decoder]] = {"slope_": vector, "intercept_": vector}
    slope_: Any
    intercept_: Any

    def _fit(self, logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"], weights: Float[Tensor, " n"]) -> None:
        odds, index = as_float64(_log_odds(logits.double())), labels.cpu().numpy()
        row_weights = as_float64(weights)
        self.slope_, self.intercept_ = np.empty(odds.shape[1]), np.empty(odds.shape[1])
        for k in range(odds.shape[1]):
            positive = index == k
            count, others = row_weights[positive].sum(), row_weights[~positive].sum()
            targets = np.where(positive, (count + 1) / (count + 2), 1 / (others + 2))
            features = np.stack([odds[:, k], np.ones(len(index))], 1)
            (self.slope_[k], self.intercept_[k]), _ = logistic_coefficients(features, targets, row_weights)

    def _tensors(self) -> dict[str, Tensor]:
        return {"slope": torch.as_tensor(self.slope_), "intercept": torch.as_tensor(self.intercept_)}

    def _class_probs(self, logits: Float[Tensor, "n k"], **tensors: Tensor) -> Float[Tensor, "n k"]:
        return torch.sigmoid(_log_odds(logits) * tensors["slope"] + tensors["intercept"])


def _log_odds(logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    log_p, log_not_p = bounded_logs(logits)
    return log_p - log_not_p
