"""Differences paired by seed: checked, how large they are in units of their own spread, and several tests at once."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import shown


def as_float64(name: str, values: Any) -> NDArray[np.float64]:
    """`values` as an array of float64; all that is no array of numbers is a TypeError."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # the last is a tensor's
        raise TypeError(f"{name} must be an array or a list of numbers, got {shown(values)} ({error})") from None


def checked_differences(values: Any, *, least: int) -> NDArray[np.float64]:
    """`values` as float64 (n,): finite, and at least `least` of them."""
    d = as_float64("differences", values)
    if d.ndim != 1:
        raise ValueError(f"differences must be (n,), one a seed, got shape {d.shape}; pass candidate - baseline")
    if len(d) < least:
        raise ValueError(f"differences must be at least {least}, got {len(d)}; train more seeds")
    wrong = ~np.isfinite(d)
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"differences must be finite, got {d[at]} at place {at}; leave that pair out, and say so")
    return d


def cohens_dz(differences: Any) -> float:
    """Mean over standard deviation (n - 1) of paired differences, the effect size of `compare`.

    Differences that are all the same, but for rounding, have no spread: +-inf, and 0 if they are all zero. With few
    differences it overstates: its expectation is that of the population times 1.77 at n = 3 and 1.09 at n = 10.
    Cohen (1988), section 2.3.5.

    Args:
        differences: (n,), candidate minus baseline, n >= 2.

    Returns:
        d_z, in standard deviations.

    >>> round(cohens_dz([0.3, 0.1, 0.2]), 4)
    2.0
    """
    d = checked_differences(differences, least=2)
    mean, spread = float(d.mean()), float(d.std(ddof=1))
    if spread <= 4 * sys.float_info.epsilon * float(abs(d).max()):
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / spread


def holm(p_values: Any) -> NDArray[np.float64]:
    """Holm's adjusted p-values, as `compare` has them: with p sorted, max over j <= i of min(1, (m - j + 1) p_(j)).

    Rejecting where they are <= alpha keeps the chance of any false rejection in the family <= alpha, whatever the
    dependence between the tests. Holm (1979).

    Args:
        p_values: (m,), one per test of the family.

    Returns:
        (m,), in the order given.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = as_float64("p_values", p_values)
    if p.ndim != 1:
        raise ValueError(f"p_values must be (m,), one a test of the family, got shape {p.shape}")
    wrong = ~((p >= 0) & (p <= 1))  # NaN is wrong
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"p_values must be from 0 to 1, got {p[at]} at place {at}; leave out tests that were not made")
    order = np.argsort(p, kind="stable")
    stepped = np.minimum(1.0, (len(p) - np.arange(len(p))) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(stepped) if len(p) else stepped
    return adjusted
