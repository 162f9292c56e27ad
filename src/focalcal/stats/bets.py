"""Bets against calibration, (C, B) shifts of the log-odds: some fixed, some learned from earlier periods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.stats.e_values import BinnedSums, Gaps, excess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from numpy.typing import NDArray

SIZES = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)  # every probability too high or too low
SLOPES = (0.05, 0.1, 0.2, 0.4)  # times the log-odds: too sure or not sure enough
TAILS = (0.1, 0.3, 0.9)  # scores above 0.9 alone
DISCOUNTS = (1.0, 0.5)  # per period, of what is learned from earlier ones
_SHARES = (0.5, 0.15, 0.1, 0.25)  # of the stake: sizes, slopes, tails, learned
_PRIOR = 16.0  # variance of outcomes that stands for "no shift": a shift of 1/4 is one standard deviation
_LARGEST = 1.0
_TAIL = 2.2  # log-odds of 0.9


def fixed_bets(log_odds: Float[np.ndarray, " b"]) -> Float[np.ndarray, "c b"]:
    """Sizes, slopes and tails, each in both directions, for bins with these log-odds in their middle."""
    rows: list[NDArray[Any]] = [size * np.ones_like(log_odds) for size in SIZES]
    rows += [slope * np.clip(log_odds, -4.0, 4.0) for slope in SLOPES]
    rows += [tail * (log_odds > _TAIL) for tail in TAILS]
    return np.array([sign * row for row in rows for sign in (1.0, -1.0)])


def stakes() -> Float[np.ndarray, " c"]:
    """What each bet begins with: the fixed ones in their order, then the learned ones; they sum to 1."""
    counts = (2 * len(SIZES), 2 * len(SLOPES), 2 * len(TAILS), 2 * len(DISCOUNTS))
    return np.concatenate([np.full(count, share / count) for count, share in zip(counts, _SHARES, strict=True)])


def learned_bets(
    earlier: Sequence[BinnedSums], gaps: Gaps, log_odds: Float[np.ndarray, " b"]
) -> Float[np.ndarray, "*s c b"]:
    """What earlier rows suggest, two bets for each of `earlier` (one per discount): a shift of each bin, and a line.

    A shift is excess / (variance + prior), where the excess is beyond one standard deviation; the line is the same for
    a constant and for the log-odds around their mean.
    """
    bets: list[NDArray[np.float64]] = []
    for sums in earlier:
        beyond, variance = excess(sums, gaps)
        shifts = np.where(beyond**2 > variance, beyond / (variance + _PRIOR), 0.0)
        total = variance.sum(-1, keepdims=True)
        away = np.clip(log_odds, -4.0, 4.0)
        away = away - (variance * away).sum(-1, keepdims=True) / np.maximum(total, 1e-300)
        level = beyond.sum(-1, keepdims=True) / (total + _PRIOR)
        slope = (away * beyond).sum(-1, keepdims=True) / ((away**2 * variance).sum(-1, keepdims=True) + _PRIOR)
        bets += [shifts, level + slope * away]
    return np.clip(np.stack(bets, axis=-2), -_LARGEST, _LARGEST)
