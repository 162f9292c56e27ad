"""Softmax of an affine map: what vector, matrix and Dirichlet scaling share, the loss and the search included."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from focalcal.core.arrays import finite_at_least
from focalcal.core.checks import user_level, whole_number
from focalcal.core.chunks import row_chunks
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.newton_temperature import TemperatureStatus, optimal_inverse_temperature

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_HUGE = 1e300  # logits further apart than this are as far apart as can be
_TINY = 1e-300  # the least size to divide by: weights for smaller logits would overflow


def centred(logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
    """float64 logits less their row's mean: what softmax sees of them, and nothing else."""
    shifted = logits.double()
    shifted = (shifted - shifted.amax(1, keepdim=True)).clamp(min=-_HUGE)
    return shifted - shifted.mean(1, keepdim=True)


def affine_probs(
    weight: Float[Tensor, "*k k"], bias: Float[Tensor, " k"], inputs: Float[Tensor, "n k"]
) -> Float[Tensor, "n k"]:
    """softmax(W x + c); a vector `weight` is the diagonal of W.

    Rows of any size: x and W are first divided by powers of two, which is exact, so that no product overflows, and
    the differences W x - max(W x) are multiplied by them again, at most by 1e300.
    """
    row_size, weight_size = (
        _power_of_two(inputs.abs().amax(1, keepdim=True)),
        _power_of_two(weight.abs().flatten().amax(0)),
    )
    inputs, weight = inputs / row_size, weight / weight_size
    products = inputs * weight if weight.dim() == 1 else inputs @ weight.T
    scores: Tensor = (products - products.amax(1, keepdim=True)) * (row_size * weight_size).clamp(max=_HUGE) + bias
    return scores.softmax(1)


