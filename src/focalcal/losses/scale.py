"""The scale of Focal Calibration Loss: as the paper writes it, or matched to cross-entropy's first step."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, get_args

from focalcal.losses.formula import Terms
from focalcal.losses.settings import choice, not_negative

Scale = Literal["paper", "matched"]
check_scale = choice(*get_args(Scale))


def matched_scale(gamma: float, lam: float, classes: int) -> float:
    """r, the gradient of FCL(gamma, lam) over that of cross-entropy where training starts, at p = 1 / K.

        r = ((K - 1) / K)^gamma (1 + gamma log K / (K - 1)) + 2 lam / K

    FCL / r has the minimiser of FCL and the first step of cross-entropy, whose learning rate carries over. Lam to
    infinity makes it K / 2 times the Brier score. docs/math/matched_scale.md.

    >>> round(matched_scale(3.0, 4.0, 10), 4)
    2.0885
    """
    if isinstance(classes, int) and classes < 1:
        raise ValueError(f"classes must be a whole number >= 1, got {classes!r}")
    return gradient_ratio(Terms(gamma=not_negative("gamma", gamma), lam=not_negative("lam", lam)), classes)


def gradient_ratio(terms: Terms, classes: int) -> float:
    """The same with the weight of the focal term: 1 for one class, where no loss has a gradient."""
    if classes == 1:
        return 1.0
    others = classes - 1
    focal: float = (others / classes) ** terms.gamma * (1 + terms.gamma * math.log(classes) / others)
    return terms.focal * focal + 2 * terms.lam / classes


def matched_terms(terms: Terms, classes: int) -> Terms:
    """The terms divided by their r: the scale costs nothing that the kernel does not do anyway."""
    ratio = gradient_ratio(terms, classes)
    return terms._replace(focal=terms.focal / ratio, lam=terms.lam / ratio, matched=False)


cached_matched_terms = lru_cache(maxsize=256)(matched_terms)
