"""Softmax, its logarithms and odds, with nothing computed as one minus something near one.

Arrays are NumPy's, or of any other library with the Python array API (a calibrator's map runs under torch too).
"""

from __future__ import annotations

from typing import Any

import numpy as np

_LOWEST = -1e15  # a logit further below the largest has p = 0 by any measure; infinities would breed NaN


def namespace(values: Any) -> Any:
    """The module of array-API functions for an array: NumPy itself, or what `array_api_compat` finds."""
    if isinstance(values, np.ndarray):
        return np
    import array_api_compat  # here, so that NumPy's users do not wait for it

    return array_api_compat.array_namespace(values)


def column_index(values: Any) -> Any:
    """0 .. K - 1 for the columns of an array (n, K), on its device."""
    xp = namespace(values)
    return xp.arange(values.shape[1]) if xp is np else xp.arange(values.shape[1], device=values.device)


def at_least_float32(values: Any) -> Any:
    """float16 and bfloat16 as float32; float32 and float64 as they are."""
    xp = namespace(values)
    if values.dtype in (xp.float32, xp.float64):
        return values
    return values.astype(np.float32) if xp is np else xp.astype(values, xp.float32)


def _largest(values: Any, axis: int) -> Any:
    """The largest along an axis, which stays. Column by column NumPy takes a thirtieth of the time for two columns."""
    xp = namespace(values)
    if xp is not np or axis != 1 or values.ndim != 2 or not 1 < values.shape[1] <= 16 or len(values) < 100:
        return xp.max(values, axis=axis, keepdims=True)
    largest = values[:, 0].copy()
    for k in range(1, values.shape[1]):
        np.maximum(largest, values[:, k], out=largest)
    return largest[:, None]


def _sum(values: Any, axis: int) -> Any:
    """The sum likewise; of eight and more columns NumPy adds in another order, and half precision in single."""
    xp = namespace(values)
    few = xp is np and axis == 1 and values.ndim == 2 and 1 < values.shape[1] < 8 and len(values) >= 100
    if not few or values.dtype == np.float16:
        return xp.sum(values, axis=axis, keepdims=True)
    total = values[:, 0] + values[:, 1]
    for k in range(2, values.shape[1]):
        total += values[:, k]
    return total[:, None]


def softmax(logits: Any, axis: int = 1) -> Any:
    """exp(z_k) / sum_j exp(z_j), in the dtype of the logits; a class at -inf has 0."""
    odds = namespace(logits).exp(logits - _largest(logits, axis))
    return odds / _sum(odds, axis)


def log_softmax(logits: Any, axis: int = 1) -> Any:
    """The logarithm of `softmax`, finite wherever the logits are."""
    xp = namespace(logits)
    shifted = logits - _largest(logits, axis)
    return shifted - xp.log(_sum(xp.exp(shifted), axis))


def logsumexp(logits: Any, axis: int = 1) -> Any:
    """log sum_k exp(z_k), for rows with a finite entry."""
    xp = namespace(logits)
    top = _largest(logits, axis)
    total = top + xp.log(_sum(xp.exp(logits - top), axis))
    return xp.squeeze(total, axis=axis)


def sigmoid(logits: Any) -> Any:
    """1 / (1 + exp(-z)), without overflow."""
    xp = namespace(logits)
    small = xp.exp(-xp.abs(logits))
    return xp.where(logits >= 0, xp.ones_like(small), small) / (1 + small)


def log_sigmoid(logits: Any) -> Any:
    """The logarithm of `sigmoid`, finite wherever the logits are."""
    xp = namespace(logits)
    return xp.clip(logits, None, 0.0) - xp.log1p(xp.exp(-xp.abs(logits)))


def log_probs_and_complements(logits: Any) -> tuple[Any, Any]:
    """log p_k and log(1 - p_k), p = softmax(logits), for float64 logits (n, K) with at least two classes.

    No class but a row's largest can exceed one half, so log1p(-p_k) is accurate for the others. The largest gets
    log(1 - p) = logsumexp over the others - logsumexp over all, and log p = log1p(-(1 - p)). Relative accuracy
    holds for logit leads of hundreds, where 1 - p is far below the smallest float64.
    """
    xp = namespace(logits)
    largest = xp.argmax(logits, axis=1, keepdims=True) == column_index(logits)
    shifted = xp.clip(logits - _largest(logits, 1), _LOWEST, None)
    rest = logsumexp(xp.where(largest, -xp.inf, shifted))[:, None]  # of the others; the largest's own share is exp(0)
    total = xp.clip(rest, 0.0, None) + xp.log1p(xp.exp(-xp.abs(rest)))  # log(1 + exp(rest)), exact for rest << 0
    log_p = xp.where(largest, -total, shifted - total)
    others = xp.where(largest, -1.0, log_p)  # any number below 0: what follows from it is replaced
    log_not_p = xp.where(largest, rest - total, xp.log1p(-xp.exp(others)))
    return log_p, log_not_p
