"""Checks of what the networks are built from. Each error names the argument, the rule, the value and the remedy."""

from __future__ import annotations

from operator import index
from typing import Any

from focalcal.core.arrays import finite_at_least


def whole_number(name: str, value: Any, *, least: int) -> int:
    """`value` as an int, if it is a whole number no smaller than `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, got {value!r} of type {type(value).__name__}; pass an int")
    number = index(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}; choose a value in that range")
    return number


def class_count(classes: Any) -> int:
    """The number of classes: two or more, since a softmax over one class is constant."""
    return whole_number("classes", classes, least=2)


def share(name: str, value: float) -> float:
    """A probability below one, such as that of dropping something."""
    number = finite_at_least(name, value, 0.0)
    if number >= 1.0:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}; at 1 nothing would be left")
    return number
