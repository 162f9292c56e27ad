"""Weather: snow, frost, fog, and the light of another hour."""

from __future__ import annotations

import numpy as np

from focalcal.data.corruptions.blur import magnify, streak
from focalcal.data.corruptions.pixels import Generators, Images, round_levels, to_levels, uniform
from focalcal.data.corruptions.textures import SIDE, TEXTURES, frost_textures, plasma_fractal

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


def brightness(images: Images, generators: Generators, amount: float) -> Images:
    """HSV value + amount, at most 1, hue and saturation as they were: all three channels times new / old value."""
    del generators  # nothing is random
    value: Images = images.max(3, keepdims=True)
    brighter: Images = np.minimum(value + np.float32(amount), np.float32(1))
    factor = brighter / np.maximum(value, np.float32(1e-9))
    return np.where(value > 0, images * factor, brighter).astype(np.float32)
