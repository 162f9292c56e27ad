"""Numbers that know how they are shown (as printed, rounded, a mean with its spread), and which of several is best."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any


class Printed(float):
    """A number that somebody printed, which is shown with the digits it was printed with."""

    text: str

    def __new__(cls, text: str) -> Printed:
        """Of "0.180", say."""
        made = super().__new__(cls, text)
        made.text = text
        return made


class Rounded(float):
    """A number that is shown in a form of its own, "+.3f" say, and is exact in CSV."""

    form: str

    def __new__(cls, value: float, form: str) -> Rounded:
        """Of any number; NaN is shown as missing."""
        made = super().__new__(cls, value)
        made.form = form
        return made

    @property
    def text(self) -> str:
        """As it is shown; no -0."""
        shown = format(float(self) + 0.0, self.form)
        return shown if any(digit in shown for digit in "123456789in") else shown.replace("-", "+" * ("+" in self.form))


class Mean(float):
    """A mean over runs, and their standard deviation (n - 1); NaN and not shown for a single one.

    Shown as 4.58 ± 0.13 with `decimals`, which is also what decides whether two of them tie.
    """

    deviation: float
    n: int
    decimals: int

    def __new__(cls, values: Iterable[float], *, decimals: int) -> Mean:
        """Of one value at least; an infinite one makes the mean infinite, without a spread."""
        found = list(values)
        made = super().__new__(cls, statistics.fmean(found))
        made.deviation = statistics.stdev(found) if len(found) > 1 and math.isfinite(made) else math.nan
        made.n = len(found)
        made.decimals = decimals
        return made

    @property
    def text(self) -> str:
        """4.58 ± 0.13, or 4.58."""
        spread = "" if math.isnan(self.deviation) else f" ± {self.deviation:.{self.decimals}f}"
        return self.printed + spread

    @property
    def printed(self) -> str:
        """The mean alone, as it is shown."""
        return Rounded(self, f".{self.decimals}f").text


def printed(cell: Any) -> float | None:
    """The number that a reader sees, which is what ties are decided by; None for an empty cell."""
    if cell is None:
        return None
    value = float(cell.printed if isinstance(cell, Mean) else cell.text if isinstance(cell, Rounded) else cell)
    return None if math.isnan(value) else value


def best(cells: Sequence[Any], *, higher: bool = False, among: Sequence[bool] | None = None) -> list[bool]:
    """Which cells are the best as printed: all that tie, and none where there is nothing to be better than.

    `among` says which cells may be best; the others count as something to be better than.
    """
    values = [printed(cell) for cell in cells]
    allowed = [True] * len(values) if among is None else among
    there = [value for value, may in zip(values, allowed, strict=True) if value is not None and may]
    if not there or sum(value is not None for value in values) < 2:
        return [False] * len(cells)
    top = max(there) if higher else min(there)
    return [may and value == top and math.isfinite(top) for value, may in zip(values, allowed, strict=True)]
