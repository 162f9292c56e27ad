"""Values in the one form that JSON gives back unchanged: the checks and conversions that recipes and specs share."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from focalcal.core.arrays import finite_at_least
from focalcal.core.checks import shown

Options = tuple[tuple[str, Any], ...]


def whole(name: str, value: Any, least: int) -> int:
    """`value` as an int, if it is a whole number no smaller than `least`; 2.0 is 2."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r} of type {type(value).__name__}") from None
    if number < least:
        raise ValueError(f"{name} must be >= {least}, got {value!r}; choose a value in that range")
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


def text(name: str, value: Any) -> str:
    """`value`, if it is a string that is not empty, without NUL, which files, pages and SQL cut off or refuse."""
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} must be a string that is not empty, got {value!r}")
    if "\0" in value:
        raise ValueError(f"{name} must have no NUL character, got {value!r}; leave it out")
    return value


def numbers(name: str, values: Any) -> tuple[float, ...]:
    """Floats, from any sequence of finite numbers."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of numbers, got {values!r}")
    return tuple(finite_at_least(name, value, -math.inf) for value in values)


def options(name: str, values: Any) -> Options:
    """Pairs of option and value, sorted by option, from a mapping or such pairs."""
    pairs = values.items() if isinstance(values, Mapping) else values
    try:
        checked = {text(f"an option of {name}", key): plain(f"{name}[{key!r}]", value) for key, value in pairs}
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must be a mapping from options to plain values: {error}") from None
    return tuple(sorted(checked.items()))


def plain(name: str, value: Any) -> Any:
    """None, bool, str, int, float or a tuple of them; a whole number is an int, so that 2 and 2.0 are one value."""
    if isinstance(value, str) and value:
        return text(name, value)
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Sequence):
        return tuple(plain(name, item) for item in value)
    if hasattr(value, "__index__"):
        return operator.index(value)  # not by way of a float, which has 53 bits
    number = finite_at_least(name, value, -math.inf)
    return int(number) if number.is_integer() else number


def as_json(value: Any) -> Any:
    """Tuples as lists, at every depth."""
    return [as_json(item) for item in value] if isinstance(value, tuple) else value
