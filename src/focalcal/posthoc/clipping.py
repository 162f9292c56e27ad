"""What a calibrator takes the logarithm of where a probability is given as exactly 0 or 1.

No logarithm of 0 is of any use, and the one of the smallest double outweighs every other row. What 0 stands for is read
off the rows of the fit:

    printed       every entry is a number of d decimals, d = 2, 3 or 4 (the least that does; per cent at least, so that
                  0.5, 0.9 and 1 have two): half of the last digit, 0.5 * 10^-d
    otherwise     1 / (2 n), n rows: an event that happened in none of n rows
    in any case   at most the smallest entry above 0

The bound c is for a row's zeros together: entries are clipped to [c / (K - 1), 1 - c], which for two classes is
[c, 1 - c]. In the rows of the fit nothing but zeros and ones moves, and the order of entries stays. Metrics never clip.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.checks import shown
from focalcal.core.chunks import row_chunks

if TYPE_CHECKING:
    from jaxtyping import Float

_ONES = (100, 1000, 10_000)  # of the last digit of 2, 3 and 4 decimals
_ROUNDING = 1e-7  # of a printed number in float32


def checked_clip(clip: Any) -> float:
    """A caller's bound."""
    if isinstance(clip, bool) or not isinstance(clip, Real) or not 0 < float(clip) < 0.5:
        raise ValueError(
            f"clip must be above 0 and below 0.5, got {shown(clip)}; leave it out to have it read off the rows"
        )
    return float(clip)


def bound_of(probs: Float[np.ndarray, "n k"]) -> float:
    """What 0 stands for in these rows, as said above.

    >>> bound_of(np.array([[0.5, 0.5], [0.1, 0.9], [0.0, 1.0]]))
    0.005
    """
    inside = [rows[(rows > 0) & (rows < 1)].astype(np.float64) for _, rows in row_chunks(probs)]
    smallest: float = min((float(part.min()) for part in inside if len(part)), default=math.inf)
    for one in _ONES:
        if smallest < math.inf and all(_printed(part, one) for part in inside):
            return min(0.5 / one, smallest)
    return min(0.5 / max(len(probs), 2), smallest)


def _printed(values: Float[np.ndarray, " n"], one: int) -> bool:
    """Whether all are whole multiples of 1 / one, but for rounding."""
    scaled = values * one
    return bool((np.abs(scaled - scaled.round()) <= _ROUNDING * one).all())


def clipped(probs: Float[np.ndarray, "n k"], clip: float) -> Float[np.ndarray, "n k"]:
    """In float64."""
    return probs.astype(np.float64).clip(clip / (probs.shape[1] - 1), 1 - clip)


def zeros_message(probs: Float[np.ndarray, "n k"], clip: float) -> str:
    """How many entries of 0 there are and what they count as; "" if there are none."""
    zeros = probs <= 0
    number = int(zeros.sum())
    if not number:
        return ""
    return (
        f"{number} entries of 0, in {int(zeros.any(1).sum())} of {len(probs)} rows, which calibrators take for "
        f"{clip / (probs.shape[1] - 1):.3g}, and 1 for 1 - {clip:.3g}"
    )