def _power_of_two(sizes: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """Powers of two within a factor of two of the sizes, or of the least size to divide by."""
    return torch.exp2(torch.log2(sizes.clamp(min=_TINY)).floor())


def unit_scaled(logits: Float[Tensor, "n k"], weights: Float[Tensor, " n"]) -> tuple[Float[Tensor, "n k"], float]:
    """Centred logits divided by the weighted median of their rows' root mean squares, and that number (or 1).

    The median, not the mean: one row of enormous logits leaves the others their size.
    """
    inputs = centred(logits)
    largest = inputs.abs().amax(1, keepdim=True).clamp(min=_TINY)
    sizes = (largest * (inputs / largest).square().mean(1, keepdim=True).sqrt()).flatten()
    sizes, order = sizes.sort()
    mass = (weights[order] * (sizes > 0)).cumsum(0)
    middle = int(torch.searchsorted(mass, mass[-1] / 2))  # rows that are all equal have no size
    scale = max(float(sizes[middle]), _TINY) if mass[-1] > 0 else 1.0
    return inputs / scale, scale


class AffineScaling(Calibrator):
    """softmax(W z + c), z the centred logits, or log p for Dirichlet calibration.

    What is searched are `numbers`, of which W is a linear function, and c. A subclass gives that function and its
    adjoint, and says on which part of W its penalty is; with an infinite strength that part must be zero.
    """

    _penalty: ClassVar[str]  # the argument that is the strength of the penalty on a part of W
    bias_l2: float
    max_iter: int
    tol: float
    weight_: Any
    bias_: Any
    n_iter_: int
    converged_: bool

    @abstractmethod
    def _identity(self, classes: int) -> Float[Tensor, " m"]:
        """The numbers for which W is the identity."""

    @abstractmethod
    def _weight(self, numbers: Float[Tensor, " m"], classes: int) -> Float[Tensor, "*k k"]:
        """W, or its diagonal."""

    @abstractmethod
    def _numbers_gradient(self, d_weight: Float[Tensor, "*k k"]) -> Float[Tensor, " m"]:
        """The derivative in the numbers, from that in W."""

    @abstractmethod
    def _penalised(self, weight: Float[Tensor, "*k k"]) -> Float[Tensor, "*k k"]:
        """The part of W that the penalty is on: a projection, so that it is also half the derivative of its square."""

    def _inputs(self, logits: Float[Tensor, "n k"], weights: Float[Tensor, " n"]) -> tuple[Float[Tensor, "n k"], float]:
        """What W is multiplied with while it is searched, and by what it was divided."""
        return unit_scaled(logits, weights)

    def _strengths(self, classes: int) -> tuple[float, float]:
        """Of the penalties on squares that are summed: on the part of W, and on c."""
        return float(getattr(self, self._penalty)), float(self.bias_l2)

    def _check_params(self) -> None:
        for name in (self._penalty, "bias_l2", "tol"):
            value = getattr(self, name)
            if not (isinstance(value, float) and value == math.inf):
                finite_at_least(name, value, 0.0)
        whole_number("max_iter", self.max_iter, least=1, remedy="1000 is plenty")

    def _fit(self, logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"], weights: Float[Tensor, " n"]) -> None:
        inputs, scale = self._inputs(logits, weights)
        inputs, labels, weights = inputs.cpu(), labels.cpu(), weights.cpu()
        theta, self.n_iter_, self.converged_ = self._best_parameters(inputs, labels, weights, scale)
        weight, bias = self._weight_and_bias(theta, inputs.shape[1])
        self.weight_ = (weight / scale).numpy()
        self.bias_ = (bias - bias.mean()).numpy()

    def _tensors(self) -> dict[str, Tensor]:
        return {"weight": torch.as_tensor(self.weight_), "bias": torch.as_tensor(self.bias_)}

    def _map(self, logits: Float[Tensor, "n k"], **tensors: Tensor) -> Float[Tensor, "n k"]:
        return affine_probs(tensors["weight"], tensors["bias"], centred(logits))

    def _best_parameters(
        self, inputs: Float[Tensor, "n k"], labels: Int[Tensor, " n"], weights: Float[Tensor, " n"], scale: float
    ) -> tuple[Any, int, bool]:
        """The best parameters, the number of iterations, and whether they are the optimum (else a warning).

        The search starts at temperature scaling, its T in [1e-3, 1e3] for the logits as they are or scaled, whichever
        is better, and never ends worse than it.
        """
        classes = inputs.shape[1]
        identity = np.r_[self._identity(classes).numpy(), np.zeros(0 if self.bias_l2 == math.inf else classes)]

        def objective(theta: Any) -> tuple[float, Any]:
            return self._objective(theta, inputs, labels, weights)

        optimum = optimal_inverse_temperature(inputs, labels, weights)
        as_given = optimal_inverse_temperature(inputs * scale, labels, weights).inverse_temperature * scale
        starts = [b * identity for b in (optimum.inverse_temperature, as_given) if b < _HUGE]
        values = [value if math.isfinite(value := objective(start)[0]) else math.inf for start in starts]
        best_start, least = starts[values.index(min(values))], min(values)
        if optimum.status is TemperatureStatus.SEPARABLE:  # larger weights are always better
            remedy = "fit on rows that the network was not trained on"
            _warn(f"the weights have no finite optimum: {optimum.status}; {remedy}")
            return best_start, 0, False
        theta, iterations, settled = minimum(objective, best_start, max_iter=self.max_iter, tol=self.tol)
        if not objective(theta)[0] <= least:
            theta, settled = best_start, False
        reason = _without_optimum(*self._unpenalised(theta, classes), inputs, labels)
        if reason:
            _warn(f"the fit has no finite optimum: {reason}")
        return theta, iterations, settled and not reason

    def _weight_and_bias(self, theta: Any, classes: int) -> tuple[Float[Tensor, "*k k"], Float[Tensor, " k"]]:
        """W, or its diagonal, and c."""
        if self.bias_l2 == math.inf:
            return self._weight(torch.from_numpy(theta), classes), torch.zeros(classes, dtype=torch.float64)
        numbers, bias = (torch.from_numpy(part) for part in np.split(theta, [len(theta) - classes]))
        return self._weight(numbers, classes), bias

    def _objective(
        self, theta: Any, inputs: Float[Tensor, "n k"], labels: Int[Tensor, " n"], weights: Float[Tensor, " n"]
    ) -> tuple[float, Any]:
        """The mean loss and the penalties, and their derivatives."""
        strength, bias_strength = self._strengths(inputs.shape[1])
        weight, bias = self._weight_and_bias(theta, inputs.shape[1])
        value, d_weight, d_bias = affine_nll(weight, bias, inputs, labels, weights)
        if strength < math.inf:
            part = self._penalised(weight)
            value += strength * float(part.square().sum())
            d_weight += 2 * strength * part
        if bias_strength == math.inf:
            return value, self._numbers_gradient(d_weight).numpy()
        value += bias_strength * float(bias.square().sum())
        d_bias += 2 * bias_strength * bias
        return value, torch.cat([self._numbers_gradient(d_weight), d_bias]).numpy()

    def _unpenalised(self, theta: Any, classes: int) -> tuple[Float[Tensor, "*k k"], Float[Tensor, " k"] | None]:
        """W and c as far as no penalty holds them back (c: None)."""
        weight, bias = self._weight_and_bias(theta, classes)
        held = 0 < getattr(self, self._penalty) < math.inf
        return weight - self._penalised(weight) if held else weight, bias if self.bias_l2 == 0 else None


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
    warnings.warn(message, CalibrationWarning, stacklevel=user_level())


def affine_nll(
    weight: Float[Tensor, "*k k"],
    bias: Float[Tensor, " k"],
    inputs: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    row_weights: Float[Tensor, " n"],
) -> tuple[float, Float[Tensor, "*k k"], Float[Tensor, " k"]]:
    """Mean of -log softmax(W x + c)_y, and its derivatives in W and c; a vector `weight` is the diagonal of W."""
    value, d_weight, d_bias = 0.0, torch.zeros_like(weight), torch.zeros_like(bias)
    for start, x in row_chunks(inputs):
        own, share = (each[start : start + len(x)].unsqueeze(1) for each in (labels, row_weights))
        scores = x * weight + bias if weight.dim() == 1 else torch.addmm(bias, x, weight.T)
        log_p = scores.log_softmax(1)
        value -= float((log_p.gather(1, own) * share).sum())
        error = log_p.exp_().scatter_add_(1, own, torch.full_like(own, -1.0, dtype=log_p.dtype)).mul_(share)
        d_weight += (error * x).sum(0) if weight.dim() == 1 else error.T @ x
        d_bias += error.sum(0)
    total = float(row_weights.sum())
    return value / total, d_weight / total, d_bias / total


def minimum(
    objective: Callable[[Any], tuple[float, Any]], start: Any, *, max_iter: int, tol: float
) -> tuple[Any, int, bool]:
    """L-BFGS from `start`: the best parameters, the number of iterations, whether the gradient fell below `tol`."""
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20}
    result = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    settled = bool(np.abs(result.jac).max(initial=0.0) <= 100 * tol)
    if not settled:
        _warn(
            f"the fit stopped after {result.nit} iterations with a gradient of {np.abs(result.jac).max():.2g}; "
            "raise max_iter, or a penalty: classes that are absent or perfectly separated have no finite optimum"
        )
    return result.x, int(result.nit), settled
