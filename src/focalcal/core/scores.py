"""Scores and labels as a caller hands them over: NumPy or torch, checked, never copied without need.

Whether scores are logits or probabilities is said by the argument's name and is not guessed from the values.
Metrics and calibrators refuse NaN and infinite scores, and probabilities off the simplex, naming the row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

# How far a row of probabilities may sum from one: what rounding K entries to the dtype costs, with room.
SUM_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
_AT_ONCE = 1 << 19  # elements: what is computed from a piece stays in the cache, and its overhead small


def as_tensor(name: str, values: Any) -> Tensor:
    """A tensor on the same memory, detached; anything array-like is taken, read-only memory maps too."""
    if isinstance(values, Tensor):
        return values.detach()
    if hasattr(values, "to_numpy"):  # pandas and polars
        values = values.to_numpy()
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise TypeError(f"{name} must have no masked entries, got a masked array; leave those rows out yourself")
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        raise TypeError(
            f"{name} must be an array of numbers or a tensor, got {array.dtype} from {type(values).__name__}"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype in (np.uint16, np.uint32, np.uint64):
        array = array.astype(np.int64)
    if any(step < 0 or step % array.itemsize for step in array.strides):
        array = array.copy()  # torch has no negative strides, nor parts of elements
    if not array.flags.writeable:
        array = np.asarray(_Writable(array))
    return torch.from_numpy(array)


class _Writable:
    """A read-only array's memory, said to be writable: torch knows no other kind, and nothing here writes."""

    def __init__(self, array: Any) -> None:
        self.array = array  # keeps the memory alive
        self.__array_interface__ = dict(array.__array_interface__, data=(array.__array_interface__["data"][0], False))


def scores_and_labels(
    name: str, scores: Any, labels: Any, *, ignore_index: int | None = None, in_range: bool = True
) -> tuple[Tensor, Tensor]:
    """Scores (N, K) or (N, K, d1, ...) and int64 labels (N, d1, ...) in 0 .. K - 1, on one device.

    Their shapes, types and the labels' range are checked (the range unless `in_range` is False, for who looks at
    every label anyway); the scores' values are not (`finite`, `on_simplex`).
    """
    scores = as_tensor(name, scores)
    if scores.dtype not in SUM_TOLERANCE:
        raise TypeError(
            f"{name} must be floating point, got {scores.dtype}; convert them, e.g. {name}.astype('float32')"
        )
    _check_ignore_index(ignore_index)
    if scores.dim() < 2:
        raise ValueError(
            f"{name} must be (N, K) or (N, K, d1, ...), one column a class, got shape {tuple(scores.shape)}; "
            "for one probability of a positive class use the multilabel_ functions, or stack (1 - p, p)"
        )
    if scores.shape[1] < 2:
        raise ValueError(f"{name} must have at least two classes (dimension 1), got shape {tuple(scores.shape)}")
    labels = class_indices(labels)
    expected = scores.shape[:1] + scores.shape[2:]
    if labels.shape != expected:
        raise ValueError(
            f"labels must have shape {tuple(expected)} for {name} of shape {tuple(scores.shape)}, "
            f"got {tuple(labels.shape)}; give one label to every row"
        )
    if labels.device != scores.device:
        raise ValueError(f"labels are on {labels.device} and {name} on {scores.device}; move one to the other")
    if labels.numel() == 0:
        raise ValueError(f"{name} must hold at least one row, got shape {tuple(scores.shape)}")
    if in_range:
        labels_below(labels, scores.shape[1], ignore_index=ignore_index)
    return scores, labels


def is_whole(value: Any) -> bool:
    """True for Python's and NumPy's integers; True and False are none."""
    return hasattr(value, "__index__") and not isinstance(value, (bool, np.bool_, Tensor))


def _check_ignore_index(value: Any) -> None:
    if value is not None and (not is_whole(value) or not -(2**63) < value < 2**63):
        raise TypeError(f"ignore_index must be a whole number of 64 bits or None, got {value!r}")


