"""Softmax of an affine map of rows of any size."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import ThreadpoolController

from focalcal.core.numerics import namespace, softmax

if TYPE_CHECKING:
    from jaxtyping import Float

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


def blas_threads(classes: int) -> AbstractContextManager[Any]:
    """One thread where products are so small that several wait for each other longer than they compute."""
    if classes > _ONE_THREAD:
        return nullcontext()
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
