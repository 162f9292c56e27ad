"""What acting on a probability is worth: net benefit over thresholds, and what is flagged at one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from focalcal.core.arrays import Array, as_array
from focalcal.core.checks import between_zero_and_one
from focalcal.core.display import Displayed, text_table
from focalcal.metrics.bootstrap import Interval
from focalcal.metrics.event_rows import read_sampled_event
from focalcal.metrics.robust import Robust
from focalcal.predictions.inputs import InputOptions

THRESHOLDS = tuple(np.arange(1, 100) / 100)


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(Displayed):
    """Net benefit at each threshold, (thresholds,), with intervals at `level`, pointwise.

    Attributes:
        thresholds: t, ascending.
        net_benefit: of acting where p >= threshold.
        low, high: its interval.
        treat_all: of acting on every row; acting on none has 0.
        gain, gain_low, gain_high: net benefit minus that of the better of the two, with the interval of the difference.
        flagged: the share of rows with p >= threshold.
        prevalence: the share of events.
        level: of the intervals.

    >>> net_benefit([0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1], thresholds=[0.2, 0.5]).gain
    array([0.0625, 0.5   ])
    """

    thresholds: Array
    net_benefit: Array
    low: Array
    high: Array
    treat_all: Array
    gain: Array
    gain_low: Array
    gain_high: Array
    flagged: Array
    prevalence: float
    level: float

    def frame(self) -> dict[str, list[Any]]:
        """One row per threshold."""
        names = ("net_benefit", "low", "high", "treat_all", "gain", "gain_low", "gain_high", "flagged")
        return {"threshold": self.thresholds.tolist()} | {name: getattr(self, name).tolist() for name in names}

    @property
    def useful(self) -> Array:
        """The thresholds at which it is better than acting on all and on none, beyond chance."""
        return self.thresholds[self.gain_low > 0]

    def __str__(self) -> str:
        """The table."""
        return text_table(self.frame())


def net_benefit(
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    thresholds: Any = THRESHOLDS,
    clusters: Any = None,
    level: float = 0.95,
    ignore_index: int | None = None,
    **inputs: Unpack[InputOptions],
) -> DecisionCurve:
    """The decision curve: net benefit TP / n - FP / n * t / (1 - t) of acting where p >= t, over thresholds t.

    A threshold says how many false alarms a hit is worth: at 0.1 nine. Vickers and Elkin (2006). Scores, labels,
    `positive`, `sample_weight` and `clusters` are those of `event_calibration`. Intervals put Wilson's of the shares of
    true and false positives together (`Robust.mean`).

    Args:
        probs: (N, K), or in any other form of `focalcal.predictions.read_inputs`, `Predictions` among them.
        labels: (N,), class indices or names.
        logits: in place of probs.
        thresholds: in (0, 1), ascending.
        clusters: (N,), names of rows that are not independent of each other.
        level: of the intervals.
        ignore_index: rows with this label are left out.
        inputs: those of `event_calibration`.

    Returns:
        The curve with its intervals, and that of acting on every row.

    >>> curve = net_benefit([0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1], thresholds=[0.2, 0.5])
    >>> curve.net_benefit.tolist(), curve.treat_all.tolist()
    ([0.4375, 0.5], [0.375, 0.0])
    """
    levels = np.unique(as_array("thresholds", thresholds).astype(np.float64)).tolist()
    if not levels:
        raise ValueError("thresholds must hold at least one, got none; leave them out for 0.01 to 0.99")
    for threshold in levels:
        between_zero_and_one("thresholds", threshold, remedy="at t an event is worth (1 - t) / t false alarms")
    event, robust = read_sampled_event(
        probs, labels, logits=logits, clusters=clusters, level=level, ignore_index=ignore_index, **inputs
    )
    p, y = event.scores, event.labels.astype(np.float64)
    columns = np.array([_at(p, y, threshold, robust) for threshold in levels]).T
    prevalence = float(robust.weights @ y / robust.weights.sum())
    return DecisionCurve(np.array(levels), *columns, prevalence, level)  # type: ignore[call-arg]


def _at(p: Array, y: Array, threshold: float, robust: Robust) -> tuple[float, ...]:
    odds = threshold / (1 - threshold)
    acted = p >= threshold
    worth = y - (1 - y) * odds  # of acting on the row
    own = np.where(acted, worth, 0.0)
    value, low, high = robust.mean(own, np.array([-odds, 0.0, 1.0]))
    everyone = float(robust.weights @ worth / robust.weights.sum())
    other = worth if everyone > 0 else np.zeros_like(worth)
    difference = own - other
    levels = np.array([-1.0, 0.0, odds] if everyone > 0 else [-odds, 0.0, 1.0])
    gain = robust.mean(difference, levels) if difference.any() else (0.0, 0.0, 0.0)  # the same decision for every row
    flagged = float(robust.weights @ acted / robust.weights.sum())
    return value, low, high, everyone, *gain, flagged


@dataclass(frozen=True, repr=False)
class Flagged(Displayed):
    """What p >= threshold flags: each a share of rows, with its interval.

    Attributes:
        threshold: t.
        flagged: of all rows.
        precision: of the flagged ones that are events (nan if there are none).
        recall: of events that are flagged.
        specificity: of the others that are not (nan if there are none).

    >>> flagged_at([0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1], threshold=0.5).recall.estimate
    1.0
    """

    threshold: float
    flagged: Interval
    precision: Interval
    recall: Interval
    specificity: Interval


def flagged_at(
    probs: Any = None,
    labels: Any = None,
    *,
    threshold: float,
    logits: Any = None,
    clusters: Any = None,
    level: float = 0.95,
    ignore_index: int | None = None,
    **inputs: Unpack[InputOptions],
) -> Flagged:
    """Flagged share, precision, recall and specificity of p >= `threshold`, with Wilson's intervals.

    Scores, labels, `positive`, `sample_weight` and `clusters` are those of `event_calibration`.

    Args:
        probs: (N, K), or in any other form of `focalcal.predictions.read_inputs`, `Predictions` among them.
        labels: (N,), class indices or names.
        threshold: in (0, 1).
        logits: in place of probs.
        clusters: (N,), names of rows that are not independent of each other.
        level: of the intervals.
        ignore_index: rows with this label are left out.
        inputs: those of `event_calibration`.

    Returns:
        The four shares.

    >>> flagged_at([0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1], threshold=0.3).precision.estimate
    0.6666666666666666
    """
    between_zero_and_one("threshold", threshold, remedy="it is a probability of the event")
    event, robust = read_sampled_event(
        probs, labels, logits=logits, clusters=clusters, level=level, ignore_index=ignore_index, **inputs
    )
    acted, y = event.scores >= threshold, event.labels
    return Flagged(
        threshold,
        *(
            Interval(*robust.proportion(hit, among), level)
            for hit, among in ((acted, np.ones_like(y)), (y, acted), (acted, y), (~acted, ~y))
        ),
    )
