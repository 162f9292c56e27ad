"""Drawn textures: plasma clouds for "fog", and frost.

The published "frost" uses photographs of frosted windows, which are not ours to ship. The textures here have their
look (pale blue, feathery crystals over a cloudy film, mean about one half), not their content, so "frost" is further
from the published files than the other corruptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import ndimage

from focalcal.core.rng import numpy_stream

Array = np.ndarray[Any, Any]

TEXTURES = 5
SIDE = 256
_FEATHERS = 450
_DETAIL = 2  # drawn so many times larger, then averaged, which smooths the lines
_FILM = np.array([0.22, 0.28, 0.36])  # colour where there is no crystal
_CRYSTAL = np.array([0.88, 0.94, 1.00])


def plasma_fractal(generators: Sequence[np.random.Generator], side: int, decay: float) -> Array:
    """Clouds by midpoint displacement (diamond and square) on a torus: (N, side, side) heights from 0 to 1.

    `side` is a power of two, and neighbours wrap around.
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
        upper = (_sum_with_next(corners, 2) + _sum_with_last(centres, 1)) / 4 + noise[:, 1]
        left = (_sum_with_next(corners, 1) + _sum_with_last(centres, 2)) / 4 + noise[:, 2]
        heights[:, half::spacing, half::spacing] = centres
        heights[:, ::spacing, half::spacing] = upper
        heights[:, half::spacing, ::spacing] = left
        spacing, wibble, used = half, wibble / decay**2, used + 3 * cells**2
    heights = heights - heights.min((1, 2), keepdims=True)
    scaled: Array = heights / heights.max((1, 2), keepdims=True)
    return scaled


@lru_cache(maxsize=1)
def frost_textures() -> Array:
    """(TEXTURES, SIDE, SIDE, 3) float32 in 0 .. 1, the same at every call; they wrap around at their borders."""
    textures = np.stack([_texture(number) for number in range(TEXTURES)]).astype(np.float32)
    textures.flags.writeable = False  # one array for all callers
    return textures


def _texture(number: int) -> Array:
    generator = numpy_stream(0, "frost texture", number)
    film = plasma_fractal([generator], SIDE, 1.35)[0]
    crystals = _crystals(generator)
    cover = np.clip(0.35 * film + 0.75 * crystals, 0, 1)[..., None]
    brightness = 0.65 + 0.6 * film[..., None]
    lit: Array = np.clip((_FILM * (1 - cover) + _CRYSTAL * cover) * brightness, 0, 1)
    return lit


def _crystals(generator: np.random.Generator) -> Array:
    """(SIDE, SIDE): how much crystal covers each pixel, from feathers in random places and directions."""
    side = SIDE * _DETAIL
    canvas = np.zeros((side, side))
    for _ in range(_FEATHERS):
        points, weights = _feather(generator, generator.uniform(0.03, 0.13) * side)
        row, column = ((points + generator.uniform(0, side, 2)).round().astype(int) % side).T
        np.add.at(canvas, (row, column), weights)
    small = np.minimum(canvas, 1).reshape(SIDE, _DETAIL, SIDE, _DETAIL).mean((1, 3))
    soft = ndimage.gaussian_filter(small, 0.7, mode="wrap")
    return np.asarray(np.minimum(1.8 * soft, 1))


def _feather(generator: np.random.Generator, length: float) -> tuple[Array, Array]:
    """Points (P, 2) of one feather from the origin, and their weights (P,): a stem, and barbs along both sides."""
    angle, spread = generator.uniform(0, 2 * np.pi), np.deg2rad(generator.uniform(35, 65))
    bend = generator.uniform(-1, 1) / length
    stem = np.arange(0, length, 0.5)
    direction = angle + bend * stem
    spine = np.cumsum(0.5 * np.stack([np.sin(direction), np.cos(direction)], 1), 0)
    points, weights = [spine], [np.full(len(spine), 1.0)]
    for root in range(0, len(stem), 8):
        for side in (-1, 1):
            reach = 0.4 * (length - stem[root]) * generator.uniform(0.5, 1)
            barb = np.arange(0, reach, 0.5)[:, None]
            heading = direction[root] + side * spread
            points.append(spine[root] + barb * np.array([np.sin(heading), np.cos(heading)]))
            weights.append(0.9 * (1 - barb[:, 0] / max(reach, 1e-9)) ** 0.5)
    return np.concatenate(points), np.concatenate(weights)


def _sum_with_next(grid: Array, axis: int) -> Array:
    return grid + np.roll(grid, -1, axis)


def _sum_with_last(grid: Array, axis: int) -> Array:
    return grid + np.roll(grid, 1, axis)
