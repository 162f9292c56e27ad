"""E-values of calibration from sums over bins of the score, bets that win them, and wealth over time.

**E-values.** A bet is a shift theta_b of the log-odds in each bin b. Of a row with score p and outcome y its factor is
the likelihood ratio of the shifted probability to p, exp(theta y) / (1 + p (exp(theta) - 1)), whose mean is 1 if p is
right. The product over n rows is at least

    exp(theta sum y - n log(1 + mean(p) (exp(theta) - 1))),

because the logarithm is concave: three sums per bin are enough, and rows may come in any order. Where outcomes may be
off by a gap between `lower` and `upper`, the end that favours the bet less stands in for the score. Derivation and
proofs: docs/math/monitor.md.

**Bets**, (C, B), are fixed or learned from earlier periods.

**Wealth.** A step is what lies between two looks at most: a period, or what came of it at one look. With bets c of
stakes w_c and e-values e_kc of step k, which are fixed before the step's outcomes are seen,

    e-process   M_n = sum_{j <= n} pi_j T_jn + 1 / (n + 1),   T_jn = sum_c w_c prod_{k=j}^n e_kc,   pi_j = 1 / (j (j+1))
    e-detector  R_n = sum_{j <= n} T_jn

Under "holds" M is a nonnegative supermartingale from 1, so that it ever reaches 1 / alpha with probability at most
alpha (Ville). New bets begin at every step, so that a long time in which all was well costs log n, not what old bets
have lost. R exceeds A for the first time after A steps on average, at least (Shin, Ramdas and Rinaldo, 2022).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int
    from numpy.typing import NDArray

SIZES = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)  # every probability too high or too low
SLOPES = (0.05, 0.1, 0.2, 0.4)  # times the log-odds: too sure or not sure enough
TAILS = (0.1, 0.3, 0.9)  # scores above 0.9 alone
DISCOUNTS = (1.0, 0.5)  # per period, of what is learned from earlier ones
_SHARES = (0.5, 0.15, 0.1, 0.25)  # of the stake: sizes, slopes, tails, learned
_PRIOR = 16.0  # variance of outcomes that stands for "no shift": a shift of 1/4 is one standard deviation
_LARGEST = 1.0
_TAIL = 2.2  # log-odds of 0.9


class BinnedSums(NamedTuple):
    """Sums over the rows of each bin, all (..., B): 1, the score p, p^2, and the outcome y."""

    rows: NDArray[np.float64]
    score: NDArray[np.float64]
    square: NDArray[np.float64]
    outcome: NDArray[np.float64]


class Gaps(NamedTuple):
    """What mean outcome minus mean score may be in each bin, (..., B) each: [0, 0] says "calibrated"."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def calibrated(bins: int, within: float = 0.0) -> Gaps:
    """No gap in any bin, or one of at most `within`."""
    return Gaps(np.full(bins, -within), np.full(bins, within))


def log_e_values(theta: Float[np.ndarray, "*s c b"], sums: BinnedSums, gaps: Gaps) -> Float[np.ndarray, "*s c"]:
    """The logarithms of the e-values of C bets on the same rows, an expectation of at most 1 each under `gaps`.

    theta  shifts of the log-odds, (C, B) or (..., C, B), chosen without knowledge of these rows' outcomes

    >>> one = BinnedSums(*np.array([[100.0], [50.0], [25.0], [80.0]]))  # 100 rows with p = 1/2, of which 80 happened
    >>> log_e_values(np.array([[1.0], [-1.0]]), one, calibrated(1)).round(1).tolist()
    [18.0, -42.0]
    """
    rows, outcome = sums.rows[..., None, :], sums.outcome[..., None, :]
    low, high = (each[..., None, :] for each in _bounds(sums, gaps))
    won = theta * outcome - rows * np.log1p(np.where(theta > 0, high, low) * np.expm1(theta))
    return won.sum(-1)


