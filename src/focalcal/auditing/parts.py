"""Classes, groups and periods of rows, each by itself, with intervals that are corrected for their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, stdtrit

from focalcal.metrics.reliability import wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.auditing.rows import Design
    from focalcal.predictions import Predictions

LEAST = 20  # rows of an intersection of groups that is shown by itself
_MOST = 400  # intersections of two columns that are looked at
_TELLING = 10  # events, and others, that tell how their weights spread a rate
_LISTED = 5  # names in a sentence


@dataclass(frozen=True)
class Part:
    """Rows that belong together: mean confidence, accuracy, and the interval of their difference.

    Of an event the confidence is the mean predicted probability, and the accuracy the observed rate. `low` and `high`
    hold for all parts at once at 95 %, by Bonferroni: from Wilson's interval of the accuracy, of the number of
    independent rows that weights and clusters leave; NaN of a part that is one cluster. `shrunk` is the gap moved
    toward the mean of all parts as far as chance explains their differences (empirical Bayes), `share` that of the
    rows by their weights.
    """

    name: str
    rows: int
    confidence: float
    accuracy: float
    low: float
    high: float
    shrunk: float
    share: float

    @property
    def gap(self) -> float:
        """Confidence minus accuracy."""
        return self.confidence - self.accuracy

    @property
    def off(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low > 0 or self.high < 0


Family = tuple[Sequence[Any], "NDArray[np.int64]"]  # names, and the place in them that each row belongs to; -1 if none


def parts_of(
    families: Sequence[Family], sure: NDArray[np.float64], right: NDArray[np.bool_], design: Design
) -> list[Part]:
    """One part per name that has rows, worst first: those whose interval leaves out 0, then by the size of the gap."""
    parts = parts_in_order(families, sure, right, design)
    return sorted(
        parts, key=lambda part: (not part.off, -min(abs(part.low), abs(part.high)) * part.off, -abs(part.gap))
    )


def parts_in_order(
    families: Sequence[Family], sure: NDArray[np.float64], right: NDArray[np.bool_], design: Design
) -> list[Part]:
    """The same in the order of the names; intervals are corrected for the number of parts in all families."""
    tests = sum(len(np.unique(member[member >= 0])) for _, member in families)
    return [
        part
        for names, member in families
        for part in _shrunk(*_family(names, member, sure, right, design, 0.05 / max(1, tests)))
    ]


def _family(
    names: Sequence[Any],
    member: NDArray[np.int64],
    sure: NDArray[np.float64],
    right: NDArray[np.bool_],
    design: Design,
    alpha: float,
) -> tuple[list[Part], NDArray[np.float64]]:
    """The parts and the variance of each one's gap."""
    some, everyone = member >= 0, design.weights
    if not some.all():
        member, sure, right, design = member[some], sure[some], right[some], design.part(some)
    weights = np.ones(len(member)) if design.weights is None else design.weights
    count, total, squares, conf, hits = (
        np.bincount(member, weights=values, minlength=len(names))
        for values in (None, weights, weights**2, weights * sure, weights * right)
    )
    filled = np.flatnonzero(total > 0)
    known = np.maximum(total, np.finfo(float).tiny)
    mean, rate = conf / known, hits / known
    trials, level = total**2 / np.maximum(squares, np.finfo(float).tiny), np.full(len(names), 1 - alpha)
    residuals = weights * (right - rate[member])
    if design.weights is not None:  # by the outcomes where they tell, so that rare events that were all kept count so
        fewer = np.bincount(member, weights=right, minlength=len(names))
        told = (np.minimum(fewer, count - fewer) >= _TELLING) & (total > 0)
        apart = weights * (right - sure - (rate - mean)[member])
        spread = np.maximum(*(np.bincount(member, each**2, len(names)) for each in (residuals, apart)))
        trials[told] = (rate * (1 - rate) * total**2)[told] / spread[told]
    if design.clusters is not None:
        effect, freedom = _cluster_effect(member, design.clusters, residuals, len(names))
        trials = trials / effect
        with np.errstate(invalid="ignore"):
            level = 2 * ndtr(stdtrit(freedom, 1 - alpha / 2)) - 1
    low, high = np.full(len(names), np.nan), np.full(len(names), np.nan)
    for k in filled[level[filled] > 0].tolist():
        low[k], high[k] = wilson(rate[k] * trials[k], trials[k], float(level[k]))
    variance = np.maximum(rate * (1 - rate), mean * (1 - mean) * (rate * (1 - rate) == 0)) / np.maximum(trials, 1)
    whole = len(some) if everyone is None else float(everyone.sum())
    parts = [
        Part(
            str(names[k]), int(count[k]), float(mean[k]), float(rate[k]), float(mean[k] - high[k]),
            float(mean[k] - low[k]), np.nan, float(total[k] / whole),
        )
        for k in filled.tolist()
    ]  # fmt: skip
    return parts, variance[filled]


