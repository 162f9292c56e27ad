"""Sums over rows that are made of softmax: what the fits of temperatures and of affine maps ask for in each step.

The kernel reads a row once and keeps what it computes in the cache; without it NumPy does the same, piece by piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from focalcal._native import available, kernel, threads

if TYPE_CHECKING:
    from collections.abc import Iterator

Array = np.ndarray[Any, Any]

_DTYPES = {np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.float16): 3}
_BFLOAT16 = 2
_PIECE = 1 << 19  # bytes: two buffers of them stay in the second-level cache
_LOWEST = {np.dtype(np.float32): -80.0, np.dtype(np.float64): -690.0}  # an exponent whose exponential weighs nothing


class MomentSums(NamedTuple):
    """Weighted sums over rows, s = z - max z and every moment under softmax(b z)."""

    log_partition: float  # of log sum_k exp(b s_k)
    mean: float  # of E[s]
    variance: float  # of Var[s]
    third: float  # of E[(s - E[s])^3]
    own: float  # of s_y, or 0 without labels


def moment_sums(
    logits: Array,
    labels: Array | None,
    weights: Array | None,
    b: float,
    *,
    exact: bool = True,
    bfloat16: bool = False,
    instruction_set: int = -1,
) -> MomentSums:
    """What Newton's method for a temperature 1 / b needs, from one read of the logits (N, K).

    The weighted negative log-likelihood of softmax(b z) is log_partition - b own, its derivatives in b are mean - own,
    variance and third. Logits are float16, float32, float64 or, as uint16, bfloat16; int64 labels and float64 weights
    (N,) may be None: no labels, weights of one. `exact` computes in float64, else exponentials are float32's with a
    relative error of 1e-6. An entry more than 690 / b (80 / b) below its row's largest counts as that far below.
    """
    code = _BFLOAT16 if bfloat16 else _DTYPES[logits.dtype]
    if logits.ndim != 2 or (bfloat16 and logits.dtype != np.uint16):
        raise TypeError(f"logits must be (N, K), and uint16 for bfloat16, got {logits.dtype} {logits.shape}")
    labels, weights = _column(labels, np.int64, len(logits)), _column(weights, np.float64, len(logits))
    if not available():
        return _numpy_moment_sums(logits, labels, weights, b, exact=exact, bfloat16=bfloat16)
    sums = np.zeros(5)
    for start, rows in _contiguous_rows(logits):
        bad = kernel().moment_sums(
            rows.ctypes.data, code, *rows.shape, rows.strides[0] // rows.itemsize, _address(labels, start),
            _address(weights, start), b, exact, sums.ctypes.data, threads(), instruction_set,
        )  # fmt: skip
        _refuse_label(labels, bad, start, logits.shape[1])
    return MomentSums(*sums.tolist())


def affine_loss(
    inputs: Array, labels: Array, weights: Array, weight: Array, bias: Array, *, instruction_set: int = -1
) -> tuple[float, Array, Array]:
    """The mean of -log softmax(W x + c)_y and its derivatives in W and c; a vector `weight` is the diagonal of W.

    Inputs (N, M) and weights of the rows (N,) are float64, labels (N,) int64, W (K, M) or (K,), c (K,). With inputs in
    float32 and a matrix W the products with them are float32's, which takes half of the time, and all else float64's.
    """
    single = inputs.dtype == np.float32 and np.ndim(weight) == 2
    inputs = np.ascontiguousarray(inputs, np.float32 if single else np.float64)
    weight, bias = np.ascontiguousarray(weight, np.float64), np.ascontiguousarray(bias, np.float64)
    (count, columns), classes = inputs.shape, bias.size
    if weight.shape not in ((columns,), (classes, columns)) or bias.shape != (weight.shape[0],):
        raise ValueError(
            f"weight and bias must fit {classes} classes and inputs of {columns} columns, got shapes {weight.shape} "
            f"and {bias.shape}"
        )
    labels, weights = _column(labels, np.int64, count), _column(weights, np.float64, count)
    diagonal = weight.ndim == 1
    pair = classes == 2 and not diagonal
    rows_loss = _rows_of_two if pair else _kernel_rows if available() else _numpy_rows
    sums, d_weight = np.zeros(1 + classes * (1 + diagonal)), np.zeros_like(weight)
    step = count if diagonal and available() else max(_PIECE // (8 * classes), classes, 1)
    scores = np.empty((0 if diagonal else min(step, count), classes), inputs.dtype)
    factor = weight.astype(inputs.dtype, copy=False)
    product = np.empty_like(factor)
    for start in range(0, count, step):
        x = inputs[start : start + step]
        z = x if diagonal else np.matmul(x, factor.T, out=scores[: len(x)])
        z = z.astype(np.float64, copy=False)
        bad = rows_loss(z, weight if diagonal else None, bias, labels, weights, start, sums, instruction_set)
        _refuse_label(labels, bad, start, classes)
        if not diagonal:
            d_weight += np.matmul(z.T.astype(inputs.dtype, copy=False), x, out=product)
    total = float(weights.sum())
    d_bias = sums[1 : 1 + classes]
    return float(sums[0]) / total, (sums[1 + classes :] if diagonal else d_weight) / total, d_bias / total


def _kernel_rows(
    z: Array, weight: Array | None, bias: Array, labels: Array, weights: Array, start: int, sums: Array, level: int
) -> int:
    """Adds to `sums` the loss, its derivatives in the bias and, with a diagonal weight, in that.

    Without one the derivatives in the scores z take their place. Returns the first row with a wrong label, or -1.
    """
    bad: int = kernel().affine_rows(
        z.ctypes.data, *z.shape, z.shape[1], _address(weight), bias.ctypes.data, _address(labels, start),
        _address(weights, start), sums.ctypes.data, threads(), level,
    )  # fmt: skip
    return bad


def _rows_of_two(
    z: Array, weight: Array | None, bias: Array, labels: Array, weights: Array, start: int, sums: Array, level: int
) -> int:
    """Of two classes NumPy is several times as quick as the kernel, whose vectors are made of classes."""
    own, share = labels[start : start + len(z)], weights[start : start + len(z)]
    if len(wrong := np.flatnonzero((own < 0) | (own > 1))):
        return int(wrong[0])
    lead = z[:, 1] - z[:, 0]  # of class 1
    lead += bias[1] - bias[0]
    small = np.exp(-np.abs(lead))
    behind = (1 - 2 * own) * lead  # how far the label's class lies behind
    sums[0] += (np.maximum(behind, 0.0) + np.log1p(small)) @ share
    odds = np.where(lead >= 0, 1.0, small)
    error = (odds / (1 + small) - own) * share
    total = error.sum()
    sums[1] -= total
    sums[2] += total
    z[:, 0], z[:, 1] = -error, error
    return -1


def _numpy_rows(
    z: Array, weight: Array | None, bias: Array, labels: Array, weights: Array, start: int, sums: Array, level: int
) -> int:
    own, share = labels[start : start + len(z)], weights[start : start + len(z)]
    wrong = np.flatnonzero((own < 0) | (own >= z.shape[1]))
    if len(wrong):
        return int(wrong[0])
    scores = (z if weight is None else z * weight) + bias
    scores -= scores.max(1, keepdims=True)
    at_label, rows = scores[np.arange(len(z)), own], np.arange(len(z))
    error = np.exp(scores, out=scores)
    total = error.sum(1)
    error *= (share / total)[:, None]
    error[rows, own] -= share
    sums[0] += (np.log(total) - at_label) @ share
    sums[1 : 1 + len(bias)] += error.sum(0)
    if weight is None:
        z[:] = error
    else:
        sums[1 + len(bias) :] += np.einsum("nk,nk->k", error, z)
    return -1


@np.errstate(over="ignore")  # what lies infinitely far below counts as the floor, as every other so far below
def _numpy_moment_sums(
    logits: Array, labels: Array | None, weights: Array | None, b: float, *, exact: bool, bfloat16: bool
) -> MomentSums:
    dtype = np.dtype(np.float64 if exact else np.float32)
    floor = dtype.type(_LOWEST[dtype] / b)
    sums = np.zeros(5)
    step = max(1, _PIECE // (logits.shape[1] * dtype.itemsize))
    for start in range(0, len(logits), step):
        part = slice(start, start + step)
        z = _widened(logits[part], bfloat16)
        z = z.astype(np.result_type(z, dtype), copy=False)
        shifted = z - z.max(1, keepdims=True)
        own = np.zeros(len(z))
        if labels is not None:
            wrong = np.flatnonzero((labels[part] < 0) | (labels[part] >= z.shape[1]))
            _refuse_label(labels, int(wrong[0]) if len(wrong) else -1, start, z.shape[1])
            own = shifted[np.arange(len(z)), labels[part]].astype(np.float64)
        s = np.maximum(shifted.astype(dtype, copy=False), floor)
        e = np.multiply(s, dtype.type(b), out=shifted if shifted.dtype == dtype else None)
        np.exp(e, out=e)
        total, *powers = (
            (e if power == 0 else np.multiply(e, s, out=e)).sum(1, dtype=np.float64) for power in range(4)
        )
        mean, square, cube = (each / total for each in powers)
        variance = square - mean * mean
        third = cube - mean * (mean * mean + 3 * variance)
        values = np.stack([np.log(total), mean, variance, third, own])
        sums += values.sum(1) if weights is None else values @ weights[part]
    return MomentSums(*sums.tolist())


def _widened(rows: Array, bfloat16: bool) -> Array:
    """Half precision as float32, which is exact."""
    if bfloat16:
        return (rows.astype(np.uint32) << 16).view(np.float32)
    return rows.astype(np.float32) if rows.dtype == np.float16 else rows


def _contiguous_rows(logits: Array) -> Iterator[tuple[int, Array]]:
    """(first row, rows) whose classes are contiguous: all at once, or copies of pieces that stay in the cache."""
    if not logits.size:
        return
    row, column = logits.strides
    if column == logits.itemsize and row % logits.itemsize == 0 and logits.flags.aligned:
        yield 0, logits
        return
    step = max(1, _PIECE // (logits.shape[1] * logits.itemsize))
    for start in range(0, len(logits), step):
        yield start, np.ascontiguousarray(logits[start : start + step])


def _column(values: Any, dtype: Any, rows: int) -> Any:
    """One contiguous number for each row, or None."""
    if values is None:
        return None
    if values.dtype != dtype or values.shape != (rows,):
        raise TypeError(f"labels must be {rows} int64 and weights float64, got {values.shape} {values.dtype}")
    return np.ascontiguousarray(values)


def _refuse_label(labels: Array | None, bad: int, start: int, classes: int) -> None:
    if labels is not None and bad >= 0:
        raise ValueError(f"labels must be in 0 .. {classes - 1}, got {labels[start + bad]} in row {start + bad}")


def _address(array: Array | None, start: int = 0) -> int:
    return 0 if array is None else array.ctypes.data + start * array.itemsize
