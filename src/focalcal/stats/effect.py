"""How large a paired difference is, in units of its own spread."""

from __future__ import annotations

import math
import sys
from typing import Any

from focalcal.stats.differences import checked_differences


def cohens_dz(differences: Any) -> float:
    """Mean over standard deviation (n - 1) of the differences (n,), n >= 2.

    Differences that are all the same, but for rounding, have no spread: +-inf, and 0 if they are all zero. With few
    differences it overstates: its expectation is that of the population times 1.77 at n = 3 and 1.09 at n = 10.
    Cohen (1988), section 2.3.5.
    """
    d = checked_differences(differences, least=2)
    mean, spread = float(d.mean()), float(d.std(ddof=1))
    if spread <= 4 * sys.float_info.epsilon * float(abs(d).max()):
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / spread
