"""Posteriors that are not uniform and yet not distorted by FCL at all.

If psi(eta_k) = eta_k phi'(eta_k) is the same number c for every k, then q = eta meets the stationarity conditions
eta_k phi'(q_k) + 2 lam (q_k - eta_k) = nu with nu = c, whatever lam >= 0 is. The risk is convex, so q* = eta exactly
and for every lam. (The paper's Theorem 5.6 says that the first-order term of q* - eta vanishes; all of it does.)
Conversely q* = eta makes psi constant on the support. Derivations are in docs/math/degenerate_posteriors.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from focalcal.theory.bounds import class_count
from focalcal.theory.posteriors import above_zero, one_number

if TYPE_CHECKING:
    from jaxtyping import Float

_CLOSEST = 4 * float(np.finfo(np.float64).eps)  # the relative precision that brentq can be asked for
_APART = 1e-6  # b / t_0 - 1, relative: psi is flat at t_0, and closer to it float64 cannot tell which a goes with b
_ROUNDING = 1e-8  # of a that close, with room


def degenerate_posterior(classes: int, *, gamma: float) -> Float[np.ndarray, " k"]:
    """A posterior (K,) of two levels b > a > 0 with psi(a) = psi(b), sorted from the largest; gamma > 0.

    psi falls from -1 at 0 to its minimum and then rises to 0 at 1, so it takes a value at most twice: every non-uniform
    posterior with constant psi has two levels. They exist if and only if (K - 1) b_max > 1, where b_max in (0, 1/2) is
    the other point at which psi is -1, with two exceptions: K = 5 at gamma = 0.029320523523 and K = 6 at
    0.418893734488, where the minimum is at 1/K. This excludes K <= 3 for every gamma; K = 4 has them for gamma up to
    1.4288, K = 5 up to 3.0702, K = 10 up to 12.798. Of several, one is returned, with b at least 1e-6 above the
    minimum, relatively: within about 1e-5 of the two exceptions there is no such one.

    Args:
        classes: K, at least 4.
        gamma: > 0.

    Returns:
        (K,), which `minimise` maps to itself at every lam.

    >>> degenerate_posterior(5, gamma=1.0).round(4)
    array([0.2362, 0.2362, 0.2362, 0.2362, 0.0551])
    """
    count, g = class_count(classes), one_number("gamma", above_zero("gamma", gamma))
    lowest = _lowest_point(g)
    largest = _root(lambda t: _log_minus_psi(t, g), lowest, 0.5)
    if (count - 1) * largest <= 1:
        enough = math.floor(1 / largest) + 2
        raise ValueError(
            f"classes must be at least {enough} for gamma = {g:g}, got {count}: with fewer, only uniform posteriors "
            "have a constant psi; choose more classes or a smaller gamma"
        )

    def partner(b: float) -> float:
        """The a below the minimum with psi(a) = psi(b)."""
        level = _log_minus_psi(b, g)
        return 0.0 if level <= 0 else _root(lambda t: _log_minus_psi(t, g) - level, 0.0, lowest)

    nearest, middle = lowest * (1 + _APART), (lowest + largest) / 2
    many = np.arange(1, count)  # how many classes have probability b
    at_start, at_middle, at_end = (many * b + (count - many) * partner(b) - 1 for b in (nearest, middle, largest))
    # Where the root is, if there is one; what the partner's rounding can make of 0 at the start is no sign.
    wide, narrow = at_end * at_middle <= 0, (at_middle * at_start < 0) & (np.abs(at_start) > _ROUNDING)
    if not (wide | narrow).any():
        raise ValueError(
            f"gamma must not be so close to where psi has its minimum at 1 / classes, got {g:.17g} with {count} classes"
            f": only posteriors within {_APART:g} of the uniform one have a constant psi; move gamma by 1e-4 of itself"
        )
    best = int(np.where(wide | narrow, np.abs(at_middle), np.inf).argmin())
    upper, ends = int(many[best]), (middle, largest) if wide[best] else (nearest, middle)
    b = _root(lambda b: upper * b + (count - upper) * partner(b) - 1, *ends)
    return np.repeat([b, (1 - upper * b) / (count - upper)], [upper, count - upper])


def _lowest_point(gamma: float) -> float:
    """Where psi has its minimum: (1 - gamma t) log t + 2 (1 - t) = 0, a concave function with one root below 1/e."""
    return _root(lambda t: (1 - gamma * t) * math.log(t) + 2 * (1 - t), math.exp(-4) / (1 + gamma), math.exp(-1))


def _log_minus_psi(t: float, gamma: float) -> float:
    """log of -psi(t) = (1 - t)^gamma (1 - gamma t log(t) / (1 - t)), 0 at t = 0."""
    return gamma * math.log1p(-t) + math.log1p(-gamma * t * math.log(t) / (1 - t)) if t else 0.0


def _root(function: Any, low: float, high: float) -> float:
    return float(brentq(function, low, high, xtol=1e-300, rtol=_CLOSEST))
