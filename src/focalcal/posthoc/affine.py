"""The negative log-likelihood of softmax(W x + c), its gradient, and the search for its minimum."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize  # type: ignore[import-untyped]
from torch import Tensor

from focalcal.core.scores import row_chunks
from focalcal.posthoc.calibrator import CalibrationWarning
from focalcal.posthoc.newton_temperature import optimal_inverse_temperature

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def centred(logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """float64 logits less their row's mean: what softmax sees of them, and nothing else."""
    logits = logits.double()
    return logits - logits.mean(1, keepdim=True)


def unit_scaled(logits: Float[Tensor, "n k"]) -> tuple[Float[Tensor, "n k"], float]:
    """Centred logits divided by their root mean square, and that number (1 if all are equal)."""
    inputs = centred(logits)
    scale = float(inputs.square().mean().sqrt())
    if not math.isfinite(scale):
        raise ValueError(f"logits must be of a size whose square is finite, got up to {float(inputs.abs().max()):g}")
    scale = scale if scale > 0 else 1.0
    return inputs / scale, scale


def best_inverse_temperature(inputs: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> float:
    """Where the searches start, so that they never end worse than temperature scaling."""
    return optimal_inverse_temperature(inputs, labels).inverse_temperature


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
    """L-BFGS from `start`: the best parameters, the number of iterations, whether the gradient fell below `tol`."""
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
