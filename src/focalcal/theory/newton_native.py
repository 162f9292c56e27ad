"""The compiled form of `newton.solve_rows`. Optional: `available()` is False where it was not built.

`FOCALCAL_NATIVE=0` in the environment turns it off. Without it NumPy does the same, slower.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_NAME = "focalcal._native._kernel"


@cache
def _kernel() -> Any:
    """The compiled module, or None. It is loaded from its file, because its package imports torch."""
    if os.environ.get("FOCALCAL_NATIVE") == "0":
        return None
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    spec = PathFinder.find_spec(_NAME, [str(Path(__file__).parents[1] / "_native")])
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    return module


def available() -> bool:
    """True if the compiled form can be used."""
    return hasattr(_kernel(), "minimisers")


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
    _kernel().minimisers(
        eta.ctypes.data, gamma.ctypes.data, lam.ctypes.data, *eta.shape, min(max_steps, 2**62), absolute,
        q.ctypes.data, d.ctypes.data, figures.ctypes.data, steps.ctypes.data,
    )  # fmt: skip
    return q, d, figures, steps
