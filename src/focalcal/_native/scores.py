"""The pass over an array of probabilities or logits, as a function of NumPy arrays."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from focalcal._native import available, kernel, threads

Array = np.ndarray[Any, Any]

DTYPES = {np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.float16): 3}
_BRIER, _NLL, _CLASSES = 1, 2, 4


class ScorePass(NamedTuple):
    """What one pass gives; what was not asked for is None."""

    bad: int  # the flat position of the first row that holds no probabilities or a wrong label, or -1
    totals: Array  # rows counted, wrong ones, sums of Brier scores and of NLLs, how far a row misses one at most
    bins: Array  # (3, bins): count, sum of confidences, how many right
    classes: Array | None  # (3, K, bins): the same for each class's probability against its label
    confidence: Array | None  # for each row, in the dtype of the probabilities, but at least float32
    correct: Array | None  # for each row, bool
    brier: Array | None
    nll: Array | None


def usable(scores: Array) -> bool:
    """True if the kernel can read the array: float16, float32 or float64."""
    return scores.dtype in DTYPES and available()


def score_pass(
    scores: Array,
    labels: Array,
    edges: Array,
    tolerance: float,
    least: float,
    *,
    logits: bool = False,
    ignore_index: int | None = None,
    classes: bool = False,
    brier: bool = False,
    nll: bool = False,
    rows: bool = False,
    instruction_set: int = -1,
) -> ScorePass:
    """Probabilities or logits (N, K, d1, ...), int64 labels (N, d1, ...), evenly spaced float64 `edges` of the bins.

    A row holds probabilities if no entry is below `least` and their sum is within `tolerance` of one; a p_y below 0 has
    the logarithm of 0. `rows` asks for each row's values besides the sums. After a bad row nothing else is to be used.

    Of `logits` softmax is taken in float64, a few rows at a time, and the likelihood is finite where p_y rounds to 0. A
    row is bad if it holds NaN or +inf, or -inf alone.
    """
    scores, strides = evenly_spaced(scores)
    labels, edges = np.ascontiguousarray(labels), np.ascontiguousarray(edges)
    outer, columns, inner = len(scores), scores.shape[1], math.prod(scores.shape[2:])
    count, bins = outer * inner, len(edges) - 1
    if labels.dtype != np.int64 or labels.size != count or edges.dtype != np.float64:
        raise TypeError(f"labels must be {count} int64 and edges float64, got {labels.size} {labels.dtype}")
    totals, sums = np.zeros(5), np.zeros((3, bins))
    by_class = np.zeros((3, columns, bins)) if classes else None
    confidence = np.empty(count, np.float64 if logits else np.result_type(scores, np.float32)) if rows else None
    correct = np.empty(count, np.bool_) if rows else None
    row_nll = np.zeros(count) if rows and nll else None
    row_brier = np.zeros(count) if rows and brier else None
    bad = kernel().score_pass(
        scores.ctypes.data, DTYPES[scores.dtype], outer, columns, inner, *strides, labels.ctypes.data,
        ignore_index is not None, ignore_index or 0, tolerance, least,
        _BRIER * brier | _NLL * nll | _CLASSES * classes, bins, edges.ctypes.data, totals.ctypes.data, sums.ctypes.data,
        _address(by_class), _address(confidence), _address(correct), _address(row_nll), _address(row_brier),
        threads(), instruction_set, logits,
    )  # fmt: skip
    return ScorePass(bad, totals, sums, by_class, confidence, correct, row_brier, row_nll)


def evenly_spaced(array: Array) -> tuple[Array, tuple[int, int, int]]:
    """An (N, K, d1, ...) array whose positions d1, ... have one stride; strides in elements (row, class, position).

    The array itself where it can be: NumPy copies what a reshape cannot look at in place.
    """
    if not array.flags.aligned or any(step % array.itemsize for step in array.strides):
        array = np.ascontiguousarray(array)
    if array.ndim > 3:
        array = array.reshape(*array.shape[:2], math.prod(array.shape[2:]))
    row, column, *position = (step // array.itemsize for step in array.strides)
    return array, (row, column, position[0] if position else 1)


def bin_moments(confidence: Array, correct: Array, edges: Array, *, even: bool) -> Array:
    """(5, bins): the sums over each bin of 1, f, a, f^2 and f a, for confidences f and correctness a (bool).

    `even` says that the edges are k / bins, where a value's bin need not be searched for.
    """
    confidence = np.ascontiguousarray(confidence, np.result_type(confidence, np.float32))
    correct, edges = np.ascontiguousarray(correct), np.ascontiguousarray(edges)
    if correct.dtype != np.bool_ or correct.shape != confidence.shape or edges.dtype != np.float64:
        raise TypeError(f"correct must be bool of shape {confidence.shape}, got {correct.dtype}")
    sums = np.zeros((5, len(edges) - 1))
    kernel().bin_moments(
        confidence.ctypes.data, DTYPES[confidence.dtype], correct.ctypes.data, confidence.size,
        edges.ctypes.data, len(edges) - 1, even, sums.ctypes.data,
    )  # fmt: skip
    return sums


def _address(array: Array | None) -> int:
    return 0 if array is None else array.ctypes.data
