"""Batches of images as arrays: levels and numbers in 0 .. 1, random numbers, borders, interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.float32]  # (N, H, W, 3), values in 0 .. 1
Levels = NDArray[np.uint8]  # (N, H, W, 3)
Generators = Sequence[np.random.Generator]  # one per image
Array = np.ndarray[Any, Any]


def to_levels(images: Images) -> Levels:
    """floor(255 x) within 0 .. 255, as the published files were made.

    The thousandth of a level keeps float32's rounding from taking a whole level off what should be a whole number.
    """
    whole: Images = np.clip(np.floor(images * np.float32(255) + np.float32(1e-3)), 0, 255)
    return whole.astype(np.uint8)


def round_levels(images: Images) -> Images:
    """The nearest whole levels, still from 0 to 1: what is left after an 8-bit file."""
    nearest: Images = np.floor(images * np.float32(255) + np.float32(0.5)) / np.float32(255)
    return nearest


def uniform(generators: Generators, low: float, high: float, shape: tuple[int, ...] = ()) -> Images:
    """(N, *shape) numbers uniform on [low, high), each image's from its own generator."""
    return np.stack([np.asarray(generator.uniform(low, high, shape)) for generator in generators]).astype(np.float32)


def mirror(index: Array, size: int) -> Array:
    """Whole positions folded into 0 .. size - 1 about the outer pixels' centres: c b | a b c d | c b."""
    if size == 1:
        return np.zeros_like(index)
    index = np.abs(index) % (2 * size - 2)
    return np.where(index < size, index, 2 * size - 2 - index)


def reflect(index: Array, size: int) -> Array:
    """Whole positions folded about the outer pixels' edges: b a | a b c d | d c."""
    index = index % (2 * size)
    return np.where(index < size, index, 2 * size - 1 - index)


def read_bilinear(images: Images, rows: Array, columns: Array, fold: Any) -> Images:
    """Image n at (rows_n, columns_n), each (N, H, W) in pixels from the first one's centre; `fold` is the border."""
    height, width = images.shape[1:3]
    above, before = np.floor(rows), np.floor(columns)
    down, right = (rows - above)[..., None], (columns - before)[..., None]
    above, before = above.astype(np.int64), before.astype(np.int64)
    top, bottom = fold(above, height), fold(above + 1, height)
    left, far = fold(before, width), fold(before + 1, width)
    n = np.arange(len(images))[:, None, None]
    upper: Images = images[n, top, left] * (1 - right) + images[n, top, far] * right
    lower: Images = images[n, bottom, left] * (1 - right) + images[n, bottom, far] * right
    between: Images = (upper * (1 - down) + lower * down).astype(np.float32)
    return between