def _bounds(sums: BinnedSums, gaps: Gaps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and the largest mean outcome that each bin may have."""
    mean = sums.score / np.maximum(sums.rows, 1e-300)
    return np.clip(mean + gaps.lower, 0.0, 1.0), np.clip(mean + gaps.upper, 0.0, 1.0)


def excess(sums: BinnedSums, gaps: Gaps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By how many outcomes each bin leaves what is allowed, with a sign, and the variance of its outcomes there."""
    low, high = _bounds(sums, gaps)
    over, under = sums.outcome - sums.rows * high, sums.outcome - sums.rows * low
    beyond = np.where(over > 0, over, np.where(under < 0, under, 0.0))
    rate = np.where(over > 0, high, low)
    spread = np.maximum(sums.square - sums.score**2 / np.maximum(sums.rows, 1e-300), 0.0)
    return beyond, np.maximum(sums.rows * rate * (1 - rate) - spread, 0.0)


def gap_bounds(sums: BinnedSums, alpha: float) -> Gaps:
    """Bounds on mean outcome minus mean score of the bins of a baseline, all of which hold with probability 1 - alpha.

    A mean rate pi is refuted by a rate r of n rows if n kl(r, pi) > log(2 B / alpha), over the B bins that have rows
    (Hoeffding, 1963: outcomes need not have equal probabilities). A bin without rows may have any gap.
    """
    used = sums.rows > 0
    mean = np.divide(sums.score, sums.rows, out=np.full_like(sums.rows, 0.5), where=used)
    rate = np.divide(sums.outcome, sums.rows, out=np.full_like(sums.rows, 0.5), where=used)
    budget = np.log(2 * max(int(used.sum()), 1) / alpha) / np.maximum(sums.rows, 1e-300)
    low, high = (_farthest(np.clip(rate, 0.0, 1.0), budget, end) for end in (0.0, 1.0))
    return Gaps(np.where(used, low - mean, -1.0), np.where(used, high - mean, 1.0))


def in_proportion(sums: BinnedSums, shares: Float[np.ndarray, " b"]) -> BinnedSums:
    """One bin of all rows in which each bin has its share, (..., 1): as many rows as the scarcest bin allows.

    Rows of bin b count shares_b min_a(n_a / shares_a) / n_b each, at most 1, where shares_b > 0, and else not at all.
    So the gap of the whole is sum_b shares_b gap_b, however many rows there are in which bin.

    >>> sums = BinnedSums(*np.array([[30.0, 90.0], [9.0, 60.0], [3.0, 42.0], [8.0, 63.0]]))
    >>> [each.tolist() for each in in_proportion(sums, np.array([0.5, 0.5]))]
    [[60.0], [29.0], [17.0], [29.0]]
    """
    used = shares > 0
    if not used.any():
        return BinnedSums(*(np.zeros_like(each[..., :1]) for each in sums))
    rows = sums.rows[..., used]
    whole = (rows / shares[used]).min(-1, keepdims=True)
    weights = np.divide(whole * shares[used], rows, out=np.zeros_like(rows), where=rows > 0)
    return BinnedSums(*((weights * each[..., used]).sum(-1, keepdims=True) for each in sums))


def _farthest(rate: NDArray[np.float64], budget: NDArray[np.float64], end: float) -> NDArray[np.float64]:
    """The probability between rate and `end` that is farthest from the rate while kl(rate, .) <= budget; outer side."""
    inside, outside = rate.copy(), np.full_like(rate, end)
    for _ in range(60):
        middle = (inside + outside) / 2
        near = _kl(rate, middle) <= budget
        inside, outside = np.where(near, middle, inside), np.where(near, outside, middle)
    return outside


def _kl(rate: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        yes = np.where(rate > 0, rate * np.log(rate / other), 0.0)
        no = np.where(rate < 1, (1 - rate) * np.log((1 - rate) / (1 - other)), 0.0)
    return yes + no


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


class Wealth:
    """Both processes, step by step, of one stream or of several side by side.

    >>> wealth = Wealth(np.array([0.5, 0.5]))
    >>> for _ in range(3):
    ...     wealth.add(np.log([2.0, 0.5]))
    >>> np.exp([wealth.process, wealth.detector]).round(2).tolist()
    [2.74, 7.44]
    """

    def __init__(self, stakes: Float[np.ndarray, " c"]) -> None:
        """With the stakes of the bets, which sum to 1 at most."""
        self._log_stakes = np.log(stakes)
        self._process = self._detector = np.full(len(stakes), -np.inf)
        self.steps = 0

    def add(self, log_e: Float[np.ndarray, "*s c"]) -> None:
        """A step with the logarithms of its e-values, one for each bet."""
        self.steps += 1
        entering = -np.log(self.steps * (self.steps + 1.0))
        self._process = np.logaddexp(self._process, entering) + log_e
        self._detector = np.logaddexp(self._detector, 0.0) + log_e

    @property
    def process(self) -> NDArray[np.float64]:
        """The logarithm of the e-process, one per stream."""
        placed = logsumexp(self._log_stakes + self._process, axis=-1)
        return np.logaddexp(placed, -np.log(self.steps + 1.0))

    @property
    def detector(self) -> NDArray[np.float64]:
        """The logarithm of the e-detector, one per stream."""
        return logsumexp(self._log_stakes + self._detector, axis=-1)


def change_weights(log_e: Float[np.ndarray, "t c"], stakes: Float[np.ndarray, " c"]) -> Float[np.ndarray, " t"]:
    """How much each first step after a change has to say for itself: T_jn of every j, divided by their sum.

    With fixed bets and every step as likely beforehand this is the posterior of the change.
    """
    from_there = np.cumsum(log_e[::-1], axis=0)[::-1]
    logs = logsumexp(np.log(stakes / stakes.sum()) + from_there, axis=1)
    return np.exp(logs - logsumexp(logs))


def central_range(weights: Float[np.ndarray, " t"], level: float = 0.95) -> tuple[int, int]:
    """The first and the last place of a range that leaves at most (1 - level) / 2 of the weights out on either side."""
    below: Int[np.ndarray, " t"] = np.cumsum(weights)
    tail = (1 - level) / 2
    return int(np.searchsorted(below, tail, side="right")), min(int(np.searchsorted(below, 1 - tail)), len(weights) - 1)
