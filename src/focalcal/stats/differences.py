"""Differences paired by seed, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def checked_differences(values: Any, *, least: int) -> NDArray[np.float64]:
    """`values` as float64 (n,): finite, and at least `least` of them."""
    d = np.asarray(values, dtype=np.float64)
    if d.ndim != 1:
        raise ValueError(f"differences must be (n,), one a seed, got shape {d.shape}; pass candidate - baseline")
    if len(d) < least:
        raise ValueError(f"differences must be at least {least}, got {len(d)}; train more seeds")
    wrong = ~np.isfinite(d)
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"differences must be finite, got {d[at]} at place {at}; leave that pair out, and say so")
    return d
