"""Bootstrap intervals for a mean of differences paired by seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri

from focalcal.core.checks import between_zero_and_one, one_of, whole_number
from focalcal.core.display import Displayed
from focalcal.core.rng import numpy_stream
from focalcal.stats.differences import checked_differences

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = ("bca", "percentile")
_DRAWN_AT_ONCE = 1 << 17  # of pairs, as indices: a megabyte, which stays in the cache
_COUNTS_KEPT = 1 << 25  # bytes
_ENUMERATED = (
    400_000  # distinct resamples: those of 11 pairs are listed in a tenth of a second, those of 12 in half of one
)
_ROUNDING = 1e-12  # of probabilities


@dataclass(frozen=True, repr=False)
class PairedInterval(Displayed):
    """The mean of the differences and the interval around it.

    Attributes:
        mean: of the differences.
        low: the interval's lower end.
        high: its upper end.
        level: its nominal coverage.
        method: "bca" or "percentile".
        n: how many differences.

    >>> found = bootstrap_ci([0.3, 0.1, 0.2, 0.4])
    >>> round(found.mean, 3), found.low < found.mean < found.high
    (0.25, True)
    """

    mean: float
    low: float
    high: float
    level: float
    method: Literal["bca", "percentile"]
    n: int


def bootstrap_ci(
    differences: Any,
    *,
    level: float = 0.95,
    method: Literal["bca", "percentile"] = "bca",
    resamples: int = 9_999,
    seed: int = 0,
) -> PairedInterval:
    """Interval for the mean of paired differences, from resamples of the pairs.

    Up to n = 11 every distinct resample is counted with its probability, so that the interval is exact, and neither
    `resamples` nor `seed` nor the order of the pairs plays a part; of more pairs `resamples` are drawn.

    "percentile" takes the (1 -+ level) / 2 quantiles of the resampled means; "bca" moves these by the bias z0 and the
    acceleration a (Efron 1987), a from the jackknife: q -> Phi(z0 + (z0 + z_q) / (1 - a (z0 + z_q))). Differences that
    are all the same give that point. With few seeds either interval is too short: at n = 3 the bootstrap knows 10
    different resamples.

    Args:
        differences: (n,), candidate minus baseline, n >= 2.
        level: the nominal coverage.
        method: "bca" or "percentile".
        resamples: how many are drawn of more than 11 pairs.
        seed: of the draw.

    Returns:
        The mean and its interval.

    >>> found = bootstrap_ci([0.3, 0.1, 0.2, 0.4])
    >>> round(found.low, 3), round(found.high, 3)
    (0.15, 0.35)
    """
    one_of("method", method, METHODS)
    d = checked_differences(differences, least=2)
    between_zero_and_one("level", level, remedy="0.95 is usual")
    whole_number("resamples", resamples, least=1, most=10**7, remedy="a thousand and more give useful intervals")
    mean = float(d.mean())
    if (d == d[0]).all():
        return PairedInterval(mean, float(d[0]), float(d[0]), level, method, len(d))
    weights = None  # all alike
    if len(d) < 32 and comb(2 * len(d) - 1, len(d)) <= _ENUMERATED:
        counts, weights = _distinct_resamples(len(d))
        d = np.sort(d)  # sums round alike in whatever order the pairs came
        means = counts @ d / len(d)
    else:
        means = _resampled_means(d, resamples, seed)
    quantiles = np.array([(1 - level) / 2, (1 + level) / 2])
    if method == "bca":
        quantiles = _bca_quantiles(quantiles, means, weights, d)
    low, high = np.quantile(means, quantiles) if weights is None else _weighted_quantiles(quantiles, means, weights)
    return PairedInterval(mean, float(low), float(high), level, method, len(d))


@lru_cache(maxsize=4)
def _distinct_resamples(n: int) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """How often each of n pairs is drawn, a row per multiset (C(2n - 1, n), n), and the multinomial probabilities."""
    counts, left = np.zeros((1, 0), np.int8), np.array([n])
    for _ in range(n - 1):  # each row goes on with 0 to `left` draws of the next pair
        parents = np.repeat(np.arange(len(left)), left + 1)
        drawn = np.arange(len(parents)) - np.repeat(np.cumsum(left + 1) - (left + 1), left + 1)
        counts, left = np.column_stack([counts[parents], drawn.astype(np.int8)]), left[parents] - drawn
    counts = np.column_stack([counts, left.astype(np.int8)])
    log_factorials = gammaln(np.arange(n + 1) + 1.0)
    return counts, np.exp(log_factorials[n] - log_factorials[counts].sum(1) - n * np.log(n))


def _resampled_means(d: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    if resamples * len(d) <= _COUNTS_KEPT:
        counts = _drawn_counts(len(d), resamples, seed)
        step = max(1, (1 << 17) // len(d))  # of which float64 stays in the cache
        parts = [counts[start : start + step].astype(np.float64) @ d for start in range(0, resamples, step)]
        return np.concatenate(parts) / len(d)
    return np.concatenate([d[drawn].mean(1) for drawn in _drawn(len(d), resamples, seed)])


def _drawn(n: int, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Indices of n pairs, (some resamples, n) at a time."""
    generator, rows = numpy_stream(seed, "paired-bootstrap"), max(1, _DRAWN_AT_ONCE // n)
    return (generator.integers(0, n, (min(rows, resamples - start), n)) for start in range(0, resamples, rows))


@lru_cache(maxsize=1)
def _drawn_counts(n: int, resamples: int, seed: int) -> NDArray[np.uint8]:
    """How often each of n pairs is drawn, (resamples, n): kept, since many methods are compared on the same rows."""
    counts = [
        np.bincount((drawn + n * np.arange(len(drawn))[:, None]).ravel(), minlength=drawn.size).astype(np.uint8)
        for drawn in _drawn(n, resamples, seed)
    ]  # none is drawn 256 times
    return np.concatenate(counts).reshape(resamples, n)


def _weighted_quantiles(
    quantiles: NDArray[np.float64], means: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Where the distribution function reaches the quantile; halfway to the next mean where it equals it."""
    order = np.argsort(means)
    reached = np.cumsum(weights[order])
    at = np.searchsorted(reached, [quantiles - _ROUNDING, quantiles + _ROUNDING]).clip(max=len(means) - 1)
    return np.asarray(means[order][at].mean(0))


def _bca_quantiles(
    quantiles: NDArray[np.float64],
    means: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    d: NDArray[np.float64],
) -> NDArray[np.float64]:
    mean = d.mean()
    slack = 4 * np.finfo(np.float64).eps * np.abs(d).sum()
    below = np.average(
        (means < mean - slack) + 0.5 * (np.abs(means - mean) <= slack), weights=weights
    )  # ties count half
    least = 0.5 / len(means) if weights is None else weights.min()
    bias = ndtri(np.clip(below, least, 1 - least))
    spread = d - mean  # the jackknife's deviations, but for a factor that cancels
    spread = spread / np.abs(spread).max()  # so that no power underflows
    acceleration = (spread**3).sum() / (6 * (spread**2).sum() ** 1.5)
    shifted = bias + ndtri(quantiles)
    rest = 1 - acceleration * shifted
    steps = np.divide(shifted, rest, out=np.copysign(np.inf, shifted), where=rest > 0)  # beyond the pole: the extreme
    return ndtr(bias + steps)
