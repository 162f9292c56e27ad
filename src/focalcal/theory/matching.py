"""The anchor weight whose distortion cancels an overconfidence (docs/math/operating_point.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from scipy.optimize import brentq

from focalcal.theory.minimiser import SolverError
from focalcal.theory.posteriors import above_zero, focusing, one_number
from focalcal.theory.temperature import inverse_temperature, weighted_posteriors

_LARGEST_GAMMA = 64.0  # where the search for a gamma ends


class MatchStatus(StrEnum):
    """Whether there is a lam that cancels the overconfidence, and what to do if not."""

    MATCHED = "matched"
    NOT_OVERCONFIDENT = (
        "no lam: the temperature is at most 1, so the network is not overconfident and FCL would do harm; "
        "keep cross-entropy"
    )
    GAMMA_TOO_SMALL = (
        "no lam: even without an anchor this gamma does not distort enough; raise gamma, or regularise the network"
    )
    SHARPENS = (
        "no lam: focal loss makes these posteriors, which are flat over many classes, more confident instead of less; "
        "keep cross-entropy"
    )


@dataclass(frozen=True)
class Match:
    """The lam for a temperature and a gamma, and why there is none where there is none.

    Attributes:
        lam: T_pop(gamma, lam) = 1 / temperature; inf if the network is not overconfident or FCL would sharpen, and 0 if
            no lam of this gamma distorts enough.
        gamma: as given.
        temperature: as given.
        effective_temperature: T_pop at (gamma, lam).
        status: matched, or why not and what to do.
        gamma_needed: the smallest gamma whose focal loss (lam = 0) distorts enough, where this one's does not; inf if
            none up to 64 does, and None where the question does not arise.

    >>> match = matching_lam([[0.9, 0.06, 0.04], [0.5, 0.3, 0.2]], 3.0, gamma=1.0)
    >>> match.matched, round(match.gamma_needed, 2)
    (False, 4.04)
    """

    lam: float
    gamma: float
    temperature: float
    effective_temperature: float
    status: MatchStatus
    gamma_needed: float | None = None

    @property
    def matched(self) -> bool:
        """Whether the distortion at lam cancels the temperature."""
        return self.status is MatchStatus.MATCHED

    def unwrap(self) -> float:
        """lam, or a SolverError with the status."""
        if not self.matched:
            raise SolverError(f"temperature {self.temperature:g} at gamma = {self.gamma:g}: {self.status}")
        return self.lam


def matching_lam(
    eta: Any,
    temperature: float,
    *,
    gamma: float,
    weights: Any = None,
    precision: float = 1e-10,
    find_gamma: bool = True,
) -> Match:
    """The lam with T_pop(gamma, lam) = 1 / temperature over the posteriors eta (N, K), so that the two cancel.

    There is a lam whenever T_pop(gamma, 0) <= 1 / temperature < 1, since T_pop is continuous and tends to 1. It is the
    only one where T_pop rises with lam, as it does for the posteriors of networks (checked, and not true of all
    posteriors).

    Args:
        eta: (N, K), the posteriors.
        temperature: what the network's logits need, above 1 if it is overconfident.
        gamma: >= 0.
        weights: (N,), the posteriors' probabilities, None for equal ones.
        precision: by which lam errs at most, relatively; at least 1e-14.
        find_gamma: False saves the search for `gamma_needed`.

    Returns:
        lam, T_pop there, and a status that says why there is none where there is none.

    >>> match = matching_lam([[0.9, 0.06, 0.04], [0.5, 0.3, 0.2]], 1.5, gamma=3.0)
    >>> round(match.lam, 4), str(match.status)
    (1.3894, 'matched')
    """
    wanted = one_number("temperature", above_zero("temperature", temperature))
    focus = one_number("gamma", focusing(gamma))
    relative = max(one_number("precision", above_zero("precision", precision)), 1e-14)
    posterior, weight = weighted_posteriors(eta, weights)
    if wanted <= 1:
        return Match(math.inf, focus, wanted, 1.0, MatchStatus.NOT_OVERCONFIDENT)

    @cache
    def inverse(lam: float, g: float = focus) -> float:
        return inverse_temperature(posterior, weight, g, lam)

    without = inverse(0.0)
    if without < 1:
        return Match(math.inf, focus, wanted, 1.0, MatchStatus.SHARPENS)
    if without < wanted:
        needed = _smallest_gamma(lambda g: inverse(0.0, g), wanted, focus) if find_gamma else None
        return Match(0.0, focus, wanted, 1 / without, MatchStatus.GAMMA_TOO_SMALL, needed)
    lam = _root(inverse, wanted, without, relative)
    return Match(lam, focus, wanted, 1 / inverse(lam), MatchStatus.MATCHED)


def _root(inverse: Callable[[float], float], wanted: float, without: float, precision: float) -> float:
    """Where 1/T_pop falls to `wanted`. 1 / (1/T_pop - 1) is close to a line in lam, so a few solves do."""

    def height(lam: float) -> float:
        excess = inverse(lam) - 1
        return min(1 / excess, 1e300) if excess > 0 else 1e300

    goal, low, low_height = 1 / (wanted - 1), 0.0, 1 / (without - 1)
    high = 1.0
    while (high_height := height(high)) < goal:
        slope = (high_height - low_height) / (high - low)
        beyond = high + 1.2 * (goal - high_height) / slope if slope > 0 else math.inf
        low, low_height = high, high_height
        high = min(max(2 * high, beyond), 1e4 * high)
    if low_height >= goal:
        return low
    return float(brentq(lambda lam: height(lam) - goal, low, high, xtol=1e-300, rtol=precision))


def _smallest_gamma(inverse: Callable[[float], float], wanted: float, gamma: float) -> float:
    """Where 1/T_pop at lam = 0 reaches `wanted`, above a gamma at which it is smaller; inf if it does not."""
    low, high = gamma, max(2 * gamma, 1.0)
    while inverse(high) < wanted:
        if high >= _LARGEST_GAMMA:
            return math.inf
        low, high = high, min(2 * high, _LARGEST_GAMMA)
    return float(brentq(lambda g: inverse(g) - wanted, low, high, xtol=1e-6))
