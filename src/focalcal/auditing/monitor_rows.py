"""What a monitor keeps of rows: sums over bins of the score, by period and group, and a fingerprint of their content.

Of a row with clusters, all rows of its cluster count as one together: the logarithms of their e-values are averaged,
which is no more than the e-value of their mean whatever they share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.periods import UNITS, period_numbers, period_start
from focalcal.core.checks import one_of, shown
from focalcal.predictions import Predictions

if TYPE_CHECKING:
    from numpy.typing import NDArray

EDGES = np.array([0, 0.001, 0.003, 0.01, 0.03, *np.arange(1, 10) / 10, 0.97, 0.99, 0.997, 0.999, 1])  # (lo, hi]
BINS = len(EDGES) - 1
MIDDLES = (EDGES[1:] + EDGES[:-1]) / 2
LOG_ODDS = np.log(MIDDLES / (1 - MIDDLES))
ALL = ""  # the name of all rows, beside those of groups
PERIODS = tuple(UNITS)
PARTITION = "partition"  # the period of rows without times: each partition is one
_SMALLEST = 32  # hashes of ids: of two partitions that share a tenth of their rows, 97 % share one of these
_MOST_GROUPS = 1000


@dataclass(frozen=True, eq=False)
class Piece:
    """The rows of a partition that lie in one period.

    digest    of the content, whatever the order of the rows
    look      the look at which it was counted first; None before
    sums      by group, `ALL` among them: (4, B), of 1, the score, its square, and the outcome
    smallest  of the hashes of ids (and times), by which overlaps are noticed; empty without ids
    shifted   of rows without outcomes: the rate that a label shift lets expect, and its interval
    """

    period: str
    rows: int
    digest: str
    sums: dict[str, NDArray[np.float64]]
    smallest: tuple[str, ...] = ()
    look: int | None = None
    shifted: tuple[float, float, float] | None = None

    def counted(self, look: int) -> Piece:
        """The same, counted at that look if it was not before."""
        return self if self.look is not None else replace(self, look=look)


@dataclass
class _Sum:
    """Of a period, while batches come."""

    rows: int = 0
    digest: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2, np.uint64))
    sums: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    smallest: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))


def pieces_of(
    batches: Iterable[Predictions],
    *,
    event: int | None,
    period: str,
    at: str | None = None,
    top1: bool = False,
    labelled: bool = True,
) -> list[Piece]:
    """The rows of a partition, which come in batches, by period.

    event     the class whose probability is followed; None is the predicted one
    period    "day", "month", ..., by the rows' times; "partition" makes one period of all rows, called `at`
    top1      whether the second of two columns is the confidence in the prediction, and the label its correctness
    labelled  whether labels mean anything
    """
    found: dict[str, _Sum] = {}
    for batch in batches:
        score, outcome = _event(batch, event, top1)
        hashes, of_ids = _hashes(batch, score, outcome if labelled else np.zeros(0))
        names, which = _periods(batch, period, at)
        weights = None if batch.clusters is None else _one_per_cluster(batch.clusters, which)
        sums = _sums(score, outcome if labelled else np.zeros(len(score)), weights, which, len(names), batch)
        for number, name in enumerate(names):
            own, rows = found.setdefault(name, _Sum()), which == number
            own.rows += int(rows.sum())
            own.digest = own.digest + np.array([hashes[rows].sum(), _mixed(hashes[rows]).sum()], np.uint64)
            for group, values in sums.items():
                if values[0, number].any():
                    own.sums[group] = own.sums.get(group, 0.0) + values[:, number]
            if of_ids is not None:
                own.smallest = np.unique(np.concatenate([own.smallest, of_ids[rows]]))[:_SMALLEST]
            _check_groups(own.sums)
    return [
        Piece(name, own.rows, own.digest.tobytes().hex(), own.sums, tuple(f"{each:016x}" for each in own.smallest))
        for name, own in sorted(found.items())
    ]


def _event(batch: Predictions, event: int | None, top1: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if batch.multilabel:
        raise ValueError("a monitor follows one event or the predicted class, got several labels per row; "
                         "follow each label by itself")  # fmt: skip
    probs = batch.probs
    if top1 or batch.top1 or event is not None:
        column = 1 if top1 or batch.top1 else event
        return np.clip(probs[:, column].astype(np.float64), 0, 1), (batch.labels == column).astype(np.float64)
    predicted = probs.argmax(1)
    score = np.take_along_axis(probs, predicted[:, None], 1)[:, 0].astype(np.float64)
    return np.clip(score, 0, 1), (predicted == batch.labels).astype(np.float64)


def period_of(time: str, period: str | None) -> str:
    """The name of the period that a time lies in; by default of the day."""
    unit = period or "day"
    return str(period_start(period_numbers(np.array([np.datetime64(time)]), unit)[0], unit))


def period_end(name: str, period: str) -> np.datetime64:
    """When the period of that name is over."""
    after = period_numbers(np.array([np.datetime64(name)]), period)[0] + 1
    end: np.datetime64 = period_start(after, period).astype("M8[us]")
    return end


def _periods(batch: Predictions, period: str, at: str | None) -> tuple[list[str], NDArray[np.int64]]:
    one_of("period", period, (*PERIODS, PARTITION))
    if period == PARTITION or at is not None:
        return [str(at)], np.zeros(batch.n, np.int64)
    if batch.times is None:
        raise ValueError(f"a period of one {period} needs the times of rows, got none; name their column with times=, "
                         "or say at= which period the rows are of")  # fmt: skip
    numbers, which = np.unique(period_numbers(batch.times, period), return_inverse=True)
    return [str(period_start(number, period)) for number in numbers], which


def _sums(
    score: NDArray[np.float64],
    outcome: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    which: NDArray[np.int64],
    periods: int,
    batch: Predictions,
) -> dict[str, NDArray[np.float64]]:
    """By group (4, periods, B)."""
    cell = which * BINS + np.maximum(np.searchsorted(EDGES, score, side="left") - 1, 0)
    parts = [(ALL, np.zeros(batch.n, np.int64), [ALL])]
    if batch.groups is not None:
        columns = batch.groups.T if batch.groups.ndim == 2 else batch.groups[None]
        for prefix, column in zip(batch.group_names or [""], columns, strict=True):
            levels, codes = np.unique(column, return_inverse=True)
            parts.append((prefix, codes, [f"{prefix}={level}" if prefix else str(level) for level in levels]))
    terms: list[Any] = [None, score, score * score, outcome]
    if weights is not None:
        terms = [weights, *(weights * each for each in terms[1:])]
    sums: dict[str, NDArray[np.float64]] = {}
    for _, codes, names in parts:
        shape, cells = (len(names), periods, BINS), codes * (periods * BINS) + cell
        every = np.array([np.bincount(cells, each, minlength=np.prod(shape)).reshape(shape) for each in terms])
        sums |= {name: every[:, number].astype(np.float64) for number, name in enumerate(names)}
    return sums


def _one_per_cluster(clusters: NDArray[Any], which: NDArray[np.int64]) -> NDArray[np.float64]:
    """1 / m for each of the m rows of a cluster, within its period."""
    codes = np.unique(clusters, return_inverse=True)[1]
    together = codes * (which.max() + 1) + which
    sizes: NDArray[np.float64] = 1 / np.bincount(together)[together]
    return sizes


def _check_groups(sums: dict[str, Any]) -> None:
    if len(sums) > _MOST_GROUPS + 1:
        raise ValueError(f"groups must have at most {_MOST_GROUPS:,} values, got {len(sums) - 1:,}, the last one "
                         f"{shown(list(sums)[-1])}; name a column that few rows differ in")  # fmt: skip


def _hashes(
    batch: Predictions, score: NDArray[np.float64], outcome: NDArray[np.float64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64] | None]:
    """Of the content of each row, and of its id (and time)."""
    row = np.full(len(score), 0x9E3779B97F4A7C15, np.uint64)
    if batch.times is not None:
        row = _mixed(row ^ batch.times.astype(np.int64).view(np.uint64))
    of_ids = None
    if batch.ids is not None:
        row = of_ids = _with_names(row, batch.ids)
    row = _mixed(row ^ np.ascontiguousarray(score + 0.0).view(np.uint64))
    return (_mixed(row + outcome.astype(np.uint64)) if len(outcome) else row), of_ids


def _with_names(row: NDArray[np.uint64], names: NDArray[Any]) -> NDArray[np.uint64]:
    if names.dtype.kind in "iu":
        return _mixed(row ^ names.astype(np.int64).view(np.uint64))
    letters = np.ascontiguousarray(names.astype(np.str_)).view(np.uint32).reshape(len(names), -1)
    for letter in letters.T:  # those behind the end are 0, and change nothing
        row = np.where(letter, _mixed(row ^ letter), row)
    return row


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
