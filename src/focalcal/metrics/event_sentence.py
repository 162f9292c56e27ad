"""What an event's calibration comes to, in words that a statistician would sign."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from focalcal.core.display import percent, ratio

if TYPE_CHECKING:
    from focalcal.metrics.bootstrap import Interval
    from focalcal.metrics.event import EventCalibration


def event_sentence(found: EventCalibration) -> str:
    """On average: expected, observed, O/E; then whether the probabilities are too extreme, by the slope."""
    return " ".join(part for part in (_on_average(found), _spread(found)) if part)


def _within(found: Interval, name: str) -> str:
    return (
        f"({name} {ratio(found.estimate)}, {100 * found.level:g} % interval {ratio(found.low)} to {ratio(found.high)})"
    )


def _on_average(found: EventCalibration) -> str:
    expected, observed, oe = found.predicted_rate.estimate, found.observed_rate.estimate, found.oe
    rows = "1 row" if found.rows == 1 else f"{found.rows:,} rows"
    rows += "" if found.clusters is None else f" in {found.clusters:,} clusters"
    if math.isnan(oe.estimate):
        return f"No event was predicted and none happened in {rows}: every probability is 0."
    if math.isinf(oe.estimate):
        return f"Events are under-predicted: every probability is 0, and {percent(observed)} observed in {rows}."
    seen = f"{percent(observed)} observed" if found.events else f"none observed in {rows}"
    numbers = f"{percent(expected)} expected, {seen} {_within(oe, 'O/E')}"
    if oe.low > 1:
        return f"Events are under-predicted: {numbers}."
    if oe.high < 1:
        return f"Events are over-predicted: {numbers}."
    return f"There is no evidence that events are over- or under-predicted on average: {numbers}."


def _spread(found: EventCalibration) -> str:
    slope = found.slope
    if not math.isfinite(slope.estimate):
        return ""
    within = _within(slope, "calibration slope")
    if slope.high < 0:
        return f"High probabilities go with fewer events {within}: is it the probability of the other class?"
    if slope.high < 1:
        return f"The probabilities are too extreme {within}."
    if slope.low > 1:
        return f"The probabilities are not extreme enough {within}."
    return f"There is no evidence that they are too extreme or not extreme enough {within}."
