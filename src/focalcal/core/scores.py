"""Scores and labels as a caller hands them over: checked, never copied without need.

Whether scores are logits or probabilities is said by the argument's name and is not guessed from the values. What the
values must be is in `core.checks`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core.checks import label_to_ignore, labels_below

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def as_tensor(name: str, values: Any) -> Tensor:
    """A tensor on the same memory, detached; anything array-like is taken, read-only memory maps too."""
    if isinstance(values, Tensor):
        dense(name, values)
        if values.is_meta:
            raise ValueError(f"{name} must hold numbers, got a tensor on the device meta; materialise it first")
        return values.detach().resolve_neg() if values.requires_grad or values.is_neg() else values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise TypeError(f"{name} must have no masked entries, got a masked array; leave those rows out yourself")
    array = as_array(name, values)
    if array.dtype.kind not in "fiub" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        raise TypeError(
            f"{name} must be an array of numbers or a tensor, got {array.dtype} from {type(values).__name__}"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "u" and array.itemsize > 1:
        if array.itemsize == 8 and array.size and (largest := int(array.max())) > np.iinfo(np.int64).max:
            raise ValueError(f"{name} must fit in 64 bits with sign, got {largest}; fix it")  # it could be -100 there
        array = array.astype(np.int64)
    if any(step < 0 or step % array.itemsize for step in array.strides):
        array = array.copy()  # torch has no negative strides, nor parts of elements
    if not array.flags.writeable:
        array = np.asarray(_Writable(array))
    return torch.from_numpy(array)


def dense(name: str, values: Tensor) -> None:
    """Refuse sparse, nested and other tensors that are no plain arrays."""
    if values.is_nested:
        raise TypeError(f"{name} must be a dense tensor, got a nested one; use torch.nested.to_padded_tensor(...)")
    if values.layout is not torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got {values.layout}; use {name}.to_dense()")


def as_array(name: str, values: Any) -> np.ndarray[Any, Any]:
    """NumPy's view of an array, a list, or a column or table of pandas, polars or Arrow; columns of lists as rows."""
    if isinstance(values, Tensor):
        values = as_tensor(name, values).cpu()
    foreign = hasattr(values, "to_numpy") and not type(values).__module__.startswith("pyarrow")
    try:
        array = np.asarray(values.to_numpy() if foreign else values)  # Arrow's to_numpy refuses what needs a copy
        if array.dtype.kind == "O" and not any(isinstance(item, (str, bytes)) for item in array.flat):
            array = np.array(array.tolist())  # numbers, or rows of them
    except ValueError:
        raise TypeError(f"{name} must have rows of one length, got a ragged {type(values).__name__}") from None
    return array


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
    every label anyway); the scores' values are not (`checks.finite`, `checks.on_simplex`).
    """
    scores = as_tensor(name, scores)
    if scores.dtype not in FLOATS:
        raise TypeError(
            f"{name} must be floating point, got {scores.dtype}; convert them, e.g. {name}.astype('float32')"
        )
    label_to_ignore(ignore_index)
    if scores.dim() < 2:
        raise ValueError(
            f"{name} must be (N, K) or (N, K, d1, ...), one column per class, got shape {tuple(scores.shape)}; "
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


def class_indices(labels: Any) -> Tensor:
    """Labels as int64, of any shape and in any range."""
    given = as_tensor("labels", labels)
    if given.is_floating_point() or given.dtype is torch.bool:
        raise TypeError(
            f"labels must be integers, the index of each row's class, got {given.dtype}; use labels.astype(int)"
        )
    return given.long()
