"""How strong the anchor must be for the minimiser to stay within a tolerance of the posterior."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from focalcal.theory.bounds import class_count, simplex_constant, slope_bound
from focalcal.theory.minimiser import minimise
from focalcal.theory.posteriors import above_zero, at_least_zero, broadcast, distributions, focusing, one_number

if TYPE_CHECKING:
    from jaxtyping import Float

_PRECISION = 1e-10  # of lam, relative
_SMALLEST = 1e-300  # a tolerance: lam is of the order of its inverse
_ROUNDING = 1e-15  # what the order of a sum can change in a norm


def lam_for(tolerance: float, eta: Any | None = None, *, gamma: Any, classes: int | None = None) -> float:
    """The anchor weight that keeps |q* - eta|_2 <= tolerance, over given posteriors or over all of them.

    With `eta`: the smallest such lam >= 0, found by solving for q*; 0.0 if no anchor is needed, as for gamma = 0. It
    errs by less than 1e-10 of itself (or what the last digit of q* decides, where lam is so small that q* hardly
    depends on it), and to the safe side: the q* of `minimise` at the returned lam is within the tolerance. The distance
    does not increase with lam: of q at lam and q' at lam' > lam each minimises its own risk, and adding both
    inequalities leaves (lam' - lam) (|q - eta|^2 - |q' - eta|^2) >= 0.

    With `classes` = K: what is certified for every posterior of K classes, the smaller of log K / tolerance^2 (the
    paper's Theorem 5.4) and B / (2 tolerance) (`simplex_bound`, which is never worse than the paper's interior rate).

    Args:
        tolerance: of |q* - eta|_2, at least 1e-300 as lam is of the order of its inverse.
        eta: posteriors, (K,) or (*b, K); or leave it out and give `classes`.
        gamma: >= 0, a number or one per posterior.
        classes: K, for what holds for every posterior.

    Returns:
        The anchor weight, >= 0.

    >>> round(lam_for(0.01, [0.7, 0.2, 0.1], gamma=2.0), 3)
    36.614
    >>> round(lam_for(0.1, classes=10, gamma=2.0), 2)
    5.12
    """
    allowed = one_number("tolerance", above_zero("tolerance", tolerance))
    if allowed < _SMALLEST:
        raise ValueError(f"tolerance must be at least {_SMALLEST:g}, got {allowed:g}; lam would exceed float64 below")
    if at_least_zero("gamma", gamma).size == 0:
        raise ValueError("gamma must have at least one value, got none; give one, or one per posterior")
    if (eta is None) == (classes is None):
        given = "neither" if eta is None else "both"
        raise ValueError(f"exactly one of eta and classes must be given, got {given}; eta for posteriors you know")
    if classes is not None:
        count, largest = class_count(classes), max(map(simplex_constant, focusing(gamma).ravel()))
        return min(math.log(count) / allowed / allowed, largest / 2 / allowed)
    posterior, (g,) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma))
    moves = g > 0  # for gamma = 0, q* = eta
    if not moves.any():
        return 0.0
    without = minimise(eta, gamma=gamma, lam=0.0)
    without.unwrap()
    if _within(allowed, without.displacement[moves]):
        return 0.0
    lam, step = _smallest_lam(allowed, posterior[moves], g[moves]), _PRECISION / 4
    # The last word is of eta as given: that it was divided by its sum can change the last digits of q* - eta.
    while _ratios(allowed, eta, gamma, lam)[moves].max() > 1 - _ROUNDING:
        lam, step = lam * (1 + step), 2 * step
    return lam


def _within(tolerance: float, displacement: Float[np.ndarray, "n k"]) -> bool:
    """Whether every |d|_2 <= tolerance: to the last digit, and where the squares underflow, too."""
    with np.errstate(over="ignore"):
        ratios = np.linalg.norm(displacement / tolerance, axis=-1)
    return bool(ratios.max() <= 1 and np.linalg.norm(displacement, axis=-1).max() <= tolerance)


def _ratios(tolerance: float, eta: Any, gamma: Any, lam: float) -> Float[np.ndarray, "*b"]:
    """|q* - eta|_2 / tolerance."""
    solution = minimise(eta, gamma=gamma, lam=lam)
    solution.unwrap()
    with np.errstate(over="ignore"):  # of a tolerance below 1e-150
        return np.asarray(np.linalg.norm(solution.displacement / tolerance, axis=-1))


def _smallest_lam(tolerance: float, eta: Float[np.ndarray, "n k"], gamma: Float[np.ndarray, " n"]) -> float:
    """The root of log lam -> log(largest distance / tolerance), which is close to a line of slope -1."""
    excess = _Excess(tolerance, eta, gamma)
    # The bound is the tolerance at this lam; rounding may leave the distance above it.
    safe = max(float(slope_bound(eta, gamma=gamma, lam=1.0).max()) / tolerance, sys.float_info.min)
    while excess(safe) > 0:
        safe *= 4
    broken, factor = safe / 4, 0.25
    while excess(broken) <= 0:
        safe, factor = broken, factor * factor
        broken *= factor
        if broken == 0:  # the tolerance is the distance without an anchor, to the last digit
            return safe
    root = brentq(lambda x: excess(math.exp(x)), math.log(broken), math.log(safe), xtol=_PRECISION / 4)
    return math.exp(root)


class _Excess:
    """log of the largest distance |q* - eta|_2 over the tolerance, for a search that narrows a bracket of lam.

    A posterior within the tolerance at some lam is so at every larger one. So whenever the value is positive, which
    makes lam the lower end of the bracket, only the posteriors above the tolerance are kept.
    """

    def __init__(self, tolerance: float, eta: Float[np.ndarray, "n k"], gamma: Float[np.ndarray, " n"]) -> None:
        self._tolerance, self._eta, self._gamma = tolerance, eta, gamma

    def __call__(self, lam: float) -> float:
        ratio = _ratios(self._tolerance, self._eta, self._gamma, lam)
        above = ratio > 1
        if above.any():
            self._eta, self._gamma = self._eta[above], self._gamma[above]
        return math.log(min(max(float(ratio.max()), sys.float_info.min), sys.float_info.max))
