"""The paired sign-flip test: are differences, paired by seed, centred on zero?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import one_of, whole_number
from focalcal.core.display import Displayed
from focalcal.core.rng import numpy_stream
from focalcal.stats.differences import checked_differences

EXACT_LIMIT = 40  # half of the signs at a time: 2 ** 20 sums, sorted
ALTERNATIVES = ("two-sided", "less", "greater")
_DRAWN_AT_ONCE = 1 << 22
Alternative = Literal["two-sided", "less", "greater"]


@dataclass(frozen=True, repr=False)
class SignFlip(Displayed):
    """The result of `sign_flip_test`.

    Attributes:
        p_value: share of the sign assignments whose mean is at least as extreme as the observed one.
        mean: of the differences.
        n: how many differences.
        floor: the least p-value that differences of these sizes can have: 2 / 2^n two-sided, 1 / 2^n one-sided, and
            twice that for every difference that is zero; 1 / (1 + draws) if that is more and signs are drawn.
        method: "enumerated" (no sampling error), or "drawn" (Monte Carlo).
        assignments: how many sign assignments were counted.
        error: the standard error of a drawn p-value; 0 if enumerated.

    >>> sign_flip_test([0.3, 0.1, 0.2, 0.4, 0.2]).floor  # five seeds cannot reach 0.05
    0.0625
    """

    p_value: float
    mean: float
    n: int
    floor: float
    method: Literal["enumerated", "drawn"]
    assignments: int
    error: float = 0.0


def sign_flip_test(
    differences: Any,
    *,
    alternative: Alternative = "two-sided",
    exact_limit: int = EXACT_LIMIT,
    draws: int = 999_999,
    seed: int = 0,
) -> SignFlip:
    """Of paired differences d the share of the 2^n assignments s of signs with |sum s d| >= |sum d|.

    Under the null hypothesis each difference is as likely as its negative, given its size. "less" counts
    sum s d <= sum d, "greater" the opposite. Sums that agree to within rounding are ties and count.

    Up to `exact_limit` differences every assignment is counted, in O(2^(n/2) n): the sums over one half of the
    differences are sorted and searched for those over the other. Beyond, `draws` random assignments and the observed
    one are counted, p = (1 + hits) / (1 + draws), which is a valid p-value itself.

    Args:
        differences: (n,), candidate minus baseline.
        alternative: "two-sided", "less" or "greater".
        exact_limit: differences up to which every assignment is counted, 40 at most.
        draws: random assignments beyond.
        seed: of the draws.

    Returns:
        The p-value, how it was found, and the least that it could have been.

    >>> sign_flip_test([0.3, 0.1, 0.2]).p_value  # three seeds: never below 0.25
    0.25
    """
    one_of("alternative", alternative, ALTERNATIVES)
    d = checked_differences(differences, least=1)
    whole_number("exact_limit", exact_limit, least=1, most=EXACT_LIMIT, remedy="beyond, signs are drawn")
    n, sides = len(d), 2 if alternative == "two-sided" else 1
    observed = float(d.sum())
    slack = 4 * n * np.finfo(np.float64).eps * float(np.abs(d).sum())
    threshold = (abs(observed) if sides == 2 else observed if alternative == "greater" else -observed) - slack
    signed = -d if alternative == "less" else d
    floor = min(1.0, sides * 2.0 ** (int((d == 0).sum()) - n))
    mean = observed / n
    if n <= exact_limit:
        hits = _at_least(signed, threshold)
        if sides == 2:  # sums are symmetric about zero: both tails, unless they meet
            hits = 2 * hits if threshold > 0 else 2**n
        return SignFlip(hits / 2**n, mean, n, floor, "enumerated", 2**n)
    whole_number("draws", draws, least=1, most=10**9, remedy="a hundred thousand and more give useful p-values")
    hits = _drawn_hits(signed, threshold, draws, seed, both=sides == 2)
    p = (1 + hits) / (1 + draws)
    floor = max(floor, 1 / (1 + draws))  # no draw may hit, but the observed signs are counted
    return SignFlip(p, mean, n, floor, "drawn", draws, float(np.sqrt(p * (1 - p) / (1 + draws))))


def _at_least(d: NDArray[np.float64], threshold: float) -> int:
    """How many of the 2^n sums of +-d reach `threshold`."""
    first, second = _sums(d[: len(d) // 2]), np.sort(_sums(d[len(d) // 2 :]))
    below = np.searchsorted(second, threshold - first, side="left")
    return int((len(second) - below).sum())


def _sums(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every sum of +-d, (2^n,)."""
    sums = np.zeros(1)
    for value in d:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def _drawn_hits(d: NDArray[np.float64], threshold: float, draws: int, seed: int, *, both: bool) -> int:
    generator = numpy_stream(seed, "sign-flip")
    hits, rows = 0, max(1, _DRAWN_AT_ONCE // len(d))
    for start in range(0, draws, rows):
        signs = generator.integers(0, 2, (min(rows, draws - start), len(d)), dtype=np.int8) * 2 - 1
        sums = signs @ d
        hits += int(((np.abs(sums) if both else sums) >= threshold).sum())
    return hits
