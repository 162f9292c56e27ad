"""What a caller's values must be, each rule in one place: choices, numbers, labels, finite scores, probabilities.

A row of probabilities is finite, has no entry below -1e-5 and sums to one within 1e-3, whatever its dtype: a softmax in
float32 that was cast to float64, four printed digits and half precision are rounded, not damaged. (What was bfloat16,
as float32 numbers show, may miss by the spacing of that, 0.0078.) Values are used as they are, but that the logarithm
of a negative one is that of 0. A sum that misses one by more than 1e-5 gives one `ProbabilityWarning`.

Errors name the argument, the rule, the value and the remedy. Arrays are NumPy's (`core.arrays` has made them such).
"""

from __future__ import annotations

import math
import operator
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np

from focalcal.core.chunks import row_chunks

Array = np.ndarray[Any, Any]
ROUNDING = 1e-5  # what float32 leaves of a sum over many classes, and of a difference that should be 0
SUM_TOLERANCE = 1e-3  # what printing four digits, or float16, leaves of a sum
BFLOAT16_SPACING = 2.0**-7  # at one
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
    if not any(isinstance(value, type(choice)) and value == choice for choice in choices):  # an array has no one truth
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {shown(value)}")


def unknown_name(what: str, name: Any, known: Iterable[Any]) -> str:
    """That there is no such name, the nearest that there is, and all of them.

    >>> unknown_name("an objective", "focl", ("ce", "focal"))
    "'focl' is not an objective; did you mean 'focal'? Known: ce, focal"
    """
    names = [str(choice) for choice in known]
    lowered = {choice.lower(): choice for choice in reversed(names)}
    near = get_close_matches(str(name).lower(), lowered, n=1)
    guess = f"; did you mean {lowered[near[0]]!r}?" if near else "."
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


def whole(name: str, value: Any, least: int) -> int:
    """`value` as an int, if it is a whole number no smaller than `least`; 2.0 is 2."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {shown(value)} of type {type(value).__name__}") from None
    if number < least:
        raise ValueError(f"{name} must be >= {least}, got {value!r}; choose a value in that range")
    return number


def finite_at_least(name: str, value: Any, lowest: float) -> float:
    """`value` as a float, if it is a finite number no smaller than `lowest`."""
    if isinstance(value, (str, bytes, bool)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, got {shown(value)} of type {type(value).__name__}; pass a float")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError, RuntimeError):  # an array of several
        raise TypeError(f"{name} must be one number, got {shown(value)}; pass a float") from None
    if not math.isfinite(number) or number < lowest:
        raise ValueError(f"{name} must be finite and >= {lowest:g}, got {value!r:.80}; choose a value in that range")
    return number


def positive(name: str, value: Any) -> float:
    """`value` as a float, if it is finite and above zero."""
    number = finite_at_least(name, value, 0.0)
    if number == 0:
        raise ValueError(f"{name} must be > 0, got {value!r}")
    return number


def share(name: str, value: Any) -> float:
    """`value` as a float, if 0 <= value < 1."""
    number = finite_at_least(name, value, 0.0)
    if number >= 1:
        raise ValueError(f"{name} must be from 0 to below 1, got {value!r}")
    return number


def yes_or_no(name: str, value: Any) -> bool:
    """`value`, if it is a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return value


def one_class(name: str, value: Any) -> None:
    """Refuse an array or a tensor where the name or the number of a class is meant."""
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        raise TypeError(f"{name} must be one class, its name or its number, got {shown(value)}; e.g. {name}=1")


def text(name: str, value: Any) -> str:
    """`value`, if it is a string that is not empty, without NUL, which files, pages and SQL cut off or refuse."""
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} must be a string that is not empty, got {value!r}")
    if "\0" in value:
        raise ValueError(f"{name} must have no NUL character, got {value!r}; leave it out")
    return value


