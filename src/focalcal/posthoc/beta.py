"""Beta calibration, one class against the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from focalcal.core.numerics import sigmoid
from focalcal.posthoc.logistic import logistic_coefficients
from focalcal.posthoc.one_vs_rest import OneVsRestCalibrator, bounded_logs
from focalcal.posthoc.storage import Decoder, vector

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class BetaCalibration(OneVsRestCalibrator):
    """sigmoid(a_k log p_k - b_k log(1 - p_k) + c_k) for each class k, a_k, b_k >= 0, normalised; p = softmax(logits).

    The three-parameter map of Kull, Silva Filho and Flach (2017): a = b = 1, c = 0 is the identity. The log loss is
    convex, so the best point of a face on which a or b is 0 is the answer when the free optimum has one of them
    negative. A class that no label names gets the constant 1 / (N + 2), as Platt's targets would give.

    Attributes: `a_`, `b_`, `c_`, each (K,), `classes_`, `n_features_in_`.
    """

    _state: ClassVar[dict[str, Decoder]] = {"a_": vector, "b_": vector, "c_": vector}
    a_: Any
    b_: Any
    c_: Any

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        log_p, log_not_p = bounded_logs(logits.astype(np.float64))
        maps = np.array([_beta_map(log_p[:, k], log_not_p[:, k], labels == k, weights) for k in range(log_p.shape[1])])
        self.a_, self.b_, self.c_ = maps.T.copy()

    def _arrays(self) -> dict[str, Any]:
        return {name: getattr(self, f"{name}_") for name in "abc"}

    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        log_p, log_not_p = bounded_logs(logits)
        return sigmoid(learnt["a"] * log_p - learnt["b"] * log_not_p + learnt["c"])


def _beta_map(log_p: Any, log_not_p: Any, positive: Any, weights: Any) -> tuple[float, float, float]:
    """a, b >= 0 and c of least log loss: the free optimum if it is feasible, else the best of the faces."""
    if not positive.any():
        return 0.0, 0.0, -math.log(weights.sum() + 1)
    features = np.stack([log_p, -log_not_p, np.ones(len(log_p))], 1)
    targets = positive.astype(np.float64)
    best, least = (0.0, 0.0, 0.0), math.inf
    for free in ([0, 1, 2], [0, 2], [1, 2], [2]):
        coefficients, loss = logistic_coefficients(features[:, free], targets, weights)
        w = np.zeros(3)
        w[free] = coefficients
        if w[:2].min() >= 0 and loss < least:
            best, least = (float(w[0]), float(w[1]), float(w[2])), loss
            if len(free) == 3:
                break
    return best
