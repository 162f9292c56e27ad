"""The compiled form of `newton.solve_rows`, on NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focalcal import _native

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def minimisers(
    eta: Float[np.ndarray, "b k"],
    gamma: Float[np.ndarray, " b"],
    lam: Float[np.ndarray, " b"],
    *,
    max_steps: int,
    absolute: bool,
) -> tuple[np.ndarray, np.ndarray, Float[np.ndarray, "4 b"], Int[np.ndarray, " b"]]:
    """q, q - eta, (log multiplier, stationarity, floor, excess) and steps, of float64 in any layout."""
    eta, gamma, lam = (np.ascontiguousarray(given, dtype=np.float64) for given in (eta, gamma, lam))
    if eta.ndim != 2 or gamma.shape != eta.shape[:1] or lam.shape != eta.shape[:1]:
        raise ValueError(f"eta must be (B, K), gamma and lam (B,), got {eta.shape}, {gamma.shape} and {lam.shape}")
    q, d = np.empty(eta.shape), np.empty(eta.shape)
    figures, steps = np.empty((4, len(eta))), np.empty(len(eta), dtype=np.int64)
    _native.kernel().minimisers(
        eta.ctypes.data, gamma.ctypes.data, lam.ctypes.data, *eta.shape, min(max_steps, 2**62), absolute,
        q.ctypes.data, d.ctypes.data, figures.ctypes.data, steps.ctypes.data,
    )  # fmt: skip
    return q, d, figures, steps
