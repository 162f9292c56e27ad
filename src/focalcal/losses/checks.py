"""Checks of what a caller of a loss handed over. Each error names the argument, the rule, the value and the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core import checks
from focalcal.core.checks import shown

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
REDUCTIONS = ("mean", "sum", "none")


def finite_at_least(name: str, value: float, lowest: float) -> float:
    """`value` as a float, if it is a finite number no smaller than `lowest`."""
    if torch.compiler.is_compiling():  # a symbol there, and checked when the loss was made
        return value
    return checks.finite_at_least(name, value, lowest)


def dense(name: str, values: Tensor) -> None:
    """Refuse sparse, nested and other tensors that are no plain arrays."""
    if values.is_nested:
        raise TypeError(f"{name} must be a dense tensor, got a nested one; use torch.nested.to_padded_tensor(...)")
    if values.layout is not torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got {values.layout}; use {name}.to_dense()")


def class_weight(weight: Any) -> Tensor | None:
    """A vector of finite, non-negative class weights, or None."""
    if weight is None:
        return None
    each = vector("weight", weight)
    if not each.is_meta and not bool((torch.isfinite(each) & (each >= 0)).all()):
        raise ValueError(f"weight must be finite and >= 0 in every class, got {shown(each.tolist())}")
    return each


def vector(name: str, values: Any) -> Tensor:
    """A tensor of one dimension and floating point, of a tensor, an array or a list of numbers."""
    try:
        tensor: Tensor = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
    except (TypeError, ValueError):  # words, or lists of several lengths
        raise TypeError(f"{name} must be a tensor, an array or a list of numbers, got {shown(values)}") from None
    dense(name, tensor)
    if tensor.is_complex() or tensor.dtype is torch.bool:
        raise TypeError(f"{name} must hold real numbers, got {tensor.dtype}; use .float()")
    if tensor.dim() != 1:
        raise ValueError(f"{name} must have one dimension, got shape {tuple(tensor.shape)}; pass a list of numbers")
    return tensor.resolve_neg() if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def class_axis(logits: Tensor) -> int:
    """1, or 0 for a single example without a batch dimension, as in `F.cross_entropy`."""
    return 1 if logits.dim() > 1 else 0


def class_count(logits: Any) -> int:
    """How many classes the logits (N, K, d1, ...) or (K,) have; refuses what are no logits."""
    if not isinstance(logits, Tensor):
        raise TypeError(f"logits must be a torch.Tensor, got {type(logits).__name__}; use torch.as_tensor(...)")
    dense("logits", logits)
    shape = logits.shape
    if not shape:
        raise ValueError("logits must be (N, K), (N, K, d1, ...) or (K,), got a scalar; keep the class dimension")
    classes = shape[1] if len(shape) > 1 else shape[0]
    if classes < 1:
        raise ValueError(f"logits must have at least one class, got shape {tuple(shape)}")
    return classes


def holds_probabilities(logits: Any, target: Any, weight: Tensor | None) -> bool:
    """Check shapes, dtypes and devices; True if `target` holds class probabilities, False for indices.

    Logits are (N, K, d1, ...) or (K,); indices (N, d1, ...) or (); probabilities have the logits' shape.
    The values of the indices are checked by whoever reads them (`labels_in_range`, or the kernel).
    """
    classes = class_count(logits)
    if logits.dtype not in FLOATS:
        raise TypeError(f"logits must be floating point, got {logits.dtype}; use logits.float()")
    if not isinstance(target, Tensor):
        raise TypeError(f"target must be a torch.Tensor, got {type(target).__name__}; use torch.as_tensor(...)")
    dense("target", target)
    shape = logits.shape
    soft = target.is_floating_point()
    expected = shape if soft else shape[:1] + shape[2:] if len(shape) > 1 else shape[:0]
    if target.shape != expected:
        remedy = "indices drop the class dimension (dimension 1), probabilities keep it"
        if len(shape) == 1:
            remedy = f"such logits are one example with {classes} classes, and {classes} examples are ({classes}, K)"
        raise ValueError(
            f"target must have shape {tuple(expected)} for {'class probabilities' if soft else 'class indices'} "
            f"with logits of shape {tuple(shape)}, got {tuple(target.shape)}; {remedy}"
        )
    if target.dtype not in (FLOATS if soft else INTEGERS):
        raise TypeError(
            f"target must hold class indices (int64) or class probabilities (float), got {target.dtype}; "
            "use target.long() or target.float()"
        )
    if target.device != logits.device:
        raise ValueError(f"target is on {target.device} and logits on {logits.device}; use target.to(logits.device)")
    if weight is not None and weight.shape != (classes,):
        raise ValueError(
            f"weight must have one entry per class, shape ({classes},), got {tuple(weight.shape)}; "
            "give a weight to every class"
        )
    if weight is not None:
        with_values(weight, logits)
    return soft


def with_values(weight: Tensor, logits: Tensor) -> None:
    """Refuse a weight on the meta device, unless the logits are there too; any other is moved to them."""
    if weight.is_meta and not logits.is_meta:
        raise ValueError(f"weight is on meta, without values, and logits on {logits.device}; give the loss its weight")


def bad_label(label: int, position: int, classes: int, ignore_index: int | None) -> ValueError:
    """The error for a label that is not a class."""
    exempt = "" if ignore_index is None else f" or ignore_index = {ignore_index}"
    return ValueError(
        f"target must hold class indices from 0 to {classes - 1}{exempt}, "
        f"got {label} at flat position {position}; check the labels, or the number of classes of the logits"
    )


def labels_in_range(labels: Tensor, classes: int, ignore_index: int | None) -> None:
    """Refuse a label outside 0 .. classes - 1 that is not `ignore_index`. Reads the labels, which a GPU waits for."""
    wrong = (labels < 0) | (labels >= classes)
    if ignore_index is not None:
        wrong &= labels != ignore_index
    if bool(wrong.any()):
        position = int(wrong.flatten().nonzero()[0])
        raise bad_label(int(labels.flatten()[position]), position, classes, ignore_index)
