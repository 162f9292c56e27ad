"""Arrays in and out: the one place that knows what a tensor, a frame, a column or a list is. Inside all is NumPy.

Nothing is copied without need, and nothing here imports torch: who hands over a tensor has imported it. Whether scores
are logits or probabilities is said by the argument's name and is not guessed from the values. What the values must be
is in `core.checks`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.checks import label_to_ignore, labels_below

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    Scores = Float[np.ndarray, "n k"]  # logits or probabilities, a row per example and a column per class
    Labels = Int[np.ndarray, " n"]
    PerRow = Float[np.ndarray, " n"]  # weights, losses, confidences

Array = np.ndarray[Any, Any]
FLOATS = tuple(map(np.dtype, ("float64", "float32", "float16")))
_PLAIN = frozenset(map(np.dtype, ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?")))


def is_tensor(values: Any) -> bool:
    """True for tensors of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, getattr(torch, "Tensor", ()))


def like_given(given: Any, result: Array) -> Any:
    """The result as a tensor on the device of `given` if that is a tensor, else as it is."""
    if not is_tensor(given):
        return result
    from_numpy = sys.modules["torch"].from_numpy
    return from_numpy(result if result.flags.writeable else result.copy()).to(given.device)


def as_array(name: str, values: Any) -> Array:
    """Numbers or booleans as an array, on the same memory where that can be; anything array-like is taken.

    A tensor is detached and taken to the CPU; bfloat16, which NumPy lacks, becomes float32, which holds its values.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise TypeError(f"{name} must have no masked entries, got a masked array; leave those rows out yourself")
    array: Array = values if type(values) is np.ndarray else as_values(name, values)
    dtype = array.dtype
    if dtype in _PLAIN and dtype.isnative:
        return array
    if dtype.name == "bfloat16":
        return array.astype(np.float32)
    if dtype.kind not in "fiub" or (dtype.kind == "f" and dtype.itemsize > 8):
        raise TypeError(f"{name} must be an array of numbers or a tensor, got {dtype} from {type(values).__name__}")
    if dtype.kind == "u" and dtype.itemsize > 1:
        if dtype.itemsize == 8 and array.size and (largest := int(array.max())) > np.iinfo(np.int64).max:
            raise ValueError(f"{name} must fit in 64 bits with sign, got {largest}; fix it")  # it could be -100 there
        return array.astype(np.int64)
    return array.astype(dtype.newbyteorder("="))


def as_values(name: str, values: Any) -> Array:
    """Numbers or names as NumPy has them: of an array, a list, a tensor, or a column or table of pandas, polars or
    Arrow; columns of lists as rows.
    """
    if is_tensor(values):
        return _of_tensor(name, values)
    foreign = hasattr(values, "to_numpy") and not type(values).__module__.startswith("pyarrow")
    try:
        if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
            return np.from_dlpack(values)
        array = np.asarray(values.to_numpy() if foreign else values)  # Arrow's to_numpy refuses what needs a copy
        if array.dtype.kind == "O" and not any(isinstance(item, (str, bytes)) for item in array.flat):
            array = np.array(array.tolist())  # numbers, or rows of them
    except ValueError:
        raise TypeError(f"{name} must have rows of one length, got a ragged {type(values).__name__}") from None
    return array


def _of_tensor(name: str, tensor: Any) -> Array:
    torch = sys.modules["torch"]
    dense(name, tensor)
    if tensor.is_meta:
        raise ValueError(f"{name} must hold numbers, got a tensor on the device meta; materialise it first")
    if tensor.is_complex():
        raise TypeError(f"{name} must hold real numbers, got {tensor.dtype}; pass .real or .abs()")
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.float()
    try:
        array: Array = tensor.detach().cpu().resolve_neg().numpy()
    except TypeError:
        raise TypeError(f"{name} must hold numbers that NumPy has, got {tensor.dtype}; use {name}.float()") from None
    return array


def dense(name: str, tensor: Any) -> None:
    """Refuse sparse, nested and other tensors that are no plain arrays."""
    if tensor.is_nested:
        raise TypeError(f"{name} must be a dense tensor, got a nested one; use torch.nested.to_padded_tensor(...)")
    if tensor.layout is not sys.modules["torch"].strided:
        raise TypeError(f"{name} must be a dense tensor, got {tensor.layout}; use {name}.to_dense()")


def scores_and_labels(
    name: str, scores: Any, labels: Any, *, ignore_index: int | None = None, in_range: bool = True
) -> tuple[Array, Array]:
    """Scores (N, K) or (N, K, d1, ...) and int64 labels (N, d1, ...) in 0 .. K - 1.

    Their shapes, types and the labels' range are checked (the range unless `in_range` is False, for who looks at
    every label anyway); the scores' values are not (`checks.finite`, `checks.on_simplex`).
    """
    scores = as_array(name, scores)
    if scores.dtype.kind != "f":
        raise TypeError(
            f"{name} must be floating point, got {scores.dtype}; convert them, e.g. {name}.astype('float32')"
        )
    label_to_ignore(ignore_index)
    shape = scores.shape
    if len(shape) < 2:
        raise ValueError(
            f"{name} must be (N, K) or (N, K, d1, ...), one column per class, got shape {shape}; "
            "for one probability of a positive class use the multilabel_ functions, or stack (1 - p, p)"
        )
    if shape[1] < 2:
        raise ValueError(f"{name} must have at least two classes (dimension 1), got shape {shape}")
    labels = class_indices(labels)
    expected = shape[:1] + shape[2:]
    if labels.shape != expected:
        raise ValueError(
            f"labels must have shape {expected} for {name} of shape {shape}, "
            f"got {labels.shape}; "
            + (
                f"classes are dimension 1: pass np.moveaxis({name}, -1, 1)"
                if len(shape) > 2 and labels.shape == shape[:-1]
                else "give one label to every row"
            )
        )
    if labels.size == 0:
        raise ValueError(f"{name} must hold at least one row, got shape {shape}")
    if in_range:
        labels_below(labels, shape[1], ignore_index=ignore_index)
    return scores, labels


def class_indices(labels: Any) -> Array:
    """Labels as int64, of any shape and in any range."""
    given = as_array("labels", labels)
    if given.dtype.kind in "fb":
        raise TypeError(
            f"labels must be integers, the index of each row's class, got {given.dtype}; use labels.astype(int)"
        )
    return given.astype(np.int64, copy=False)
