"""Rows in the order of time: calibration, rate, mean score and volume of each day, week, month, quarter or year."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.parts import LEAST, Part, parts_in_order
from focalcal.pages.numbers import Percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.auditing.parts import Family
    from focalcal.auditing.rows import Design

UNITS = {  # NumPy's unit, how many of it, and how many of it before 1970 the period began that 1970-01-01 lies in
    "hour": ("h", 1, 0), "day": ("D", 1, 0), "week": ("D", 7, 3), "month": ("M", 1, 0), "quarter": ("M", 3, 0),
    "year": ("Y", 1, 0),
}  # fmt: skip
_OF_A_PANEL = ("day", "week", "month", "quarter", "year")
_MOST = {"day": 45, "week": 60, "month": 60, "quarter": 60, "year": 200}  # periods of a panel that can be read
_FEWEST = 3  # periods, unless there are fewer days
_SAID, _OFF = 3, 6  # groups and periods in a sentence
_ROWS, _EVENTS = 400, 20  # of the median period: with fewer its interval says nothing


@dataclass(frozen=True)
class Trend:
    """By how much something changed from the first period to the last, along a straight line through all rows.

    what    "gap", "predicted", "observed", or the gap of a part
    change  with `low` and `high`, its 95 % interval; those of parts hold for all of them at once
    """

    what: str
    change: float
    low: float
    high: float

    @property
    def moved(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False)
class Periods:
    """A panel in the order of time.

    unit    "day", "week" (from Monday), "month", "quarter" or "year"
    parts   one per period that has rows, by its first day or its name, such as 2026-03 or 2026-Q1
    trends  of the whole, then of each group
    """

    unit: str
    parts: tuple[Part, ...]
    trends: tuple[Trend, ...]

    @property
    def since(self) -> str:
        """The first of the last periods that are all off beyond chance; "" if the last one is not, or all are."""
        kept = [at for at, part in enumerate(self.parts) if not part.off]
        return self.parts[kept[-1] + 1].name if kept and kept[-1] + 1 < len(self.parts) else ""

    @property
    def sentence(self) -> str:
        """What moved, the whole first."""
        if not self.trends:
            return f"All rows are of one {self.unit}, {self.parts[0].name}."
        span = f"from {self.parts[0].name} to {self.parts[-1].name} ({len(self.parts)} {self.unit}s)"
        whole = [trend for trend in self.trends[:3] if trend.moved]
        groups = [trend for trend in self.trends[3:] if trend.moved]
        said = [f"No trend is shown {span}."] if not whole else [f"Moved {span}: {_listed(whole)}."]
        if groups:
            more = f" and {len(groups) - _SAID} more" if len(groups) > _SAID else ""
            said.append(f"The gap moved in {_listed(groups[:_SAID])}{more}.")
        off = [part.name for part in self.parts if part.off]
        if off:
            said.append(f"Off beyond chance: {', '.join(off[:_OFF])}{', ...' if len(off) > _OFF else ''}.")
        return " ".join(said)


def _listed(trends: Sequence[Trend]) -> str:
    names = {"gap": "the gap", "predicted": "the mean score", "observed": "the observed rate"}
    changes = [[Percent(end, signed=True).text for end in (t.change, t.low, t.high)] for t in trends]
    return "; ".join(
        f"{names.get(trend.what, trend.what)} by {change} points ({low} to {high})"
        for trend, (change, low, high) in zip(trends, changes, strict=True)
    )


def periods_of(
    times: NDArray[np.datetime64],
    sure: NDArray[np.float64],
    right: NDArray[np.bool_],
    design: Design,
    groups: Sequence[Family] = (),
    *,
    rare: bool = False,
) -> Periods:
    """The panel by the finest unit whose periods have rows enough, and, of `rare` events, events enough."""
    unit, starts, member = _unit(times, right if rare else None)
    parts = parts_in_order([([_named(start, unit) for start in starts], member)], sure, right, design)
    trends = () if len(parts) < 2 else tuple(_trends(member.astype(np.float64), sure, right, design, groups))
    return Periods(unit, tuple(parts), trends)


def _unit(
    times: NDArray[np.datetime64], right: NDArray[np.bool_] | None
) -> tuple[str, NDArray[Any], NDArray[np.int64]]:
    """The unit, the beginnings of all periods from the first to the last, and each row's place among them."""
    coarsest = None
    for unit in _OF_A_PANEL[2:] if are_months(times) else _OF_A_PANEL:
        begins = period_numbers(times, unit)
        starts = np.arange(begins.min(), begins.max() + 1)
        member = (begins - begins.min()).astype(np.int64)
        rows = np.bincount(member)
        enough = np.median(rows[rows > 0]) >= _ROWS
        if right is not None:
            enough &= np.median(np.bincount(member, right)[rows > 0]) >= _EVENTS
        seen = coarsest is None or len(starts) >= _FEWEST
        if enough and seen and len(starts) <= _MOST[unit]:
            return unit, starts, member
        if seen:
            coarsest = unit, starts, member
    assert coarsest is not None
    return coarsest  # of few rows: an order to see is worth more than narrow intervals


