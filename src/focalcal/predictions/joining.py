"""Predictions side by side: whether they are the same, and many as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from focalcal.predictions.checks import checked_split, provenance_text

if TYPE_CHECKING:
    from focalcal.predictions.record import Predictions

PER_ROW = ("scores", "labels", "ids", "groups", "posterior")


def concatenated(parts: list[Predictions], split: str | None, provenance: Mapping[str, Any] | None) -> Predictions:
    """The rows of all parts in order, under one split and provenance."""
    for part in parts:
        if not hasattr(part, "_provenance"):
            raise TypeError(f"parts must be Predictions, got {type(part).__name__}; make them such first")
    if not parts:
        raise ValueError("parts must hold at least one Predictions, got none")
    if split is not None:
        checked_split(split)
    first = parts[0]
    told = {"split": split is not None, "provenance": provenance is not None}
    for at, part in enumerate(parts):
        for what, of_first, of_part in _differences(first, part):
            if of_first != of_part and not told.get(what):
                say = f"pass {what}=" if what in told else "make them alike first"
                raise ValueError(f"parts must agree in {what}, got {of_part} in part {at} after {of_first}; {say}")
    joined = {name: _joined([getattr(part, name) for part in parts]) for name in PER_ROW}
    if split is not None:
        joined["split"] = split
    if provenance is not None:
        joined["_provenance"] = provenance_text(provenance)
    return first._with_known(**joined)


def same(one: Any, other: Any) -> bool:
    """Whether two fields are equal in type and value."""
    if one is None or other is None:
        return one is other
    if isinstance(one, Tensor):
        return one.dtype == other.dtype and one.device == other.device and torch.equal(one, other)
    return one.dtype.kind == other.dtype.kind and np.array_equal(one, other)


def _differences(first: Predictions, part: Predictions) -> Iterator[tuple[str, Any, Any]]:
    """What must be alike in two parts, and what it is in each."""
    for what in ("kind", "multilabel", "n_classes", "split", "provenance"):
        yield what, getattr(first, what), getattr(part, what)
    yield "dtype and device", (first.scores.dtype, first.scores.device), (part.scores.dtype, part.scores.device)
    for what in ("ids", "groups", "posterior"):
        yield what, _type(getattr(first, what)), _type(getattr(part, what))


def _type(values: Any) -> str:
    if values is None:
        return "none"
    if isinstance(values, Tensor):
        return str(values.dtype)
    return "integers" if values.dtype.kind == "i" else "strings"


def _joined(values: list[Any]) -> Any:
    if values[0] is None:
        return None
    return torch.cat(values) if isinstance(values[0], Tensor) else np.concatenate(values)
