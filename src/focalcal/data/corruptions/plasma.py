"""Plasma fractals: clouds by midpoint displacement (diamond and square), on a torus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def plasma_fractal(generators: Sequence[np.random.Generator], side: int, decay: float) -> Array:
    """(N, side, side) heights from 0 to 1; `side` is a power of two, neighbours wrap around.

    From one point on, halve the spacing: the centre of each square, then the middle of each edge, becomes the mean of
    its four neighbours plus U(-w, w), with w divided by decay^2 from one spacing to the next (the published code
    multiplies its uniform numbers by their own range, so its decay counts twice). Then shifted and scaled to 0 .. 1.
    """
    if side < 2 or side & (side - 1):
        raise ValueError(f"side must be a power of two >= 2, got {side!r}")
    drawn = np.stack([generator.uniform(-1, 1, side * side - 1) for generator in generators])
    heights = np.zeros((len(drawn), side, side))
    spacing, wibble, used = side, 1.0, 0
    while spacing >= 2:
        half, cells = spacing // 2, side // spacing
        noise = wibble * drawn[:, used : used + 3 * cells**2].reshape(-1, 3, cells, cells)
        corners = heights[:, ::spacing, ::spacing]
        centres = _sum_with_next(_sum_with_next(corners, 1), 2) / 4 + noise[:, 0]
        heights[:, half::spacing, half::spacing] = centres
        upper = (_sum_with_next(corners, 2) + _sum_with_last(centres, 1)) / 4 + noise[:, 1]
        heights[:, ::spacing, half::spacing] = upper
        heights[:, half::spacing, ::spacing] = (_sum_with_next(corners, 1) + _sum_with_last(centres, 2)) / 4 + noise[
            :, 2
        ]
        spacing, wibble, used = half, wibble / decay**2, used + 3 * cells**2
    heights = heights - heights.min((1, 2), keepdims=True)
    scaled: Array = heights / heights.max((1, 2), keepdims=True)
    return scaled


def _sum_with_next(grid: Array, axis: int) -> Array:
    return grid + np.roll(grid, -1, axis)


def _sum_with_last(grid: Array, axis: int) -> Array:
    return grid + np.roll(grid, 1, axis)
