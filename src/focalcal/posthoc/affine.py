"""The negative log-likelihood of softmax(W x + c), its gradient, and the search for its minimum."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from focalcal.core.scores import row_chunks
from focalcal.posthoc.calibrator import CalibrationWarning
from focalcal.posthoc.newton_temperature import Status, optimal_inverse_temperature

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_HUGE = 1e300  # logits further apart than this are as far apart as can be


def centred(logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """float64 logits less their row's mean: what softmax sees of them, and nothing else."""
    shifted = logits.double()
    shifted = (shifted - shifted.amax(1, keepdim=True)).clamp(min=-_HUGE)
    return shifted - shifted.mean(1, keepdim=True)


def affine_probs(weight: Any, bias: Any, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """softmax(W x + c) of the centred logits; a vector `weight` is the diagonal of W."""
    weight, bias = torch.as_tensor(weight).to(logits), torch.as_tensor(bias).to(logits)
    inputs = centred(logits)
    scores = inputs * weight + bias if weight.dim() == 1 else torch.addmm(bias, inputs, weight.T)
    return scores.clamp(-_HUGE, _HUGE).softmax(1)


def unit_scaled(logits: Float[Tensor, "n k"]) -> tuple[Float[Tensor, "n k"], float]:
    """Centred logits divided by their root mean square, and that number (1 if all are equal)."""
    inputs = centred(logits)
    largest = float(inputs.abs().max()) or 1.0
    scale = largest * float((inputs / largest).square().mean().sqrt()) or 1.0
    return inputs / scale, scale


def starting_weight(inputs: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> tuple[float, bool]:
    """1/T of temperature scaling, so that no search ends worse than it, and whether there is anything to search.

    Where every label has its row's largest logit, larger weights are always better, and the bound is the answer.
    """
    optimum = optimal_inverse_temperature(inputs, labels)
    if optimum.status is Status.SEPARABLE:
        warnings.warn(
            f"the weights have no finite optimum: {optimum.status}; fit on rows that the network was not trained on",
            CalibrationWarning,
            stacklevel=4,
        )
    return optimum.inverse_temperature, optimum.status is not Status.SEPARABLE


def affine_nll(
    weight: Float[Tensor, "*k k"], bias: Float[Tensor, " k"], inputs: Float[Tensor, "n k"], labels: Int[Tensor, " n"]
) -> tuple[float, Float[Tensor, "*k k"], Float[Tensor, " k"]]:
    """Mean of -log softmax(W x + c)_y, and its derivatives in W and c; a vector `weight` is the diagonal of W."""
    value, d_weight, d_bias = 0.0, torch.zeros_like(weight), torch.zeros_like(bias)
    for start, x in row_chunks(inputs):
        own = labels[start : start + len(x)].unsqueeze(1)
        scores = x * weight + bias if weight.dim() == 1 else torch.addmm(bias, x, weight.T)
        log_p = scores.log_softmax(1)
        value -= float(log_p.gather(1, own).sum())
        error = log_p.exp_().scatter_add_(1, own, torch.full_like(own, -1.0, dtype=log_p.dtype))
        d_weight += (error * x).sum(0) if weight.dim() == 1 else error.T @ x
        d_bias += error.sum(0)
    n = len(inputs)
    return value / n, d_weight / n, d_bias / n


def minimum(
    objective: Callable[[Any], tuple[float, Any]], start: Any, *, max_iter: int, tol: float
) -> tuple[Any, int, bool]:
    """L-BFGS from `start`: the best parameters, the number of iterations, whether the gradient fell below `tol`.

    max_iter = 0 returns the start.
    """
    if max_iter == 0:
        return start, 0, False
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    settled = bool(np.abs(found.jac).max(initial=0.0) <= 100 * tol)
    if not settled:
        warnings.warn(
            f"the fit stopped after {found.nit} iterations with a gradient of {np.abs(found.jac).max():.2g}; "
            "raise max_iter, or a penalty: classes that are absent or perfectly separated have no finite optimum",
            CalibrationWarning,
            stacklevel=4,
        )
    return found.x, int(found.nit), settled
