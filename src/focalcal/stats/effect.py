"""How large a paired difference is, in units of its own spread."""

from __future__ import annotations

import math
from typing import Any

from focalcal.stats.differences import checked_differences


def cohens_dz(differences: Any) -> float:
    """Mean over standard deviation (n - 1) of the differences (n,), n >= 2.

    Differences that are all the same have no spread: +-inf, and 0 if they are all zero. Cohen (1988), section 2.3.5.
    """
    d = checked_differences(differences, least=2)
    mean = float(d.mean())
    if (d == d[0]).all():
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / float(d.std(ddof=1))
