"""The evidence against "it holds" of one stream, all rows or a group: the e-process, the e-detector, and the break.

Steps are in the order of looks, and of periods within a look. The bets of a period are made at its first look, from
what had been counted of earlier periods by then, and stay: rows of the period that come later meet the same bets. So
whatever comes in whichever order, no bet has seen the outcomes that it is about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focalcal.auditing.monitor_rows import LOG_ODDS, MIDDLES, Piece
from focalcal.stats.e_process import (
    DISCOUNTS,
    SIZES,
    BinnedSums,
    Gaps,
    Wealth,
    central_range,
    change_weights,
    excess,
    fixed_bets,
    gap_bounds,
    in_proportion,
    learned_bets,
    log_e_values,
    stakes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Allowed:
    """What is allowed of a stream: the gap of each bin, and the gap of all rows in the baseline's proportions.

    shares  of the baseline's rows in those of its bins that have a twelfth of them at least, summing to 1, and 0 of
            the others; None without a baseline
    whole   what the gap of these together may be
    """

    gaps: Gaps
    shares: NDArray[np.float64] | None = None
    whole: Gaps | None = None

    @property
    def stakes(self) -> tuple[NDArray[np.float64], int]:
        """Of all bets, and how many of them are fixed; those come first. Bets on the whole have a half."""
        own, fixed = stakes(), len(fixed_bets(LOG_ODDS))
        if self.shares is None:
            return own, fixed
        sizes = 2 * len(SIZES)
        return np.concatenate([np.full(sizes, 0.5 / sizes), own / 2]), sizes + fixed

    def fixed(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """The logarithms of the e-values of the fixed bets, (S, C)."""
        found = log_e_values(fixed_bets(LOG_ODDS), _binned(sums), self.gaps)
        if self.shares is None or self.whole is None:
            return found
        sizes = fixed_bets(np.zeros(1))[: 2 * len(SIZES)]
        whole = log_e_values(sizes, in_proportion(_binned(sums), self.shares), self.whole)
        return np.concatenate([whole, found], -1)


def allowed_by(baseline: NDArray[np.float64], alpha: float, within: float) -> Allowed:
    """As far off as a baseline, of whose bins these are the sums (4, B); a half of alpha each for bins and whole."""
    sums = BinnedSums(*baseline)
    bounds, rows = gap_bounds(sums, alpha / 2), sums.rows
    shares = np.where(rows >= rows.sum() / 12, rows, 0.0) / max(rows[rows >= rows.sum() / 12].sum(), 1e-300)
    together = BinnedSums(*(each[shares > 0].sum(keepdims=True) for each in sums))
    whole = gap_bounds(together, alpha / 2)
    return Allowed(
        Gaps(bounds.lower - within, bounds.upper + within), shares, Gaps(whole.lower - within, whole.upper + within)
    )


@dataclass(frozen=True)
class Break:
    """When it broke: the likeliest period, the first and the last that are compatible, and what changed since.

    gap     mean outcome minus mean score since then, with its 95 % interval from `low` to `high`
    score   the middle of the bin of scores that is farthest off since then, in standard errors
    said, was   mean score and mean outcome there
    """

    period: str
    earliest: str
    latest: str
    rows: int
    gap: float
    low: float
    high: float
    score: float
    said: float
    was: float


@dataclass(frozen=True, eq=False)
class StreamEvidence:
    """Of one stream.

    level      the probability with which it may ever raise an alarm although it holds
    periods, looks, log_e, log_detector   one per step, in order
    alarm      the step at which the e-process reached 1 / level first; None if it never has
    warnings   the steps at which the e-detector reached the run length, after each of which it begins anew
    """

    name: str
    rows: int
    level: float
    periods: tuple[str, ...]
    looks: tuple[int, ...]
    log_e: NDArray[np.float64]
    log_detector: NDArray[np.float64]
    alarm: int | None
    warnings: tuple[int, ...]
    broke: Break | None

    @property
    def largest(self) -> float:
        """The logarithm of the most that the e-process has been."""
        return max(0.0, float(self.log_e.max(initial=0.0)))


def evidence_of(
    name: str, pieces: Sequence[Piece], order: Mapping[str, int], allowed: Allowed, *, level: float, run_length: float
) -> StreamEvidence:
    """From the pieces of all partitions that were counted.

    order  the place of every period in time
    """
    looked = {piece.period: math.inf for piece in pieces}
    for piece in pieces:
        assert piece.look is not None
        looked[piece.period] = min(looked[piece.period], piece.look)
    steps: dict[tuple[int, int, str], NDArray[np.float64]] = {}
    rows = 0.0
    for piece in pieces:
        if name in piece.sums:
            key = (piece.look or 0, order[piece.period], piece.period)
            steps[key] = steps.get(key, 0.0) + piece.sums[name]
            rows += piece.sums[name][0].sum()
    keys = sorted(steps)
    sums = np.array([steps[key] for key in keys]).reshape(-1, 4, len(MIDDLES))
    places, looks = np.array([key[1] for key in keys], int), np.array([key[0] for key in keys], int)
    log_e = _log_e(sums, places, looks, [looked[key[2]] for key in keys], allowed)
    placed, _ = allowed.stakes
    wealth, detector = Wealth(placed), Wealth(placed)
    path, detected, warned = [], [], []
    for at, each in enumerate(log_e):
        wealth.add(each)
        detector.add(each)
        path.append(float(wealth.process))
        detected.append(float(detector.detector))
        if detected[-1] >= math.log(run_length):
            warned.append(at)
            detector = Wealth(placed)
    crossed = np.flatnonzero(np.array(path) >= -math.log(level))
    alarm = int(crossed[0]) if len(crossed) else None
    signals = [at for at in (alarm, *warned[:1]) if at is not None]
    broke = None
    if signals:
        last = places[signals[0]]
        broke = _break(sums, places, [key[2] for key in keys], last, allowed)
    return StreamEvidence(
        name, round(rows), level, tuple(key[2] for key in keys), tuple(looks.tolist()), np.array(path),
        np.array(detected), alarm, tuple(warned), broke,
    )  # fmt: skip


def _log_e(
    sums: NDArray[np.float64],
    places: NDArray[np.int64],
    looks: NDArray[np.int64],
    first_looks: Sequence[float],
    allowed: Allowed,
) -> NDArray[np.float64]:
    """Of every step and bet, (S, C)."""
    if not len(sums):
        return np.empty((0, len(allowed.stakes[0])))
    flat, earlier = sums.reshape(len(sums), -1), []
    firsts, member = np.unique(places, return_index=True)[1], np.unique(places, return_inverse=True)[1]
    for at in firsts.tolist():
        known = (places < places[at]) & (looks <= first_looks[at])
        before = np.unique(places[known])  # a period that comes in between later must not change this
        age = np.maximum(len(before) - 1 - np.searchsorted(before, places), 0)
        earlier.append([np.where(known, discount**age, 0.0) @ flat for discount in DISCOUNTS])
    by_discount = np.moveaxis(np.array(earlier), 1, 0).reshape(len(DISCOUNTS), -1, *sums.shape[1:])
    bets = learned_bets([_binned(each) for each in by_discount], allowed.gaps, LOG_ODDS)
    learned = log_e_values(bets[member], _binned(sums), allowed.gaps)
    return np.concatenate([allowed.fixed(sums), learned], 1)


def _binned(sums: NDArray[np.float64]) -> BinnedSums:
    return BinnedSums(*np.moveaxis(sums, -2, 0))


def _break(
    sums: NDArray[np.float64], places: NDArray[np.int64], names: Sequence[str], last: int, allowed: Allowed
) -> Break:
    """By the fixed bets, whatever the looks were; the change is not after `last`, the place of the signal."""
    periods = dict(sorted(zip(places.tolist(), names, strict=True)))
    by_period = np.array([sums[places == place].sum(0) for place in periods])
    placed, fixed = allowed.stakes
    candidates = [place for place in periods if place <= last]
    weights = change_weights(allowed.fixed(by_period), placed[:fixed])[: len(candidates)]
    first, final = central_range(weights / weights.sum())
    likeliest = int(weights.argmax())
    listed = list(periods.values())
    since = by_period[likeliest:].sum(0)
    rows, score, square, outcome = since
    total = rows.sum()
    gap, spread = (outcome - score).sum() / total, 1.96 * math.sqrt(max(0.0, (score - square).sum())) / total
    beyond, variance = excess(_binned(since), allowed.gaps)
    if not beyond.any():  # the whole is off, and no bin by itself
        beyond, variance = outcome - score, np.maximum(score - square, 0.0)
    worst = int(np.argmax(np.abs(beyond) / np.sqrt(variance + 1.0)))
    count = max(rows[worst], 1e-300)
    return Break(
        listed[likeliest], listed[min(first, likeliest)], listed[max(final, likeliest)], round(total), gap,
        gap - spread, gap + spread, float(MIDDLES[worst]), score[worst] / count, outcome[worst] / count,
    )  # fmt: skip