def _cluster_effect(
    member: NDArray[np.int64], clusters: NDArray[np.int64], residuals: NDArray[np.float64], parts: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By how much clusters inflate the variance of each part's rate, 1 at least, and their number less one."""
    pairs, place = np.unique(member * (int(clusters.max()) + 1) + clusters, return_inverse=True)
    part = pairs // (int(clusters.max()) + 1)
    number = np.bincount(part, minlength=parts).astype(np.float64)
    between = np.bincount(part, np.bincount(place, residuals) ** 2, parts) * number / np.maximum(number - 1, 1)
    within = np.bincount(member, residuals**2, parts)
    effect = np.divide(between, within, out=np.ones(parts), where=within > 0)
    return np.maximum(effect, 1.0), np.where(number > 1, number - 1, np.nan)


def _shrunk(parts: list[Part], variance: NDArray[np.float64]) -> Iterator[Part]:
    """With the gaps moved toward their mean: DerSimonian and Laird's variance between parts."""
    gaps, precision = np.array([part.gap for part in parts]), 1 / np.maximum(variance, 1e-30)
    if len(parts) < 2:
        yield from (replace(part, shrunk=part.gap) for part in parts)
        return
    mean = np.average(gaps, weights=precision)
    spread = precision.sum() - (precision**2).sum() / precision.sum()
    excess = float((precision * (gaps - mean) ** 2).sum()) - (len(parts) - 1)
    between = max(0.0, excess / spread) if spread > 0 else 0.0
    mean = np.average(gaps, weights=1 / (variance + between + 1e-300))
    for part, gap, own in zip(parts, gaps, variance, strict=True):
        moved = mean + (gap - mean) * (between / (between + own) if between else 0.0)
        yield replace(part, shrunk=float(moved))


def group_families(predictions: Predictions) -> tuple[list[Family], list[str]]:
    """The groups of each column and the intersections of two columns, and what is said of those that are left out."""
    if predictions.groups is None or predictions.multilabel:
        return [], []
    if predictions.group_names is None:
        found, member = np.unique(predictions.groups, return_inverse=True)
        return [(found.tolist(), member)], []
    columns = {}
    for name, values in zip(predictions.group_names, predictions.groups.T, strict=True):
        each, member = np.unique(values, return_inverse=True)
        columns[name] = [f"{name}={value}" for value in each], member
    families: list[Family] = list(columns.values())
    notes: list[str] = []
    for (first, (names, rows)), (second, (others, columns_of)) in combinations(columns.items(), 2):
        if len(names) * len(others) > _MOST:
            notes.append(
                f"Intersections of {first} and {second} are not shown: there are {len(names) * len(others):,} of them."
            )
            continue
        both = [f"{name}, {other}" for name in names for other in others]
        member = rows * len(others) + columns_of
        count = np.bincount(member, minlength=len(both))
        small = np.flatnonzero((count > 0) & (count < LEAST))
        if len(small):
            named = [f"{both[k]} ({count[k]})" for k in small]
            notes.append(f"Intersections of fewer than {LEAST} rows are not shown: {_listed(named)}.")
        if (count == 0).any():
            notes.append(f"Intersections without rows: {_listed([both[k] for k in np.flatnonzero(count == 0)])}.")
        families.append((both, np.where(count[member] < LEAST, -1, member)))
    return families, notes


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return "; ".join(names[:_LISTED]) + (f"; and {more} more" if more > 0 else "")
