"""Platt scaling, one class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from focalcal.core.numerics import sigmoid
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

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        odds = _log_odds(logits.astype(np.float64))
        self.slope_, self.intercept_ = np.empty(odds.shape[1]), np.empty(odds.shape[1])
        for k in range(odds.shape[1]):
            positive = labels == k
            count, others = weights[positive].sum(), weights[~positive].sum()
            targets = np.where(positive, (count + 1) / (count + 2), 1 / (others + 2))
            features = np.stack([odds[:, k], np.ones(len(labels))], 1)
            (self.slope_[k], self.intercept_[k]), _ = logistic_coefficients(features, targets, weights)

    def _arrays(self) -> dict[str, Any]:
        return {"slope": self.slope_, "intercept": self.intercept_}

    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        return sigmoid(_log_odds(logits) * learnt["slope"] + learnt["intercept"])


def _log_odds(logits: Any) -> Any:
    log_p, log_not_p = bounded_logs(logits)
    return log_p - log_not_p
