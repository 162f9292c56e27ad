"""Blur: out of focus, through frosted glass, by motion and by zooming."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage

from focalcal.lab.data.corruptions.pixels import Array, Generators, Images, round_levels, to_levels, uniform


def defocus_blur(images: Images, _: Generators, strength: tuple[float, float]) -> Images:
    """Convolution with `disk_kernel(radius, alias)`, borders mirrored about the outer pixels' centres."""
    kernel = disk_kernel(*strength)[None, :, :, None]
    blurred: Images = ndimage.correlate(images, kernel, mode="mirror")
    return blurred


@lru_cache(maxsize=16)
def disk_kernel(radius: float, alias: float) -> Array:
    """Pixels no further than `radius` from the centre, equal, then smoothed by 3 x 3 Gaussian weights of `alias`."""
    reach = int(radius)
    offsets = np.arange(-reach, reach + 1)
    disk = (offsets**2 + offsets[:, None] ** 2 <= radius**2).astype(np.float64)
    line = np.exp(-np.array([1.0, 0.0, 1.0]) / (2 * alias**2))
    line /= line.sum()
    kernel: Array = ndimage.convolve(np.pad(disk / disk.sum(), 1), np.outer(line, line), mode="constant")
    return kernel


def glass_blur(images: Images, generators: Generators, strength: tuple[float, int, int]) -> Images:
    """Gaussian blur, `sweeps` shuffles, Gaussian blur; strength is (sigma, reach, sweeps).

    In a shuffle every pixel but the first `reach` + 1 rows and columns takes the value of one up to `reach` above and
    to the left. The published code means to swap the two; as written (views of one array) it copies, before the source
    is itself replaced, and so do we. Levels are truncated between blur and shuffle, as there.
    """
    sigma, reach, sweeps = strength
    height, width = images.shape[1:3]
    shuffled = to_levels(_gaussian(images, sigma)).astype(np.float32) / np.float32(255)
    n = np.arange(len(images))[:, None, None]
    rows, columns = np.arange(height)[:, None], np.arange(width)
    moves = (rows > reach) & (columns > reach)
    for _ in range(sweeps):
        back = np.stack([generator.integers(-reach, 1, (2, height, width)) for generator in generators]) * moves
        shuffled = shuffled[n, rows + back[:, 0], columns + back[:, 1]]
    return _gaussian(shuffled, sigma)


def _gaussian(images: Images, sigma: float) -> Images:
    blurred: Images = ndimage.gaussian_filter(images, sigma, axes=(1, 2), mode="nearest", truncate=4.0)
    return blurred


def motion_blur(images: Images, generators: Generators, strength: tuple[float, float]) -> Images:
    """`streak` by (radius, sigma) at an angle uniform on (-45, 45) degrees; rounded, as in an 8-bit file."""
    return round_levels(streak(images, uniform(generators, -45, 45), *strength))


def streak(images: Images, degrees: Array, radius: float, sigma: float) -> Images:
    """The mean of an image and its copies pulled along a line at `degrees` (N,), by `streak_weights`.

    Copy i is read i pixels away, rounded, at (i cos, i sin) to the right and downwards; the outer pixels continue
    beyond the border (ImageMagick's motion blur).
    """
    weights = streak_weights(radius, sigma)
    angle = np.deg2rad(degrees.astype(np.float64))
    height, width = images.shape[1:3]
    n = np.arange(len(images))[:, None, None]
    blurred = np.zeros_like(images)
    for distance, weight in enumerate(weights):
        right = np.ceil(distance * np.cos(angle) - 0.5).astype(int)[:, None, None]
        down = np.ceil(distance * np.sin(angle) - 0.5).astype(int)[:, None, None]
        rows = np.clip(np.arange(height)[:, None] + down, 0, height - 1)
        columns = np.clip(np.arange(width) + right, 0, width - 1)
        blurred += np.float32(weight) * images[n, rows, columns]
    return blurred


def streak_weights(radius: float, sigma: float) -> Array:
    """exp(-i^2 / (2 sigma^2)) for i = 0 .. 2 radius, divided by their sum: one half of a bell."""
    weights = np.exp(-(np.arange(2 * np.ceil(radius) + 1) ** 2) / (2 * sigma**2))
    normalised: Array = weights / weights.sum()
    return normalised


def zoom_blur(images: Images, _: Generators, largest: float) -> Images:
    """The mean of the image and its zooms about the centre by 1, 1.01, 1.02 ... `largest`."""
    zooms = [magnify(images, 1 + k / 100) for k in range(round((largest - 1) * 100) + 1)]
    return np.asarray((images + sum(zooms)) / np.float32(len(zooms) + 1), np.float32)


def magnify(images: Images, factor: float) -> Images:
    """The centre, magnified linearly by `factor` >= 1, at the same size.

    The first and last pixels of the crop become the first and last of what is magnified, as in `scipy.ndimage.zoom`.
    """
    sides = images.shape[1:3]
    crops = [math.ceil(side / factor) for side in sides]
    large = [round(crop * factor) for crop in crops]
    rows, columns = (slice((side - crop) // 2, (side + crop) // 2) for side, crop in zip(sides, crops, strict=True))
    pixels = torch.from_numpy(np.ascontiguousarray(images[:, rows, columns].transpose(0, 3, 1, 2)))
    zoomed = F.interpolate(pixels, large, mode="bilinear", align_corners=True).numpy().transpose(0, 2, 3, 1)
    top, left = ((size - side) // 2 for size, side in zip(large, sides, strict=True))
    made: Images = zoomed[:, top : top + sides[0], left : left + sides[1]]
    return made
