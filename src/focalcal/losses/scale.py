"""The scale of Focal Calibration Loss: as the paper writes it, or matched to cross-entropy's learning rate."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, get_args

from focalcal.core.checks import whole_number
from focalcal.losses.formula import Terms
from focalcal.losses.settings import choice, not_negative, probability

Scale = Literal["paper", "matched"]
check_scale = choice(*get_args(Scale))
_DIGAMMA_OF_TWO = 0.42278433509846714


def matched_scale(gamma: float, lam: float, classes: int) -> float:
    """The number r by which FCL(gamma, lam) with K classes is divided for cross-entropy's learning rate to suit it.

        r = sqrt(r_start r_mean)
        r_start = ((K - 1) / K)^gamma (1 + gamma log K / (K - 1)) + 2 lam / K
        r_mean  = 2 / (gamma + 2) (1 + gamma (digamma(gamma + 3) - digamma(2)) / (gamma + 1)) + lam K / (3 (K - 1))

    are ratios of the true logit's gradient to cross-entropy's: at the uniform prediction, where training starts, and of
    the means over p_y from 0 to 1. The first limits how small a learning rate may be, the second how large.
    docs/math/matched_scale.md has the derivation and the measurement that chose it.

    Args:
        gamma: the focusing parameter, >= 0.
        lam: the weight of the Brier score, >= 0.
        classes: K, at least 1.

    Returns:
        r, 1 for cross-entropy.

    >>> round(matched_scale(3.0, 4.0, 10), 4), matched_scale(0.0, 0.0, 10)
    (2.1757, 1.0)
    """
    count = whole_number("classes", classes, least=1, most=10**9, remedy="give the number of classes")
    return gradient_ratio(terms_of(gamma=gamma, lam=lam), count)


def terms_of(
    *, focal: float = 1.0, gamma: float = 0.0, lam: float = 0.0, scale: Scale = "paper", label_smoothing: float = 0.0
) -> Terms:
    """The terms that settings describe; each setting is checked."""
    return Terms(
        focal=focal,
        gamma=not_negative("gamma", gamma),
        lam=not_negative("lam", lam),
        matched=check_scale("scale", scale) == "matched",
        label_smoothing=probability("label_smoothing", label_smoothing),
    )


def gradient_ratio(terms: Terms, classes: int) -> float:
    """r with the weight of the focal term; 1 for one class, where no loss has a gradient."""
    if classes == 1:
        return 1.0
    others = classes - 1
    start: float = (others / classes) ** terms.gamma * (1 + terms.gamma * math.log(classes) / others)
    start = terms.focal * start + 2 * terms.lam / classes
    mean = terms.focal * _focal_mean(terms.gamma) + terms.lam * classes / (3 * others)
    if not start * mean > 0:
        raise ValueError(
            f"gamma = {terms.gamma:g} leaves no gradient at the uniform prediction of {classes} classes to match; "
            "choose a smaller one, or scale='paper'"
        )
    return math.sqrt(start * mean)


def _focal_mean(gamma: float) -> float:
    """2 times the integral of (1 - p)^(gamma + 1) - gamma p (1 - p)^gamma log p from 0 to 1."""
    return 2 / (gamma + 2) * (1 + gamma * (_digamma(gamma + 3) - _DIGAMMA_OF_TWO) / (gamma + 1))


def _digamma(x: float) -> float:
    """Of x >= 2, to 1e-13: its recurrence up to 10, then the asymptotic series."""
    value = 0.0
    while x < 10.0:
        value -= 1 / x
        x += 1.0
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return value + math.log(x) - 0.5 / x - series


def matched_terms(terms: Terms, classes: int) -> Terms:
    """The terms divided by their r: the scale costs nothing that the kernel does not do anyway."""
    ratio = gradient_ratio(terms, classes)
    return Terms(terms.focal / ratio, terms.gamma, terms.lam / ratio, *terms[3:7], False, terms.label_smoothing)


cached_matched_terms = lru_cache(maxsize=256)(matched_terms)
