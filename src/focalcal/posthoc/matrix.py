"""Matrix scaling: an affine map of the logits, with off-diagonal and intercept regularisation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from focalcal.core.checks import whole_number
from focalcal.posthoc.affine import Problem, affine_nll, affine_probs, fitted_parameters, unit_scaled
from focalcal.posthoc.arguments import penalty
from focalcal.posthoc.calibrator import Calibrator
from focalcal.posthoc.storage import Decoder, count, flag, matrix, vector

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class MatrixScaling(Calibrator):
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
    weight_: Any
    bias_: Any
    n_iter_: int
    converged_: bool

    def __init__(
        self, off_diagonal_l2: float = 0.1, bias_l2: float = 0.0, *, max_iter: int = 1000, tol: float = 1e-8
    ) -> None:
        self.off_diagonal_l2 = off_diagonal_l2
        self.bias_l2 = bias_l2
        self.max_iter = max_iter
        self.tol = tol

    def _check_params(self) -> None:
        penalty("off_diagonal_l2", self.off_diagonal_l2)
        penalty("bias_l2", self.bias_l2)
        penalty("tol", self.tol)
        whole_number("max_iter", self.max_iter, least=1, remedy="1000 is plenty")

    def _fit(self, logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> None:
        inputs, scale = unit_scaled(logits)
        inputs, labels = inputs.cpu(), labels.cpu()
        k = inputs.shape[1]
        diagonal, unbiased = self.off_diagonal_l2 == math.inf, self.bias_l2 == math.inf
        shape = (k,) if diagonal else (k, k)
        off = 1 - torch.eye(k, dtype=torch.float64)

        def unpack(theta: Any) -> tuple[Tensor, Tensor]:
            weight, bias = (torch.from_numpy(part) for part in np.split(theta, [math.prod(shape)]))
            return weight.view(shape), torch.zeros(k, dtype=torch.float64) if unbiased else bias

        def objective(theta: Any) -> tuple[float, Any]:
            weight, bias = unpack(theta)
            value, d_weight, d_bias = affine_nll(weight, bias, inputs, labels)
            if not diagonal:
                outside = weight * off
                value += float(self.off_diagonal_l2) * float(outside.square().sum())
                d_weight += 2 * float(self.off_diagonal_l2) * outside
            if not unbiased:
                value += float(self.bias_l2) * float(bias.square().sum())
                d_bias += 2 * float(self.bias_l2) * bias
            return value, torch.cat([d_weight.flatten(), d_bias[:0] if unbiased else d_bias]).numpy()

        def start(b: float) -> Any:
            weight = np.full(k, b)
            return np.r_[weight if diagonal else np.diag(weight).ravel(), np.zeros(0 if unbiased else k)]

        def free(theta: Any) -> tuple[Tensor, Tensor | None]:
            weight, bias = unpack(theta)
            held = not diagonal and self.off_diagonal_l2 > 0
            return weight.diagonal() if held else weight, bias if self.bias_l2 == 0 else None

        theta, self.n_iter_, self.converged_ = fitted_parameters(
            Problem(objective, start, free), inputs, labels, scale, max_iter=self.max_iter, tol=self.tol
        )
        weight, bias = unpack(theta)
        self.weight_ = ((weight.diag() if diagonal else weight) / scale).numpy()
        self.bias_ = (bias - bias.mean()).numpy()

    def _probs(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        return affine_probs(self.weight_, self.bias_, logits)
