"""Softmax of an affine map: what vector, matrix and Dirichlet scaling share, the loss and the search included."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import ThreadpoolController

from focalcal._native.softmax import affine_loss
from focalcal.core.checks import finite_at_least, user_level, whole_number
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import namespace, softmax
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.newton_temperature import TemperatureStatus, optimal_inverse_temperature

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_HUGE = 1e300  # logits further apart than this are as far apart as can be
_ONE_THREAD = 512  # classes at most
_TINY = 1e-300  # the least size to divide by: weights for smaller logits would overflow


def centred(logits: Any) -> Any:
    """float64 logits (n, K) less their row's mean: what softmax sees of them, and nothing else."""
    xp = namespace(logits)
    shifted = xp.clip(logits - xp.max(logits, axis=1, keepdims=True), -_HUGE, None)
    return shifted - xp.mean(shifted, axis=1, keepdims=True)


def affine_probs(weight: Any, bias: Any, inputs: Any) -> Any:
    """softmax(W x + c) of the rows x of inputs (n, K), c (K,); a vector `weight` is the diagonal of W.

    Rows of any size: x and W are first divided by powers of two, which is exact, so that no product overflows, and
    the differences W x - max(W x) are multiplied by them again, at most by 1e300.
    """
    xp = namespace(inputs)
    row_size = _power_of_two(xp.max(xp.abs(inputs), axis=1, keepdims=True))
    weight_size = _power_of_two(xp.max(xp.reshape(xp.abs(weight), (-1,)), axis=0))  # ONNX wants an axis
    inputs, weight = inputs / row_size, weight / weight_size
    products = inputs * weight if weight.ndim == 1 else inputs @ weight.T
    gaps = products - xp.max(products, axis=1, keepdims=True)
    return softmax(gaps * xp.clip(row_size * weight_size, None, _HUGE) + bias)


def _power_of_two(sizes: Any) -> Any:
    """Powers of two within a factor of two of the sizes, or of the least size to divide by."""
    xp = namespace(sizes)
    return xp.exp2(xp.floor(xp.log2(xp.clip(sizes, _TINY, None))))  # exp2 is not in the standard, but in both libraries