def between_zero_and_one(name: str, value: float, *, remedy: str) -> None:
    """Refuse a share, a level or a rate that does not lie strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {shown(value)}; {remedy}")


def label_to_ignore(value: Any) -> None:
    """Refuse an `ignore_index` that is neither None nor an int64."""
    if value is not None and (not is_whole(value) or not -(2**63) <= value < 2**63):
        raise TypeError(f"ignore_index must be a whole number of 64 bits or None, got {shown(value)}")


def labels_below(labels: Array, classes: int, *, ignore_index: int | None = None) -> None:
    """Refuse an int64 label that is neither in 0 .. classes - 1 nor `ignore_index`."""
    if not labels.size or labels.view(np.uint64).max() < classes:  # negative ones are large there
        return
    wrong = (labels < 0) | (labels >= classes)
    if ignore_index is not None:
        wrong &= labels != ignore_index
    if wrong.any():
        at = int(wrong.ravel().argmax())
        exempt = "" if ignore_index is None else f" or ignore_index = {ignore_index}"
        raise ValueError(
            f"labels must be from 0 to {classes - 1}{exempt}, got {int(labels.ravel()[at])} at flat position {at}; "
            "check the labels and the number of columns of the scores, or name the value as ignore_index where that "
            "is taken"
        )


def finite(name: str, scores: Array) -> None:
    """Refuse NaN and infinite entries, with the first row that has one."""
    for start, rows in row_chunks(scores):
        # A sum is NaN or infinite if an entry is; large finite entries can overflow it, hence the second look.
        with np.errstate(invalid="ignore", over="ignore"):
            likely = math.isfinite(rows.sum(dtype=np.float64))
        if not likely and not np.isfinite(rows).all():
            at = first_row(~np.isfinite(rows))
            raise not_finite(name, start + at, rows[at])


def first_row(marked: Array) -> int:
    """The first row (dimension 0) with a mark."""
    return int(marked.reshape(len(marked), -1).any(1).argmax())


def possible_logits(name: str, rows: Array, row_of: Callable[[int], int]) -> None:
    """Refuse rows (n, K) with NaN, with +inf or without a finite entry; -inf is the logit of an impossible class.

    `row_of` numbers the row for the caller.
    """
    finite = np.isfinite(rows.max(1))
    if not finite.all():
        at = int((~finite).argmax())
        wrong = rows[at][~(rows[at] < np.inf)]
        if len(wrong):
            raise not_finite(name, row_of(at), wrong)
        raise ValueError(f"{name} must leave a class possible, got only -inf in row {row_of(at)}; leave the row out")


def finite_or_masked(name: str, logits: Array) -> None:
    """`possible_logits` of all rows (dimension 0)."""
    for start, rows in row_chunks(logits):
        possible_logits(name, rows, start.__add__)


def on_simplex(name: str, probs: Array) -> None:
    """Refuse rows (dimension 0) that are not probabilities over the classes (dimension 1); warn of rounded ones."""
    misses = [simplex_miss(name, rows, start.__add__) for start, rows in row_chunks(probs)]
    warn_of_rounding(name, max(misses, default=0.0))


def simplex_miss(name: str, rows: Array, row_of: Callable[[int], int]) -> float:
    """How far the rows (n, K, ...) are from summing to one, at most; refuses the first that holds no probabilities.

    `row_of` numbers it for the caller.
    """
    if rows.size == 0:
        return 0.0
    if rows.ndim == 2 and rows.dtype.itemsize >= 4 and rows.min() >= 0:  # false for NaN
        rough = rows @ np.ones(rows.shape[1], rows.dtype)  # faster than a sum over few columns
        miss = float(np.abs(rough - 1).max())
        if miss <= ROUNDING / 2:
            return miss
    with np.errstate(invalid="ignore", over="ignore"):
        total = rows.sum(1, dtype=np.float64)
    least = rows.min(1)
    wrong = off_simplex(least, total)
    if wrong.any():
        wrong = off_simplex(least, total, sum_tolerance(rows))
    if wrong.any():
        at = first_row(wrong)
        raise not_probabilities(name, row_of(at), rows[at])
    return float(np.abs(total - 1).max())


def off_simplex(least: Any, total: Any, tolerance: float = SUM_TOLERANCE) -> Any:
    """Which rows hold no probabilities, from their least entries and their sums: arrays or tensors, NaN included."""
    return ~((least >= -ROUNDING) & (abs(total - 1) <= tolerance))


def holds_probabilities(scores: Array) -> bool:
    """Whether every row (N, K) is one of probabilities."""
    with np.errstate(invalid="ignore", over="ignore"):
        return not any(
            off_simplex(rows.min(1), rows.sum(1, dtype=np.float64), sum_tolerance(rows)).any()
            for _, rows in row_chunks(scores)
        )


def sum_tolerance(probs: Any) -> float:
    """How far a row may sum from one: 1e-3, or the spacing of bfloat16 at one if these are such numbers.

    Of an array or a tensor; NumPy lacks bfloat16, but float32 numbers that were such have nothing in their last bits.
    """
    if isinstance(probs, np.ndarray):
        parts = (probs[:1], probs) if probs.dtype == np.float32 else ()  # mostly the first row settles it
        was = bool(parts) and not any((part.view(np.uint32) & 0xFFFF).any() for part in parts)
    else:
        was = str(getattr(probs, "dtype", "")).endswith("bfloat16")
    return BFLOAT16_SPACING if was else SUM_TOLERANCE


def in_unit_interval(probs: Any) -> Any:
    """Which entries, an array's or a tensor's, are the probability of one event, but for rounding."""
    return (probs >= -ROUNDING) & (probs <= 1 + ROUNDING)


def not_probabilities(name: str, row: int, values: Array) -> ValueError:
    """The error for a row (K, ...) that is not on the simplex."""
    if not np.isfinite(values).all():
        return not_finite(name, row, values)
    lowest, total = float(values.min()), values.sum(0, dtype=np.float64).ravel()
    worst = float(total[np.abs(total - 1).argmax()])
    received, remedy = f"a sum of {worst:.9g}", "pass softmax(logits), or where that is taken logits= or normalize=True"
    if lowest < -ROUNDING:
        received = f"{lowest:g}"
    elif abs(worst - 1) < 0.05:
        remedy = "if they were rounded, divide each row by its sum, where it is taken with normalize=True"
    return ValueError(
        f"{name} must be probabilities: >= 0 and summing to 1 within {sum_tolerance(values):g} over the classes, "
        f"got {received} in row {row}; {remedy}"
    )


def not_finite(name: str, row: int, values: Array) -> ValueError:
    """The error for a row with NaN or an infinity in it."""
    value = float(values[~np.isfinite(values)].flat[0])
    return ValueError(
        f"{name} must be finite, got {value} in row {row}; find out where it comes from, or leave the row out yourself"
    )


def warn_of_rounding(name: str, miss: float, *, used: str = "used as they are") -> None:
    """One warning if rows miss a sum of one by more than rounding in float32; its place is the line of the user."""
    if not collect_miss(name, miss) and miss > ROUNDING:
        warn(
            f"{name} has rows that miss a sum of 1 by up to {miss:.2g}, and they are {used}; if that is more than the "
            "rounding of half precision or of printed digits, find out where they come from",
            ProbabilityWarning,
        )


def collect_miss(name: str, miss: float) -> bool:
    """Count how far rows miss a sum of one, and whether anybody collects it (`rounding_collected`)."""
    collected = _collected.get()
    if collected is not None:
        collected[name] = max(miss, collected.get(name, 0.0))
    return collected is not None


def warn(message: str, category: type[Warning]) -> None:
    """A warning whose place is the first line outside this package."""
    warnings.warn(message, category, stacklevel=user_level())


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
