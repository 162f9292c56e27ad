"""Vector scaling: a weight and a bias for each class."""

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
from focalcal.posthoc.storage import Decoder, count, flag, vector

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class VectorScaling(Calibrator):
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
    weight_: Any
    bias_: Any
    n_iter_: int
    converged_: bool

    def __init__(
        self, spread_l2: float = 0.0, bias_l2: float = 0.0, *, max_iter: int = 1000, tol: float = 1e-8
    ) -> None:
        self.spread_l2 = spread_l2
        self.bias_l2 = bias_l2
        self.max_iter = max_iter
        self.tol = tol

    def _check_params(self) -> None:
        penalty("spread_l2", self.spread_l2)
        penalty("bias_l2", self.bias_l2)
        penalty("tol", self.tol)
        whole_number("max_iter", self.max_iter, least=1, remedy="1000 is plenty")

    def _fit(self, logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> None:
        inputs, scale = unit_scaled(logits)
        inputs, labels = inputs.cpu(), labels.cpu()
        classes = inputs.shape[1]
        tied, unbiased = self.spread_l2 == math.inf, self.bias_l2 == math.inf
        weights = 1 if tied else classes

        def unpack(theta: Any) -> tuple[Tensor, Tensor]:
            weight = torch.from_numpy(theta[:weights]).expand(classes)
            return weight, torch.zeros(classes, dtype=torch.float64) if unbiased else torch.from_numpy(theta[weights:])

        def objective(theta: Any) -> tuple[float, Any]:
            weight, bias = unpack(theta)
            value, d_weight, d_bias = affine_nll(weight, bias, inputs, labels)
            if not tied:
                off = weight - weight.mean()
                value += float(self.spread_l2) * float(off.square().sum())
                d_weight += 2 * float(self.spread_l2) * off
            if not unbiased:
                value += float(self.bias_l2) * float(bias.square().sum())
                d_bias += 2 * float(self.bias_l2) * bias
            first = d_weight.sum(0, keepdim=True) if tied else d_weight
            return value, torch.cat([first, d_bias[:0] if unbiased else d_bias]).numpy()

        def start(b: float) -> Any:
            return np.r_[np.full(weights, b), np.zeros(0 if unbiased else classes)]

        def free(theta: Any) -> tuple[Tensor, Tensor | None]:
            weight, bias = unpack(theta)
            return weight if self.spread_l2 == 0 else weight.mean().expand(classes), bias if self.bias_l2 == 0 else None

        theta, self.n_iter_, self.converged_ = fitted_parameters(
            Problem(objective, start, free), inputs, labels, scale, max_iter=self.max_iter, tol=self.tol
        )
        weight, bias = unpack(theta)
        self.weight_ = weight.numpy() / scale
        self.bias_ = (bias - bias.mean()).numpy()

    def _probs(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        return affine_probs(self.weight_, self.bias_, logits)
