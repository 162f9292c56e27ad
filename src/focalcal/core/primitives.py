"""Values in the one form that JSON gives back unchanged: what recipes and specs are made of."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from focalcal.core.checks import finite_at_least, text

Options = tuple[tuple[str, Any], ...]


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
