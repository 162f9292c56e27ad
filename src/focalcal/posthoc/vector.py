"""Vector scaling: a weight and a bias for each class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from focalcal.posthoc.affine import AffineScaling
from focalcal.posthoc.storage import Decoder, count, flag, vector

if TYPE_CHECKING:
    from jaxtyping import Float


class VectorScaling(AffineScaling):
    """softmax(w * z + c), w and c of K numbers each, minimising the mean negative log-likelihood (Guo et al., 2017).

    z are the logits less their row's mean, so that only what softmax sees of them counts. To the mean loss is added
    spread_l2 * sum_k (u_k - mean u)^2 + bias_l2 * sum_k c_k^2, with u the weights of logits scaled so that the
    median of their rows' root mean squares is one: strengths mean the same whatever the logits' scale. Infinite
    strengths are allowed: spread_l2 = bias_l2 = inf is temperature scaling, where its T is inside its bounds.

    Convex; L-BFGS starts at temperature scaling and is never worse on the fitted rows. Where there is no finite
    optimum (a class that no label names and bias_l2 = 0; labels that the map predicts perfectly) `converged_` is
    False, with a `CalibrationWarning`.

    Attributes: `weight_` (K,), `bias_` (K,) summing to zero, `n_iter_`, `converged_`, `classes_`, `n_features_in_`.
    """

    _state: ClassVar[dict[str, Decoder]] = {"weight_": vector, "bias_": vector, "n_iter_": count, "converged_": flag}
    _penalty = "spread_l2"

    def __init__(
        self, spread_l2: float = 0.0, bias_l2: float = 0.0, *, max_iter: int = 1000, tol: float = 1e-8
    ) -> None:
        self.spread_l2 = spread_l2
        self.bias_l2 = bias_l2
        self.max_iter = max_iter
        self.tol = tol

    def _identity(self, classes: int) -> Float[np.ndarray, " m"]:
        return np.ones(1 if self.spread_l2 == math.inf else classes)

    def _penalised(self, weight: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        part: Float[np.ndarray, " k"] = weight - weight.mean()
        return part
