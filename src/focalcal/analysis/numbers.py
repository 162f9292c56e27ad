"""Numbers as they are shown: names, units and directions of metrics, means with their spread, which of several is best.

A `Shown` number is exact wherever it is computed with or written as CSV, and has a `text` for people.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from focalcal.metrics.table import AUROC, METRICS

SINGLE_LABEL = ("error", "ece", "adaptive_ece", "classwise_ece", "smooth_ece", "nll", "brier")
_KNOWN = {**METRICS, "auroc": AUROC}
PERCENT = frozenset(name for name, metric in _KNOWN.items() if metric.unit == "share")  # shown times 100, as papers do
HIGHER_IS_BETTER = frozenset(name for name, metric in _KNOWN.items() if metric.better == "higher")
UNDIRECTED = frozenset({"confidence", "rows", "n_classes", "n_labels", "auroc_labels", "positives"}).union(
    name for name, metric in _KNOWN.items() if metric.better is None
)
TITLES = {name: metric.title for name, metric in _KNOWN.items()} | {
    "posterior_distance": "Distance from the posterior",
    "confidence_distance": "Distance of the confidence",
    "posterior_ece": "ECE against the posterior",
}
MEANINGS = {"confidence_gap": "mean confidence minus accuracy: above 0 is overconfident, below 0 underconfident"}


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


def title(metric: str) -> str:
    """`ECE` for `ece`; a name that is not known as it is."""
    return TITLES.get(metric, metric)


def in_sentence(metric: str) -> str:
    """`ECE`, `error`: as it stands within a sentence."""
    return metric if metric == "error" else title(metric)


def titled(metric: str) -> str:
    """With the unit it is shown in: `ECE %`."""
    return f"{title(metric)} %" if metric in PERCENT else title(metric)


def shown(metric: str, value: float) -> float:
    """As it is shown: times 100 where the unit is percent."""
    return 100 * value if metric in PERCENT else value


def mean(metric: str, values: Iterable[float]) -> Mean | None:
    """In the unit it is shown in; None without any. NaN was not measured and is left out; infinity was, and is kept."""
    there = [shown(metric, value) for value in values if not math.isnan(value)]
    return Mean(there, decimals=2 if metric in PERCENT else 4) if there else None


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
