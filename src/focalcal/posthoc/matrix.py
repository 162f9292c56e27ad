"""Matrix scaling: an affine map of the logits, with off-diagonal and intercept regularisation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from focalcal.posthoc.affine import AffineScaling
from focalcal.posthoc.storage import Decoder, count, flag, matrix, vector

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class MatrixScaling(AffineScaling):
    """softmax(W z + c), W of K x K numbers, minimising the mean negative log-likelihood (Guo et al., 2017).

    z are the logits less their row's mean. To the mean loss is added
    off_diagonal_l2 * sum_{i != j} U_ij^2 + bias_l2 * sum_k c_k^2, with U the matrix for logits scaled so that the
    median of their rows' root mean squares is one. It is the ODIR penalty of Kull et al. (2019) with sums in place of
    means, at unit scale: a strength means the same for every number of classes and every network. K^2 numbers overfit
    without it. Infinite strengths are allowed: off_diagonal_l2 = inf is vector scaling.

    Convex; L-BFGS starts at temperature scaling and is never worse on the fitted rows. Where there is no finite
    optimum (a class that no label names and bias_l2 = 0; labels that the map predicts perfectly) `converged_` is
    False, with a `CalibrationWarning`.

    Attributes: `weight_` (K, K), `bias_` (K,) summing to zero, `n_iter_`, `converged_`, `classes_`,
    `n_features_in_`.
    """

    _state: ClassVar[dict[str, Decoder]] = {"weight_": matrix, "bias_": vector, "n_iter_": count, "converged_": flag}
    _penalty = "off_diagonal_l2"

    def __init__(
        self, off_diagonal_l2: float = 0.1, bias_l2: float = 0.0, *, max_iter: int = 1000, tol: float = 1e-8
    ) -> None:
        self.off_diagonal_l2 = off_diagonal_l2
        self.bias_l2 = bias_l2
        self.max_iter = max_iter
        self.tol = tol

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        super()._fit(logits, labels, weights)
        if self.off_diagonal_l2 == math.inf:
            self.weight_ = np.diag(self.weight_)

    def _identity(self, classes: int) -> Float[np.ndarray, " m"]:
        return np.ones(classes) if self.off_diagonal_l2 == math.inf else np.eye(classes).ravel()

    def _penalised(self, weight: Float[np.ndarray, "k k"]) -> Float[np.ndarray, "k k"]:
        return weight - np.diag(weight.diagonal())
