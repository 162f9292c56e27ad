"""What a caller's values must be, each rule in one place: choices, whole numbers, labels, finite scores, probabilities.

A row of probabilities is finite, has no entry below -1e-5 and sums to one within 1e-3, whatever its dtype: a softmax in
float32 that was cast to float64, four printed digits and half precision are rounded, not damaged. (bfloat16 alone may
miss by its own spacing, 0.0078.) Values are used as they are, but that the logarithm of a negative one is that of 0. A
sum that misses one by more than 1e-5 gives one `ProbabilityWarning`.

Errors name the argument, the rule, the value and the remedy. Nothing here imports torch: solving needs NumPy alone.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.chunks import row_chunks

if TYPE_CHECKING:
    import torch
    from torch import Tensor

ROUNDING = 1e-5  # what float32 leaves of a sum over many classes, and of a difference that should be 0
SUM_TOLERANCE = 1e-3  # what printing four digits, or float16, leaves of a sum
_collected: ContextVar[dict[str, float] | None] = ContextVar("collected", default=None)


class ProbabilityWarning(UserWarning):
    """Probabilities that are used although they may not be what was meant: rounded sums, zeros to take the log of."""


def shown(value: Any) -> str:
    """What an error says that it got: one line, not too long; of an array its type and shape.

    >>> shown([1, 2]), shown(np.zeros((2, 3)))
    ('[1, 2]', 'ndarray of shape (2, 3)')
    """
    if getattr(value, "is_nested", False):
        return "a nested tensor"
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {tuple(shape)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else f"{text[:200]}..."


def one_of(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Refuse a choice that is not in the list."""
    choices = tuple(allowed)
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {shown(value)}")


