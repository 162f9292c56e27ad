"""Classes and groups of rows, each by itself, with intervals that are corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.metrics.reliability import wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Part:
    """Rows that belong together: mean confidence, accuracy, and the interval of their difference.

    `low` and `high` hold for all parts at once at 95 %, by Bonferroni: from Wilson's interval of the accuracy.
    """

    name: str
    rows: int
    confidence: float
    accuracy: float
    low: float
    high: float

    @property
    def gap(self) -> float:
        """Confidence minus accuracy."""
        return self.confidence - self.accuracy

    @property
    def off(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low > 0 or self.high < 0


def parts_of(
    names: Sequence[Any], member: NDArray[np.int64], confidence: NDArray[np.float64], correct: NDArray[np.bool_]
) -> list[Part]:
    """One part per name that has rows, worst first: those whose interval leaves out 0, then by the size of the gap.

    `member` (n,) is the place in `names` that each row belongs to.
    """
    count = np.bincount(member, minlength=len(names))
    sure = np.bincount(member, weights=confidence, minlength=len(names))
    right = np.bincount(member, weights=correct.astype(np.float64), minlength=len(names))
    filled = np.flatnonzero(count)
    low, high = wilson(right[filled], count[filled].astype(np.float64), 1 - 0.05 / len(filled))
    parts = [
        Part(
            str(names[k]),
            int(count[k]),
            float(sure[k] / count[k]),
            float(right[k] / count[k]),
            float(sure[k] / count[k] - high[at]),
            float(sure[k] / count[k] - low[at]),
        )
        for at, k in enumerate(filled.tolist())
    ]
    return sorted(
        parts, key=lambda part: (not part.off, -min(abs(part.low), abs(part.high)) * part.off, -abs(part.gap))
    )