def unit_scaled(
    logits: Float[np.ndarray, "n k"], weights: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n k"], float]:
    """Centred logits divided by the weighted median of their rows' root mean squares, and that number (or 1).

    The median, not the mean: one row of enormous logits leaves the others their size.
    """
    inputs = centred(logits.astype(np.float64))
    largest = np.maximum(np.abs(inputs).max(1, keepdims=True), _TINY)
    sizes = (largest * np.sqrt(((inputs / largest) ** 2).mean(1, keepdims=True))).ravel()
    order = sizes.argsort()
    mass = (weights[order] * (sizes[order] > 0)).cumsum()  # rows that are all equal have no size
    middle = order[np.searchsorted(mass, mass[-1] / 2)]
    scale = max(float(sizes[middle]), _TINY) if mass[-1] > 0 else 1.0
    return inputs / scale, scale


class AffineScaling(Calibrator):
    """softmax(W z + c), z the centred logits, or log p for Dirichlet calibration.

    W is given by one number (all of the diagonal), K (the diagonal) or K^2: `_identity` says by how many, as the
    numbers of W = 1. A part of W has a penalty (`_penalised`); with an infinite strength that part must be zero.
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
    def _identity(self, classes: int) -> Float[np.ndarray, " m"]:
        """The numbers for which W is the identity."""

    @abstractmethod
    def _penalised(self, weight: Float[np.ndarray, "*k k"]) -> Float[np.ndarray, "*k k"]:
        """The part of W that the penalty is on: a projection, so that it is also half the derivative of its square."""

    def _inputs(
        self, logits: Float[np.ndarray, "n k"], weights: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, "n k"], float]:
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

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        inputs, scale = self._inputs(logits, weights)
        with blas_threads(inputs.shape[1]):
            theta, self.n_iter_, self.converged_ = self._best_parameters(inputs, labels, weights, scale)
        weight, bias = self._weight_and_bias(theta, inputs.shape[1])
        self.weight_ = weight / scale
        self.bias_ = bias - bias.mean()

    def _arrays(self) -> dict[str, Any]:
        return {"weight": self.weight_, "bias": self.bias_}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        return affine_probs(learnt["weight"], learnt["bias"], centred(logits))

    def _best_parameters(
        self,
        inputs: Float[np.ndarray, "n k"],
        labels: Int[np.ndarray, " n"],
        weights: Float[np.ndarray, " n"],
        scale: float,
    ) -> tuple[Any, int, bool]:
        """The best parameters, the number of iterations, and whether they are the optimum (else a warning).

        The search starts at temperature scaling, its T in [1e-3, 1e3] for the logits as they are or scaled, whichever
        is better, and never ends worse than it.
        """
        classes = inputs.shape[1]
        identity = np.r_[self._identity(classes), np.zeros(0 if self.bias_l2 == math.inf else classes)]

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

    def _weight_and_bias(self, theta: Any, classes: int) -> tuple[Float[np.ndarray, "*k k"], Float[np.ndarray, " k"]]:
        """W, or its diagonal, and c."""
        numbers, bias = theta, np.zeros(classes)
        if self.bias_l2 < math.inf:
            numbers, bias = np.split(theta, [len(theta) - classes])
        whole = len(numbers) > classes
        return numbers.reshape(classes, classes) if whole else np.broadcast_to(numbers, classes), bias

    def _objective(
        self,
        theta: Any,
        inputs: Float[np.ndarray, "n k"],
        labels: Int[np.ndarray, " n"],
        weights: Float[np.ndarray, " n"],
    ) -> tuple[float, Any]:
        """The mean loss and the penalties, and their derivatives."""
        strength, bias_strength = self._strengths(inputs.shape[1])
        weight, bias = self._weight_and_bias(theta, inputs.shape[1])
        value, d_weight, d_bias = affine_loss(inputs, labels, weights, weight, bias)
        if strength < math.inf:
            part = self._penalised(weight)
            value += strength * float((part**2).sum())
            d_weight += 2 * strength * part
        free_bias = bias_strength < math.inf
        gradient = d_weight.ravel()
        if len(theta) == 1 + free_bias * len(bias):  # one number, which all of the diagonal is
            gradient = gradient.sum(keepdims=True)
        if not free_bias:
            return value, gradient
        value += bias_strength * float((bias**2).sum())
        return value, np.concatenate([gradient, d_bias + 2 * bias_strength * bias])

    def _unpenalised(
        self, theta: Any, classes: int
    ) -> tuple[Float[np.ndarray, "*k k"], Float[np.ndarray, " k"] | None]:
        """W and c as far as no penalty holds them back (c: None)."""
        weight, bias = self._weight_and_bias(theta, classes)
        held = 0 < getattr(self, self._penalty) < math.inf
        return weight - self._penalised(weight) if held else weight, bias if self.bias_l2 == 0 else None


def _without_optimum(
    weight: Float[np.ndarray, "*k k"],
    bias: Float[np.ndarray, " k"] | None,
    inputs: Float[np.ndarray, "n k"],
    labels: Int[np.ndarray, " n"],
) -> str:
    """Why some parameters without a penalty are always better when larger, or nothing."""
    absent = np.flatnonzero(np.bincount(labels, minlength=inputs.shape[1]) == 0)
    if len(absent) and bias is not None:
        return f"no label names class {absent[0]} ({len(absent)} such classes); set bias_l2 > 0, or fit on more rows"
    for start, x in row_chunks(inputs):
        at, own = np.arange(len(x)), labels[start : start + len(x)]
        scores = (x * weight if weight.ndim == 1 else x @ weight.T) + (0.0 if bias is None else bias)
        largest = scores[at, own]
        scores[at, own] = -np.inf
        if not (largest > scores.max(1)).all():
            return ""
    return (
        "the fitted map predicts every label, so larger weights are always better; raise a penalty, or fit on more rows"
    )


def blas_threads(classes: int) -> AbstractContextManager[Any]:
    """One thread where products are so small that several wait for each other longer than they compute."""
    if classes > _ONE_THREAD:
        return nullcontext()
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _warn(message: str) -> None:
    warnings.warn(message, CalibrationWarning, stacklevel=user_level())


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
