"""Bootstrap intervals for a mean of differences paired by seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from focalcal.core.checks import between_zero_and_one, one_of, whole_number
from focalcal.core.display import Displayed
from focalcal.core.rng import numpy_stream
from focalcal.stats.differences import checked_differences

METHODS = ("bca", "percentile")
_DRAWN_AT_ONCE = 1 << 22


@dataclass(frozen=True, repr=False)
class PairedInterval(Displayed):
    """The mean of the differences and the interval around it."""

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
    """Interval for the mean of differences (n,), n >= 2, from resamples of the pairs.

    "percentile" takes the (1 -+ level) / 2 quantiles of the resampled means; "bca" moves these by the bias z0 and the
    acceleration a (Efron 1987), a from the jackknife: q -> Phi(z0 + (z0 + z_q) / (1 - a (z0 + z_q))). Differences that
    are all the same give that point. With few seeds either interval is too short: at n = 3 the bootstrap knows 10
    different resamples.
    """
    one_of("method", method, METHODS)
    d = checked_differences(differences, least=2)
    between_zero_and_one("level", level, remedy="0.95 is usual")
    whole_number("resamples", resamples, least=1, most=10**7, remedy="a thousand and more give useful intervals")
    mean = float(d.mean())
    if (d == d[0]).all():
        return PairedInterval(mean, float(d[0]), float(d[0]), level, method, len(d))
    means = np.sort(_resampled_means(d, resamples, seed))
    quantiles = np.array([(1 - level) / 2, (1 + level) / 2])
    if method == "bca":
        quantiles = _bca_quantiles(quantiles, means, d)
    low, high = np.quantile(means, quantiles)
    return PairedInterval(mean, float(low), float(high), level, method, len(d))


def _resampled_means(d: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    generator = numpy_stream(seed, "paired-bootstrap")
    rows = max(1, _DRAWN_AT_ONCE // len(d))
    parts = [
        d[generator.integers(0, len(d), (min(rows, resamples - start), len(d)))].mean(1)
        for start in range(0, resamples, rows)
    ]
    return np.concatenate(parts)


def _bca_quantiles(
    quantiles: NDArray[np.float64], means: NDArray[np.float64], d: NDArray[np.float64]
) -> NDArray[np.float64]:
    mean = d.mean()
    slack = 4 * np.finfo(np.float64).eps * np.abs(d).sum()
    below, up_to = np.searchsorted(means, (mean - slack, mean + slack))
    bias = ndtri(np.clip((below + up_to) / 2, 0.5, len(means) - 0.5) / len(means))  # ties count half
    spread = d - mean  # the jackknife's deviations, but for a factor that cancels
    spread = spread / np.abs(spread).max()  # so that no power underflows
    acceleration = (spread**3).sum() / (6 * (spread**2).sum() ** 1.5)
    shifted = bias + ndtri(quantiles)
    rest = 1 - acceleration * shifted
    steps = np.divide(shifted, rest, out=np.copysign(np.inf, shifted), where=rest > 0)  # beyond the pole: the extreme
    moved: NDArray[np.float64] = ndtr(bias + steps)
    return moved
