"""E-values of calibration from sums over bins of the score: what a bet against "calibrated" has won.

A bet is a shift theta_b of the log-odds in each bin b. Of a row with score p and outcome y its factor is the likelihood
ratio of the shifted probability to p, exp(theta y) / (1 + p (exp(theta) - 1)), whose mean is 1 if p is right. The
product over n rows is at least

    exp(theta sum y - n log(1 + mean(p) (exp(theta) - 1))),

because the logarithm is concave: three sums per bin are enough, and rows may come in any order. Where outcomes may be
off by a gap between `lower` and `upper`, the end that favours the bet less stands in for the score. Derivation and
proofs: docs/math/monitor.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import NDArray


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
    total: NDArray[np.float64] = won.sum(-1)
    return total


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
