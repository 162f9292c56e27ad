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
from focalcal.stats.bets import DISCOUNTS, fixed_bets, learned_bets, stakes
from focalcal.stats.e_process import Wealth, central_range, change_weights
from focalcal.stats.e_values import BinnedSums, Gaps, log_e_values

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
class Evidence:
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
    name: str, pieces: Sequence[Piece], order: Mapping[str, int], gaps: Gaps, *, level: float, run_length: float
) -> Evidence:
    """From the pieces of all partitions that were counted.

    order  the place of every period in time
    gaps   what is allowed in each bin
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
    log_e = _log_e(sums, places, looks, [looked[key[2]] for key in keys], gaps)
    wealth, detector = Wealth(stakes()), Wealth(stakes())
    path, detected, warned = [], [], []
    for at, each in enumerate(log_e):
        wealth.add(each)
        detector.add(each)
        path.append(float(wealth.process))
        detected.append(float(detector.detector))
        if detected[-1] >= math.log(run_length):
            warned.append(at)
            detector = Wealth(stakes())
    crossed = np.flatnonzero(np.array(path) >= -math.log(level))
    alarm = int(crossed[0]) if len(crossed) else None
    signals = [at for at in (alarm, *warned[:1]) if at is not None]
    broke = None
    if signals:
        broke = _break(sums, places, [key[2] for key in keys], places[min(signals)] if alarm is None else places[alarm],
                       gaps)  # fmt: skip
    return Evidence(
        name, round(rows), level, tuple(key[2] for key in keys), tuple(looks.tolist()), np.array(path),
        np.array(detected), alarm, tuple(warned), broke,
    )  # fmt: skip


def _log_e(
    sums: NDArray[np.float64],
    places: NDArray[np.int64],
    looks: NDArray[np.int64],
    first_looks: Sequence[float],
    gaps: Gaps,
) -> NDArray[np.float64]:
    """Of every step and bet, (S, C)."""
    fixed = log_e_values(fixed_bets(LOG_ODDS), _binned(sums), gaps)
    learned = np.empty((len(sums), len(stakes()) - fixed.shape[-1]))
    bets: dict[int, NDArray[np.float64]] = {}
    for at, place in enumerate(places.tolist()):
        if place not in bets:
            known = (places < place) & (looks <= first_looks[at])
            before = np.unique(places[known])  # a period that comes in between later must not change this
            age = np.maximum(len(before) - 1 - np.searchsorted(before, places), 0)
            earlier = [
                _binned(np.einsum("s,skb->kb", np.where(known, discount**age, 0.0), sums)) for discount in DISCOUNTS
            ]
            bets[place] = learned_bets(earlier, gaps, LOG_ODDS)
        learned[at] = log_e_values(bets[place], _binned(sums[at]), gaps)
    return np.concatenate([fixed, learned], 1)


def _binned(sums: NDArray[np.float64]) -> BinnedSums:
    return BinnedSums(*np.moveaxis(sums, -2, 0))


def _break(sums: NDArray[np.float64], places: NDArray[np.int64], names: Sequence[str], last: int, gaps: Gaps) -> Break:
    """By the fixed bets, whatever the looks were; the change is not after `last`, the place of the signal."""
    periods = dict(sorted(zip(places.tolist(), names, strict=True)))
    by_period = np.array([sums[places == place].sum(0) for place in periods])
    fixed = fixed_bets(LOG_ODDS)
    candidates = [place for place in periods if place <= last]
    weights = change_weights(log_e_values(fixed, _binned(by_period), gaps), stakes()[: len(fixed)])[: len(candidates)]
    first, final = central_range(weights / weights.sum())
    likeliest = int(weights.argmax())
    listed = list(periods.values())
    since = by_period[likeliest:].sum(0)
    rows, score, square, outcome = since
    total = rows.sum()
    gap, spread = (outcome - score).sum() / total, 1.96 * math.sqrt(max(0.0, (score - square).sum())) / total
    variance = np.maximum(score - square, 0.0)
    worst = int(np.argmax(np.abs(outcome - score) / np.sqrt(variance + 1.0)))
    count = max(rows[worst], 1e-300)
    return Break(
        listed[likeliest], listed[min(first, likeliest)], listed[max(final, likeliest)], round(total), gap,
        gap - spread, gap + spread, float(MIDDLES[worst]), score[worst] / count, outcome[worst] / count,
    )  # fmt: skip