def are_months(times: NDArray[np.datetime64]) -> bool:
    """Whether times name months alone: 2026-03 is read as its first day, and says nothing of days and weeks."""
    return bool((times == times.astype("M8[M]")).all())


def period_numbers(times: NDArray[np.datetime64], unit: str) -> Any:
    """Each row's period as a whole number, in the order of time; a week begins on Monday."""
    code, count, before = UNITS[unit]
    return (times.astype(f"M8[{code}]").astype(np.int64) + before) // count


def period_start(number: Any, unit: str) -> np.datetime64:
    """Where the period of that number begins."""
    code, count, before = UNITS[unit]
    start: np.datetime64 = np.int64(number * count - before).astype(f"M8[{code}]")
    return start


def _named(number: int, unit: str) -> str:
    return f"{1970 + number // 4}-Q{number % 4 + 1}" if unit == "quarter" else str(period_start(number, unit))


def _trends(
    place: NDArray[np.float64],
    sure: NDArray[np.float64],
    right: NDArray[np.bool_],
    design: Design,
    groups: Sequence[Family],
) -> Iterator[Trend]:
    """Slopes of weighted least squares times the number of periods, with sandwich errors over rows or clusters."""
    span, truth = place.max() - place.min(), right.astype(np.float64)
    for what, values in (("gap", sure - truth), ("predicted", sure), ("observed", truth)):
        yield _trend(what, values, place, design, span, 0.05)
    some = [(name, member == at) for names, member in groups for at, name in enumerate(names)]
    some = [(name, rows) for name, rows in some if rows.sum() >= LEAST and np.ptp(place[rows]) > 0]
    found = []
    for name, rows in some:
        own = design.part(rows)
        if own.clusters is None or own.clusters.max() > 1:
            found.append(_trend(str(name), (sure - truth)[rows], place[rows], own, span, 0.05 / len(some)))
    yield from sorted(found, key=lambda trend: (not trend.moved, -abs(trend.change)))


def _trend(
    what: str, values: NDArray[np.float64], place: NDArray[np.float64], design: Design, span: float, alpha: float
) -> Trend:
    at = place - design.mean(place)
    square = design.mean(at**2)
    slope = design.mean(at * values) / square
    rest = values - design.mean(values) - slope * at
    if design.clusters is None:  # HC3: a row's own pull on the line, which few rows have much of
        share = 1 / len(at) if design.weights is None else design.weights / design.weights.sum()
        rest = rest / (1 - share * (1 + at**2 / square)).clip(min=0.1)
    half = design.quantile(1 - alpha / 2) * design.spread(at * rest) / square * span
    return Trend(what, slope * span, slope * span - half, slope * span + half)
