"""Checks of the calibrators' own arguments."""

from __future__ import annotations

import math

import numpy as np

from focalcal.core.arrays import finite_at_least


def penalty(name: str, value: float) -> float:
    """A penalty's strength: a number >= 0, infinity included."""
    return math.inf if value == math.inf else finite_at_least(name, value, 0.0)


def positive_count(name: str, value: int) -> None:
    """Refuse what is not a whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
