"""Logits and labels as calibrators take them: checked, (N, K) only; results in the kind that was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core.numerics import at_least_float32
from focalcal.core.scores import as_tensor, finite, row_chunks, scores_and_labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int


def logits_and_labels(logits: Any, labels: Any) -> tuple[Float[Tensor, "n k"], Int[Tensor, " n"]]:
    """Finite logits (N, K), K >= 2, and labels in 0 .. K - 1, of which at least two occur."""
    if labels is None:
        raise ValueError("labels must be given, got None: requires y to be passed, but the target y is None")
    scores, index = scores_and_labels("logits", finite_logits(logits), labels)
    if bool((index == index[0]).all()):
        raise ValueError(
            f"labels must hold at least two classes, got one class only, {int(index[0])}, in {len(index)} rows; "
            "nothing can be learnt about the others: fit on rows of every class"
        )
    return scores, index


def finite_logits(logits: Any) -> Float[Tensor, "n k"]:
    """Finite logits (N, K) with at least one row and two classes."""
    scores = class_columns(logits)
    if not scores.is_floating_point():
        raise TypeError(
            f"logits must be floating point, got {scores.dtype}; convert them, e.g. logits.astype('float32')"
        )
    if scores.shape[1] < 2:
        raise ValueError(
            f"logits must have one column a class, got {scores.shape[1]} feature(s) "
            f"(shape={tuple(scores.shape)}) while a minimum of 2 is required. "
            "For one logit z of a positive class stack (0, z)"
        )
    if len(scores) == 0:
        raise ValueError(f"logits must hold at least one row, got shape {tuple(scores.shape)}")
    finite("logits", scores)
    return scores


def class_columns(logits: Any) -> Tensor:
    """Anything array-like with two dimensions, as a tensor; sparse and complex arrays are refused by name."""
    if hasattr(logits, "tocsr"):
        raise TypeError(f"logits must be dense, got a sparse {type(logits).__name__}; use logits.toarray()")
    kind = logits.dtype if hasattr(logits, "dtype") else None
    if str(kind).removeprefix("torch.").startswith("complex"):
        raise ValueError(f"Complex data not supported: logits must be real, got {kind}; use logits.real")
    scores = as_tensor("logits", logits)
    if scores.dim() != 2:
        raise ValueError(
            f"logits must be (N, K), one row an example and one column a class, got shape {tuple(scores.shape)}. "
            "Reshape your data: one example is logits.reshape(1, -1); for pixels move the classes last and flatten"
        )
    return scores


def map_rows(logits: Float[Tensor, "n k"], function: Callable[[Tensor], Tensor]) -> Float[Tensor, "n k"]:
    """`function` of the rows in float64, a chunk at a time; float32 or float64 as the logits are (half: float32)."""
    result = torch.empty(logits.shape, dtype=at_least_float32(logits[:0]).dtype, device=logits.device)
    for start, rows in row_chunks(logits):
        result[start : start + len(rows)] = function(rows.double())
    return result


def in_kind_of(given: Any, result: Tensor) -> Any:
    """A tensor if a tensor was given, else a NumPy array."""
    return result if isinstance(given, Tensor) else result.numpy()


def softmax_in_kind(logits: Any) -> Any:
    """softmax of checked logits, computed in float64, in the kind and dtype of what was given."""
    return in_kind_of(logits, map_rows(finite_logits(logits), lambda rows: rows.softmax(1)))


def as_float64(scores: Tensor) -> Any:
    """A NumPy array in float64."""
    return np.ascontiguousarray(scores.double().cpu().numpy())
