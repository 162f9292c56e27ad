"""Numbers that know how they are shown (as printed, rounded, a mean with its spread), and which of several is best.

A `Shown` number is exact wherever it is computed with or written as CSV, and has a `text` for people.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from focalcal.core.display import percent, ratio


class Shown(float):
    """A number with a text of its own; `printed` is what a reader compares, the text without a spread."""

    text: str

    @property
    def printed(self) -> str:
        """The number alone, as it is shown."""
        return self.text


class Printed(Shown):
    """A number that somebody printed, which is shown with the digits it was printed with."""

    def __new__(cls, text: str) -> Printed:
        """Of "0.180", say."""
        made = super().__new__(cls, text)
        made.text = text
        return made


class Rounded(Shown):
    """A number that is shown in a form of its own, "+.3f" say, and never as -0."""

    def __new__(cls, value: float, form: str) -> Rounded:
        """Of any number; NaN is shown as missing."""
        made = super().__new__(cls, value)
        text = format(float(value) + 0.0, form)
        made.text = text if any(digit in text for digit in "123456789in") else text.replace("-", "+" * ("+" in form))
        return made


class Percent(Shown):
    """A share in percent, with the digits that sentences, tables and figures have in common; NaN is missing.

    Of `signed` differences, points without the sign %.

    >>> Percent(0.0532).text, Percent(0.00185).text, Percent(-0.004, signed=True).text
    ('5.3 %', '0.185 %', '-0.400')
    """

    def __new__(cls, value: float, *, signed: bool = False) -> Percent:
        """Of a share from 0 to 1, or a difference of two."""

        made = super().__new__(cls, value)
        if not math.isfinite(value):
            made.text = str(float(value))
        elif not signed:
            made.text = percent(value)
        else:
            made.text = ("+" if value > 0 else "") + percent(value).removesuffix(" %")
        return made


class Ratio(Shown):
    """An O/E ratio or a slope, as sentences show it."""

    def __new__(cls, value: float) -> Ratio:
        """Of any number."""

        made = super().__new__(cls, value)
        made.text = ratio(value)
        return made


def four(value: float) -> Rounded:
    """A score as sentences, tables and figures show it: four digits, or three and a power of ten.

    >>> four(1.94871).text, four(0.0123).text, four(3e-6).text
    ('1.949', '0.01230', '3.00e-06')
    """
    size = abs(value)
    digits = 3 - math.floor(math.log10(size)) if math.isfinite(size) and 1e-3 <= size < 1e4 else None
    return Rounded(value, ".2e" if digits is None and size else f".{digits or 0}f")


class Mean(Shown):
    """A mean over runs, and their standard deviation (n - 1); NaN and not shown for a single one.

    Shown as 4.58 ± 0.13 with `decimals`; whether two of them tie is decided by the mean as printed.
    """

    deviation: float
    n: int
    decimals: int

    def __new__(cls, values: Iterable[float], *, decimals: int) -> Mean:
        """Of one value at least; an infinite one makes the mean infinite, without a spread."""
        listed = list(values)
        made = super().__new__(cls, statistics.fmean(listed))
        made.deviation = statistics.stdev(listed) if len(listed) > 1 and math.isfinite(made) else math.nan
        made.n, made.decimals = len(listed), decimals
        made.text = made.printed + ("" if math.isnan(made.deviation) else f" ± {made.deviation:.{decimals}f}")
        return made

    @property
    def printed(self) -> str:
        """The mean alone, as it is shown."""
        return Rounded(self, f".{self.decimals}f").text


def best(cells: Sequence[Any], *, higher: bool = False, among: Sequence[bool] | None = None) -> list[bool]:
    """Which cells are the best as printed: all that tie, and none where there is nothing to be better than.

    `among` says which cells may be best; the others count as something to be better than.
    """
    values = [None if cell is None else float(cell.printed if isinstance(cell, Shown) else cell) for cell in cells]
    known = [value is not None and not math.isnan(value) for value in values]
    allowed = known if among is None else [a and b for a, b in zip(known, among, strict=True)]
    there = [value for value, may in zip(values, allowed, strict=True) if value is not None and may]
    if not there or sum(known) < 2:
        return [False] * len(cells)
    top = max(there) if higher else min(there)
    return [may and value == top and math.isfinite(top) for value, may in zip(values, allowed, strict=True)]
