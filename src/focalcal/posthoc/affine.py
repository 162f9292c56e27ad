"""The negative log-likelihood of softmax(W x + c), its gradient, and the search for its minimum."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from focalcal.core.chunks import row_chunks
from focalcal.posthoc.calibrator import CalibrationWarning
from focalcal.posthoc.newton_temperature import Status, optimal_inverse_temperature

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_HUGE = 1e300  # logits further apart than this are as far apart as can be
_TINY = 1e-300  # the least size to divide by: weights for smaller logits would overflow


def centred(logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """float64 logits less their row's mean: what softmax sees of them, and nothing else."""
    shifted = logits.double()
    shifted = (shifted - shifted.amax(1, keepdim=True)).clamp(min=-_HUGE)
    return shifted - shifted.mean(1, keepdim=True)


def affine_probs(weight: Any, bias: Any, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """softmax(W x + c) of the centred logits; a vector `weight` is the diagonal of W.

    Rows of any size: x and W are first divided by powers of two, which is exact, so that no product overflows, and
    the differences W x - max(W x) are multiplied by them again, at most by 1e300.
    """
    weight, bias = torch.as_tensor(weight).to(logits), torch.as_tensor(bias).to(logits)
    inputs = centred(logits)
    row_size, weight_size = _power_of_two(inputs.abs().amax(1, keepdim=True)), _power_of_two(weight.abs().amax())
    inputs, weight = inputs / row_size, weight / weight_size
    products = inputs * weight if weight.dim() == 1 else inputs @ weight.T
    scores: Tensor = (products - products.amax(1, keepdim=True)) * (row_size * weight_size).clamp(max=_HUGE) + bias
    return scores.softmax(1)


def _power_of_two(sizes: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The largest powers of two that are not above the sizes, or above the least size to divide by."""
    sizes = sizes.clamp(min=_TINY)
    return sizes / (2 * torch.frexp(sizes).mantissa)


def unit_scaled(logits: Float[Tensor, "n k"]) -> tuple[Float[Tensor, "n k"], float]:
    """Centred logits divided by the median of their rows' root mean squares, and that number (1 if all are equal).

    The median, not the mean: one row of enormous logits leaves the others their size.
    """
    inputs = centred(logits)
    largest = inputs.abs().amax(1, keepdim=True).clamp(min=_TINY)
    sizes = (largest * (inputs / largest).square().mean(1, keepdim=True).sqrt()).flatten()
    sizes = sizes[sizes > 0]
    scale = max(float(sizes.median()), _TINY) if len(sizes) else 1.0
    return inputs / scale, scale


def fitted_parameters(
    problem: Problem,
    inputs: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    scale: float,
    *,
    max_iter: int,
    tol: float,
) -> tuple[Any, int, bool]:
    """The best parameters found, the number of iterations, and whether they are the optimum (else a warning).

    The search starts at temperature scaling, its T in [1e-3, 1e3] for the logits as they are or scaled, whichever is
    better, and never ends worse than it.
    """
    optimum = optimal_inverse_temperature(inputs, labels)
    as_given = optimal_inverse_temperature(inputs * scale, labels).inverse_temperature * scale
    starts = [problem.start(b) for b in (optimum.inverse_temperature, as_given) if b < _HUGE]
    values = [value if math.isfinite(value := problem.objective(s)[0]) else math.inf for s in starts]
    start, least = starts[values.index(min(values))], min(values)
    if optimum.status is Status.SEPARABLE:  # larger weights are always better
        _warn(f"the weights have no finite optimum: {optimum.status}; fit on rows that the network was not trained on")
        return start, 0, False
    theta, iterations, settled = minimum(problem.objective, start, max_iter=max_iter, tol=tol)
    if not problem.objective(theta)[0] <= least:
        theta, settled = start, False
    reason = _without_optimum(*problem.free(theta), inputs, labels)
    if reason:
        _warn(f"the fit has no finite optimum: {reason}")
    return theta, iterations, settled and not reason


@dataclass(frozen=True)
class Problem:
    """What is to be minimised over a vector of parameters.

    `objective`: its value and gradient; `start`: the parameters that are the temperature 1 / b; `free`: the weights
    and biases as far as no penalty holds them back (no biases: None).
    """

    objective: Callable[[Any], tuple[float, Any]]
    start: Callable[[float], Any]
    free: Callable[[Any], tuple[Tensor, Tensor | None]]


def _without_optimum(
    weight: Float[Tensor, "*k k"],
    bias: Float[Tensor, " k"] | None,
    inputs: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
) -> str:
    """Why some parameters without a penalty are always better when larger, or nothing."""
    absent = [k for k, count in enumerate(labels.bincount(minlength=inputs.shape[1]).tolist()) if count == 0]
    if absent and bias is not None:
        return f"no label names class {absent[0]} ({len(absent)} such classes); set bias_l2 > 0, or fit on more rows"
    for start, x in row_chunks(inputs):
        own = labels[start : start + len(x)].unsqueeze(1)
        scores = x * weight if weight.dim() == 1 else x @ weight.T
        scores = scores if bias is None else scores + bias
        others = scores.scatter(1, own, -math.inf).amax(1, keepdim=True)
        if not bool((scores.gather(1, own) > others).all()):
            return ""
    return (
        "the fitted map predicts every label, so larger weights are always better; raise a penalty, or fit on more rows"
    )


def _warn(message: str) -> None:
    warnings.warn(message, CalibrationWarning, stacklevel=5)


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
        _warn(
            f"the fit stopped after {found.nit} iterations with a gradient of {np.abs(found.jac).max():.2g}; "
            "raise max_iter, or a penalty: classes that are absent or perfectly separated have no finite optimum"
        )
    return found.x, int(found.nit), settled
