"""One sentence: calibrated as far as the rows can tell, over-confident, under-confident, uneven, or too few rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from focalcal.auditing.rows import Design
from focalcal.pages.numbers import Percent

if TYPE_CHECKING:
    from focalcal.auditing.rows import AuditRows
    from focalcal.metrics import Interval

ALPHA = 0.05  # how often a calibrated model may be called anything else
TOLERANCE = 0.05  # rows that leave a gap of this size open are too few to call a model calibrated


class Finding(StrEnum):
    """What the rows say."""

    CALIBRATED = "calibrated"
    OVERCONFIDENT = "over-confident"
    UNDERCONFIDENT = "under-confident"
    UNEVEN = "unevenly calibrated"
    TOO_FEW = "too few rows"


@dataclass(frozen=True)
class Verdict:
    """A finding, and the numbers that it rests on; `audit` makes it.

    Attributes:
        finding: "calibrated", "over-confident", "under-confident", "unevenly calibrated" or "too few rows".
        rows: how many.
        gap: mean confidence minus accuracy; positive is over-confident.
        low, high: its 95 % interval.
        ece: with its interval and what chance alone gives.

    >>> from focalcal.auditing import audit
    >>> found = audit(confidence=[0.9] * 200, correct=[True] * 120 + [False] * 80, calibrate=None).verdict
    >>> str(found.finding), round(found.gap, 2)
    ('over-confident', 0.3)
    """

    finding: Finding
    rows: int
    gap: float
    low: float
    high: float
    ece: Interval

    def _repr_html_(self) -> str:
        return f"<p><strong>{escape(self.finding)}</strong>: {escape(self.sentence)}</p>"

    @property
    def sentence(self) -> str:
        """The finding in words, with the interval and what chance alone gives."""
        gap, low, high = (Percent(value, signed=True).text for value in (self.gap, self.low, self.high))
        span, size = f"{low} to {high} points", Percent(abs(self.gap), signed=True).text.lstrip("+")
        error, chance = Percent(self.ece.estimate).text, Percent(self.ece.chance or 0).text
        error = f"ECE is {error}, of which chance alone gives {chance}"
        rows = f"{self.rows:,} row{'s' * (self.rows != 1)}"
        match self.finding:
            case Finding.CALIBRATED:
                return (
                    f"Calibrated, as far as {rows} can tell: confidence minus accuracy is {gap} points "
                    f"(95 % interval {span}), and {error}."
                )
            case Finding.OVERCONFIDENT:
                return f"Over-confident by {size} points (95 % interval {span}, {rows}); {error}."
            case Finding.UNDERCONFIDENT:
                return f"Under-confident by {size} points (95 % interval {span}, {rows}); {error}."
            case Finding.UNEVEN:
                return (
                    f"Unevenly calibrated: over-confident for some rows and under-confident for others, "
                    f"{gap} points on balance (95 % interval {span}, {rows}); {error}."
                )
        return (
            f"Too few rows to say: with {rows} confidence minus accuracy is {gap} points, and anything "
            f"from {span} is compatible with that."
        )


def verdict_of(rows: AuditRows, ece: Interval) -> Verdict:
    """From confidences c and whether each prediction is right, a, of `rows`, and the interval of the ECE at 95 %.

    Two tests share alpha = 5 %. The gap d = mean(c - a) is compared with its standard error if the confidences c are
    right, sqrt(mean(c (1 - c)) / n), two-sided at alpha / 2; the ECE with what it is for labels drawn from the
    confidences, at alpha / 2. The first gives the direction. The interval of the gap is d -+ 1.96 s / sqrt(n), s the
    standard deviation of c - a. Weights and clusters enter both standard errors; of clusters the first is that of the
    interval, if it is larger, and t takes the place of the normal distribution.
    """
    design, difference = rows.design, rows.confidence - rows.correct
    gap = design.mean(difference)
    spread = design.spread(difference - gap)
    by_chance = design.spread(np.sqrt(rows.confidence * (1 - rows.confidence)), independent=True)
    by_chance = by_chance if design.clusters is None else max(by_chance, spread)
    return _judged(len(difference), gap, spread, by_chance, ece, design)


def verdict_of_means(n: int, gap: float, square: float, variance: float, ece: Interval) -> Verdict:
    """The same from the means over n rows, of equal weight, of c - a, (c - a)^2 and c (1 - c)."""
    return _judged(n, gap, math.sqrt(max(0.0, square - gap**2) / n), math.sqrt(variance / n), ece, Design())


def _judged(n: int, gap: float, spread: float, by_chance: float, ece: Interval, design: Design) -> Verdict:
    half = design.quantile(1 - ALPHA / 2) * max(spread, by_chance if n < 30 else 0.0)
    if abs(gap) > design.quantile(1 - ALPHA / 4) * by_chance:
        finding = Finding.OVERCONFIDENT if gap > 0 else Finding.UNDERCONFIDENT
    elif ece.low > 0:
        finding = Finding.UNEVEN
    elif half > TOLERANCE:
        finding = Finding.TOO_FEW
    else:
        finding = Finding.CALIBRATED
    return Verdict(finding, n, gap, max(gap - half, -1.0), min(gap + half, 1.0), ece)  # no gap is larger
