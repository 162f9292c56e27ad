"""The population of 40 states whose calibration error is known exactly: theory solves it, data draws from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


def population() -> Float[np.ndarray, "40 5"]:
    """The posteriors of 40 equally probable states: quasi-random on the simplex, every eta_k >= 0.02."""
    quasi_random = np.outer(np.arange(1, 41), np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0])) % 1.0
    waiting = -np.log(quasi_random)
    return np.asarray(0.9 * waiting / waiting.sum(1, keepdims=True) + 0.02)
