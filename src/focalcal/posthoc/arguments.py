"""Checks of the calibrators' own arguments."""

from __future__ import annotations

import math

from focalcal.core.arrays import finite_at_least


def penalty(name: str, value: float) -> float:
    """A penalty's strength: a number >= 0, infinity included."""
    return math.inf if value == math.inf else finite_at_least(name, value, 0.0)
