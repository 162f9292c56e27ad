"""Weather: snow, frost, fog, and the light of another hour.

The published "frost" uses photographs of frosted windows, which are not ours to ship. The textures here have their
look (pale blue, feathery crystals over a cloudy film, mean about one half), not their content, so "frost" is further
from the published files than the other corruptions.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import ndimage

from focalcal.core.rng import numpy_stream
from focalcal.lab.data.corruptions.blur import magnify, streak
from focalcal.lab.data.corruptions.pixels import Array, Generators, Images, round_levels, to_levels, uniform

TEXTURES = 5
SIDE = 256
_FEATHERS = 450
_DETAIL = 2  # drawn so many times larger, then averaged, which smooths the lines
_FILM = np.array([0.22, 0.28, 0.36])  # colour where there is no crystal
_CRYSTAL = np.array([0.88, 0.94, 1.00])
_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)


def snow(
    images: Images, generators: Generators, strength: tuple[float, float, float, float, float, float, float]
) -> Images:
    """Flakes, and the flakes turned by 180 degrees, over an image that is bleached towards white.

    strength is (location, scale, zoom, threshold, radius, sigma, weight). The flakes are N(location, scale^2), one
    number per pixel, magnified, set to 0 below `threshold`, clipped to 0 .. 1, cut to whole levels, drawn out by
    `streak` with (radius, sigma) at an angle uniform on (-135, -45) degrees and rounded to whole levels. The image is
    weight x + (1 - weight) max(x, 1.5 grey + 0.5).
    """
    location, scale, zoom, threshold, radius, sigma, weight = strength
    shape = (*images.shape[1:3], 1)
    layer = np.stack([generator.normal(location, scale, shape) for generator in generators]).astype(np.float32)
    layer = magnify(layer, zoom)
    layer = to_levels(np.where(layer < threshold, np.float32(0), layer)).astype(np.float32) / np.float32(255)
    layer = round_levels(streak(layer, uniform(generators, -135, -45), radius, sigma))
    grey: Images = (images * _LUMA).sum(3, keepdims=True)
    bleached: Images = weight * images + (1 - weight) * np.maximum(images, 1.5 * grey + 0.5)
    return (bleached + layer + layer[:, ::-1, ::-1]).astype(np.float32)


def frost(images: Images, generators: Generators, strength: tuple[float, float]) -> Images:
    """a x + b texture, strength (a, b): a random crop of a random one of the drawn `frost_textures`."""
    ours, theirs = strength
    height, width = images.shape[1:3]
    chosen = np.stack([generator.integers(0, (TEXTURES, SIDE, SIDE)) for generator in generators])
    number, top, left = chosen.T[:, :, None, None]
    rows, columns = (top + np.arange(height)[:, None]) % SIDE, (left + np.arange(width)) % SIDE
    texture: Images = frost_textures()[number, rows, columns]
    return (ours * images + theirs * texture).astype(np.float32)


def fog(images: Images, generators: Generators, strength: tuple[float, float]) -> Images:
    """(x + a plasma) max / (max + a), strength (a, decay), max the largest value of the image."""
    amount, decay = strength
    height, width = images.shape[1:3]
    side = 1 << (max(height, width, 2) - 1).bit_length()
    plasma = plasma_fractal(generators, side, decay)[:, :height, :width, None].astype(np.float32)
    largest: Images = images.max((1, 2, 3), keepdims=True)
    return ((images + amount * plasma) * (largest / (largest + amount))).astype(np.float32)


def brightness(images: Images, _: Generators, amount: float) -> Images:
    """HSV value + amount, at most 1, hue and saturation as they were: all three channels times new / old value."""
    value: Images = images.max(3, keepdims=True)
    brighter: Images = np.minimum(value + np.float32(amount), np.float32(1))
    factor = brighter / np.maximum(value, np.float32(1e-9))
    return np.where(value > 0, images * factor, brighter).astype(np.float32)


def plasma_fractal(generators: Generators, side: int, decay: float) -> Array:
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
