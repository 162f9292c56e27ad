"""Several tests at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.stats.differences import as_float64


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