def class_indices(labels: Any) -> Tensor:
    """Labels as int64, of any shape and in any range."""
    given = as_tensor("labels", labels)
    if given.is_floating_point() or given.dtype is torch.bool:
        raise TypeError(
            f"labels must be integers, the index of each row's class, got {given.dtype}; use labels.astype(int)"
        )
    return given.long()


def labels_below(labels: Tensor, classes: int, *, ignore_index: int | None = None) -> None:
    """Refuse a label that is neither in 0 .. classes - 1 nor `ignore_index`."""
    if labels.numel():
        lowest, highest = (int(end) for end in torch.aminmax(labels))
        if lowest >= 0 and highest < classes:
            return
    wrong = (labels < 0) | (labels >= classes)
    if ignore_index is not None:
        wrong &= labels != ignore_index
    if bool(wrong.any()):
        at = int(wrong.flatten().nonzero()[0])
        exempt = "" if ignore_index is None else f" or ignore_index = {ignore_index}"
        raise ValueError(
            f"labels must be from 0 to {classes - 1}{exempt}, got {int(labels.flatten()[at])} at flat position {at}; "
            "check the labels and the number of columns of the scores, or name the value as ignore_index where that "
            "is taken"
        )


def finite(name: str, scores: Tensor) -> None:
    """Refuse NaN and infinite entries, with the first row that has one."""
    for start, rows in row_chunks(scores):
        # A sum is NaN or infinite if an entry is; large finite entries can overflow it, hence the second look.
        if not bool(torch.isfinite(rows.sum(dtype=torch.float64))) and not bool(torch.isfinite(rows).all()):
            at = int((~torch.isfinite(rows)).flatten(1).any(1).nonzero()[0])
            raise not_finite(name, start + at, rows[at])


def on_simplex(name: str, probs: Tensor, first_row: int = 0) -> None:
    """Refuse rows that are not probabilities: non-finite, negative, or not summing to one (dimension 1).

    `first_row` is the number of the first of them in the caller's array.
    """
    tolerance = SUM_TOLERANCE[probs.dtype]
    for start, rows in row_chunks(probs):
        total = rows.sum(1, dtype=torch.float64)
        if float(rows.min()) >= 0 and float((total - 1).abs().max()) <= tolerance:
            continue
        wrong = ~((rows >= 0).all(1) & ((total - 1).abs() <= tolerance))
        at = int(wrong.flatten(1).any(1).nonzero()[0] if wrong.dim() > 1 else wrong.nonzero()[0])
        raise off_simplex(name, first_row + start + at, rows[at])


def row_chunks(scores: Tensor) -> Any:
    """(first row, rows) in pieces small enough that what is computed from them stays in the cache."""
    step = max(1, _AT_ONCE // max(1, scores[:1].numel()))
    return ((start, scores[start : start + step]) for start in range(0, len(scores), step))


def not_finite(name: str, row: int, values: Tensor) -> ValueError:
    """The error for a row with NaN or an infinity in it."""
    value = float(values[~torch.isfinite(values)].flatten()[0])
    return ValueError(
        f"{name} must be finite, got {value} in row {row}; find out where it comes from, or leave the row out yourself"
    )


def off_simplex(name: str, row: int, values: Tensor, tolerance: float | None = None) -> ValueError:
    """The error for a row that holds no probabilities; `tolerance` is that of its dtype unless it was converted."""
    if not bool(torch.isfinite(values).all()):
        return not_finite(name, row, values)
    tolerance = SUM_TOLERANCE[values.dtype] if tolerance is None else tolerance
    remedy = "pass softmax(logits), or name the argument logits where that is allowed"
    lowest = float(values.min())
    if lowest < 0:
        found = f"{lowest:g}"
    else:
        total = values.sum(0, dtype=torch.float64).flatten()
        worst = float(total[(total - 1).abs().argmax()])
        found = f"a sum of {worst:.9g}"
        if values.dtype is torch.float64 and abs(worst - 1) <= SUM_TOLERANCE[torch.float32]:
            remedy = "if they were computed in float32 pass them as float32, or divide each row by its sum"
    return ValueError(
        f"{name} must be probabilities: >= 0 and summing to 1 within {tolerance:g} over the classes, "
        f"got {found} in row {row}; {remedy}"
    )
