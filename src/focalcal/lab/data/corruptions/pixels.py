"""Batches of images as arrays: levels and numbers in 0 .. 1, random numbers, borders, interpolation, resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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


def mix(images: Images, weights: Any, height: int, width: int) -> Images:
    """sum_p weights[q, p] image[p], pixels numbered row by row: (N, H, W, C) to (N, height, width, C).

    The weights are sparse: the few terms of a sum are then added in one order, and an image comes out the same in every
    batch, which dense products do not promise.
    """
    count, channels = len(images), images.shape[3]
    pixels = images.transpose(1, 2, 0, 3).reshape(-1, count * channels)
    made: Images = (weights @ pixels).reshape(height, width, count, channels).transpose(2, 0, 1, 3)
    return made


def along_both_axes(rows: Array, columns: Array) -> Any:
    """The sparse weights that resize by `rows` (A, H) and `columns` (B, W): (A B, H W)."""
    return sparse.kron(sparse.csr_array(rows), sparse.csr_array(columns), format="csr")


@lru_cache(maxsize=64)
def zoom_matrix(size: int, factor: float) -> Array:
    """(size, size): the central ceil(size / factor) pixels, stretched linearly by `factor`, and the middle of that.

    The first and last pixels of the crop become the first and last of the stretched line, as in `scipy.ndimage.zoom`.
    """
    crop = math.ceil(size / factor)
    start = (size - crop) // 2
    stretched = round(crop * factor)
    trim = (stretched - size) // 2
    position = (np.arange(size) + trim) * ((crop - 1) / max(stretched - 1, 1))
    below = np.minimum(position.astype(int), max(crop - 2, 0))
    matrix = np.zeros((size, size), dtype=np.float32)
    matrix[np.arange(size), start + below] += 1 - (position - below)
    matrix[np.arange(size), start + np.minimum(below + 1, crop - 1)] += position - below
    return matrix


@lru_cache(maxsize=16)
def box_matrix(source: int, target: int) -> Array:
    """(target, source): the mean of the pixels whose centres lie in each target pixel, at least one (Pillow's BOX)."""
    step = source / target
    centre = (np.arange(target)[:, None] + 0.5) * step
    distance = (np.arange(source) + 0.5 - centre) / max(step, 1.0)
    weights = ((distance > -0.5) & (distance <= 0.5)).astype(np.float32)
    matrix: Array = weights / weights.sum(1, keepdims=True)
    return matrix