def unknown_name(what: str, name: Any, known: Iterable[Any]) -> str:
    """That there is no such name, the nearest that there is, and all of them.

    >>> unknown_name("an objective", "focl", ("ce", "focal"))
    "'focl' is not an objective; did you mean 'focal'? Known: ce, focal"
    """
    names = [str(choice) for choice in known]
    near = get_close_matches(str(name), names, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else "."
    return f"{name!r} is not {what}{guess} Known: {', '.join(names) or 'none'}"


def is_whole(value: Any) -> bool:
    """True for Python's and NumPy's integers; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole_number(name: str, value: Any, *, least: int, most: int | None = None, remedy: str) -> int:
    """`value` as an int, if it is a whole number in that range."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        limits = f">= {least}" if most is None else f">= {least} and <= {most}"
        raise ValueError(f"{name} must be a whole number {limits}, got {shown(value)}; {remedy}")
    return int(value)


def between_zero_and_one(name: str, value: float, *, remedy: str) -> None:
    """Refuse a share, a level or a rate that does not lie strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {shown(value)}; {remedy}")


def label_to_ignore(value: Any) -> None:
    """Refuse an `ignore_index` that is neither None nor an int64."""
    if value is not None and (not is_whole(value) or not -(2**63) <= value < 2**63):
        raise TypeError(f"ignore_index must be a whole number of 64 bits or None, got {shown(value)}")


def labels_below(labels: Tensor, classes: int, *, ignore_index: int | None = None) -> None:
    """Refuse a label that is neither in 0 .. classes - 1 nor `ignore_index`."""
    if labels.numel():
        lowest, highest = (int(end) for end in labels.aminmax())
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
    import torch

    for start, rows in row_chunks(scores):
        # A sum is NaN or infinite if an entry is; large finite entries can overflow it, hence the second look.
        if not bool(rows.sum(dtype=torch.float64).isfinite()) and not bool(rows.isfinite().all()):
            at = int((~rows.isfinite()).flatten(1).any(1).nonzero()[0])
            raise not_finite(name, start + at, rows[at])


def possible_logits(name: str, rows: Tensor, row_of: Callable[[int], int]) -> None:
    """Refuse rows (n, K) with NaN, with +inf or without a finite entry; -inf is the logit of an impossible class.

    `row_of` numbers the row for the caller.
    """
    finite = rows.amax(1).isfinite()
    if not bool(finite.all()):
        at = int((~finite).nonzero()[0])
        wrong = rows[at][~(rows[at] < float("inf"))]
        if len(wrong):
            raise not_finite(name, row_of(at), wrong)
        raise ValueError(f"{name} must leave a class possible, got only -inf in row {row_of(at)}; leave the row out")


def finite_or_masked(name: str, logits: Tensor) -> None:
    """`possible_logits` of all rows (dimension 0)."""
    for start, rows in row_chunks(logits):
        possible_logits(name, rows, start.__add__)


def on_simplex(name: str, probs: Tensor) -> None:
    """Refuse rows (dimension 0) that are not probabilities over the classes (dimension 1); warn of rounded ones."""
    misses = [simplex_miss(name, rows, start.__add__) for start, rows in row_chunks(probs)]
    warn_of_rounding(name, max(misses, default=0.0))


def simplex_miss(name: str, rows: Tensor, row_of: Callable[[int], int], dtype: torch.dtype | None = None) -> float:
    """How far the rows (n, K, ...) are from summing to one, at most; refuses the first that holds no probabilities.

    `row_of` numbers it for the caller. `dtype` is that of the caller's array where the rows were widened.
    """
    import torch

    if rows.numel() == 0:
        return 0.0
    tolerance = sum_tolerance(rows.dtype if dtype is None else dtype)
    if rows.dim() == 2 and rows.dtype.itemsize >= 4:
        rough = torch.mv(rows, rows.new_ones(rows.shape[1]))  # faster than a sum over few columns
        bits = rows.view(torch.int32 if rows.dtype is torch.float32 else torch.int64)
        # A negative number is a negative integer too, and integers are compared faster; -0.0 gets the second look.
        miss = float(rough.sub_(1).abs_().max())
        if int(bits.min()) >= 0 and miss <= ROUNDING / 2:
            return miss
    total = rows.sum(1, dtype=torch.float64)
    wrong = off_simplex(rows.amin(1), total, tolerance)
    if bool(wrong.any()):
        at = int((wrong.flatten(1).any(1) if wrong.dim() > 1 else wrong).nonzero()[0])
        raise not_probabilities(name, row_of(at), rows[at], tolerance)
    return float((total - 1).abs().max())


def off_simplex(least: Any, total: Any, tolerance: float = SUM_TOLERANCE) -> Any:
    """Which rows hold no probabilities, from their least entries and their sums: arrays or tensors, NaN included."""
    return ~((least >= -ROUNDING) & (abs(total - 1) <= tolerance))


def holds_probabilities(scores: Tensor) -> bool:
    """Whether every row (N, K) is one of probabilities."""
    tolerance = sum_tolerance(scores.dtype)
    return not any(
        bool(off_simplex(rows.amin(1), rows.double().sum(1), tolerance).any()) for _, rows in row_chunks(scores)
    )


def sum_tolerance(dtype: torch.dtype) -> float:
    """How far a row may sum from one: 1e-3, or the spacing of the dtype at one where that is wider (bfloat16)."""
    import torch

    return max(SUM_TOLERANCE, torch.finfo(dtype).eps)


def in_unit_interval(probs: Any) -> Any:
    """Which entries, an array's or a tensor's, are the probability of one event, but for rounding."""
    return (probs >= -ROUNDING) & (probs <= 1 + ROUNDING)


def not_probabilities(name: str, row: int, values: Tensor, tolerance: float) -> ValueError:
    """The error for a row (K, ...) that is not on the simplex."""
    if not bool(values.isfinite().all()):
        return not_finite(name, row, values)
    lowest, total = float(values.min()), values.double().sum(0).flatten()
    received = f"{lowest:g}" if lowest < -ROUNDING else f"a sum of {float(total[(total - 1).abs().argmax()]):.9g}"
    return ValueError(
        f"{name} must be probabilities: >= 0 and summing to 1 within {tolerance:g} over the classes, "
        f"got {received} in row {row}; pass softmax(logits), or where that is taken logits= or normalize=True"
    )


def not_finite(name: str, row: int, values: Tensor) -> ValueError:
    """The error for a row with NaN or an infinity in it."""
    value = float(values[~values.isfinite()].flatten()[0])
    return ValueError(
        f"{name} must be finite, got {value} in row {row}; find out where it comes from, or leave the row out yourself"
    )


def warn_of_rounding(name: str, miss: float, *, used: str = "used as they are") -> None:
    """One warning if rows miss a sum of one by more than rounding in float32; its place is the line of the user."""
    collected = _collected.get()
    if collected is not None:
        collected[name] = max(miss, collected.get(name, 0.0))
    elif miss > ROUNDING:
        warnings.warn(
            f"{name} has rows that miss a sum of 1 by up to {miss:.2g}, and they are {used}; if that is more than the "
            "rounding of half precision or of printed digits, find out where they come from",
            ProbabilityWarning,
            stacklevel=user_level(),
        )


def user_level() -> int:
    """The `stacklevel` of a warning, from the function that warns to the first line outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("focalcal."):
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def rounding_collected() -> Iterator[dict[str, float]]:
    """Within it there is no `ProbabilityWarning`: it is for who warns once of rows that are looked at many times.

    Gives how far the rows of each argument miss one, at most.
    """
    misses: dict[str, float] = {}
    token = _collected.set(misses)
    try:
        yield misses
    finally:
        _collected.reset(token)
