"""How strong the anchor must be for the minimiser to stay within a tolerance of the posterior."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from focalcal.theory.bounds import class_count, interior_constant
from focalcal.theory.minimiser import minimise
from focalcal.theory.posteriors import above_zero, at_least_zero, broadcast, distributions, one_number
from focalcal.theory.sharp_bounds import slope_bound

if TYPE_CHECKING:
    from jaxtyping import Float

_PRECISION = 1e-10  # of lam, relative
_ROUNDING = 1e-15  # what the order of a sum can change in a norm


def lam_for(
    tolerance: float,
    eta: Any | None = None,
    *,
    gamma: Any,
    classes: int | None = None,
    smallest: float | None = None,
) -> float:
    """The anchor weight that keeps |q* - eta|_2 <= tolerance, over given posteriors or over all of them.

    With `eta`, (K,) or (*b, K), and gamma a number or one a posterior: the smallest such lam >= 0, found by solving for
    q*; 0.0 if no anchor is needed, as for gamma = 0. It errs by less than 1e-10 of itself (or what the last
    digit of q* decides, where lam is so small that q* hardly depends on it), and to the safe side: the q* of `minimise`
    at the returned lam is within the tolerance. The distance does not increase with lam: of q at lam and q'
    at lam' > lam each minimises its own risk, and adding both inequalities leaves
    (lam' - lam) (|q - eta|^2 - |q' - eta|^2) >= 0.

    With `classes` = K: what the paper's theorems certify for every posterior of K classes, log K / tolerance^2
    (Theorem 5.4). If each has eta_k >= `smallest`, max(2 A sqrt(K) / tolerance, 4 log K / smallest^2) serves as well
    (Theorem 5.5, A = `interior_constant`), and the smaller of the two is returned.

    >>> round(lam_for(0.01, [0.7, 0.2, 0.1], gamma=2.0), 3)
    36.614
    >>> round(lam_for(0.1, classes=10, gamma=2.0), 1)
    230.3
    """
    allowed = one_number("tolerance", above_zero("tolerance", tolerance))
    if (eta is None) == (classes is None):
        given = "neither" if eta is None else "both"
        raise ValueError(f"exactly one of eta and classes must be given, got {given}; eta for posteriors you know")
    if classes is not None:
        return _certified(allowed, at_least_zero("gamma", gamma), class_count(classes), smallest)
    if smallest is not None:
        raise ValueError(f"smallest must be None with eta, which says it itself, got {smallest!r}; leave it out")
    posterior, (g,) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma))
    return _smallest_lam(allowed, posterior.reshape(-1, posterior.shape[-1]), g.reshape(-1))


def _certified(tolerance: float, gamma: Float[np.ndarray, "*b"], classes: int, smallest: float | None) -> float:
    everywhere = math.log(classes) / tolerance / tolerance
    if smallest is None:
        return everywhere
    least = one_number("smallest", above_zero("smallest", smallest))
    if least > 1 / classes:
        raise ValueError(
            f"smallest must be in (0, 1/K], K = {classes}, got {least:g}; "
            "K probabilities that sum to one are not all larger than 1/K"
        )
    constant = float(np.max(interior_constant(gamma)))
    return min(everywhere, max(2 * constant * math.sqrt(classes) / tolerance, 4 * math.log(classes) / least / least))


def _smallest_lam(tolerance: float, eta: Float[np.ndarray, "n k"], gamma: Float[np.ndarray, " n"]) -> float:
    """The root of log lam -> log(largest distance / tolerance), which is close to a line of slope -1."""
    eta, gamma = eta[gamma > 0], gamma[gamma > 0]  # for gamma = 0, q* = eta
    if not len(eta):
        return 0.0
    excess = _Excess(tolerance, eta, gamma)
    if excess(0.0) <= 0:
        return 0.0
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
    step = _PRECISION / 4
    log_lam = brentq(lambda x: excess(math.exp(x)), math.log(broken), math.log(safe), xtol=step)
    while excess(math.exp(log_lam)) > -_ROUNDING:
        log_lam, step = log_lam + step, 2 * step
    return math.exp(log_lam)


class _Excess:
    """log of the largest distance |q* - eta|_2 over the tolerance, for a search that narrows a bracket of lam.

    A posterior within the tolerance at some lam is so at every larger one. So whenever the value is positive, which
    makes lam the lower end of the bracket, only the posteriors above the tolerance are kept.
    """

    def __init__(self, tolerance: float, eta: Float[np.ndarray, "n k"], gamma: Float[np.ndarray, " n"]) -> None:
        self._tolerance, self._eta, self._gamma = tolerance, eta, gamma

    def __call__(self, lam: float) -> float:
        solution = minimise(self._eta, gamma=self._gamma, lam=lam)
        solution.unwrap()
        with np.errstate(over="ignore"):  # of a tolerance below 1e-150
            ratio = np.linalg.norm(solution.displacement / self._tolerance, axis=-1)
        above = ratio > 1
        if above.any():
            self._eta, self._gamma = self._eta[above], self._gamma[above]
        return math.log(min(max(float(ratio.max()), sys.float_info.min), sys.float_info.max))
