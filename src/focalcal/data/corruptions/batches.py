"""The types that corruptions share, and how batches are cut, turned into numbers in 0 .. 1 and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.float32]  # (N, H, W, 3), values in 0 .. 1
Levels = NDArray[np.uint8]  # (N, H, W, 3)
Generators = Sequence[np.random.Generator]  # one an image


def to_levels(images: Images) -> Levels:
    """floor(255 x) within 0 .. 255, as the published files were made.

    The thousandth of a level keeps float32's rounding from taking a whole level off what should be a whole number.
    """
    whole: Images = np.clip(np.floor(images * np.float32(255) + np.float32(1e-3)), 0, 255)
    return whole.astype(np.uint8)


def rounded(images: Images) -> Images:
    """The nearest whole levels, still from 0 to 1: what is left after an 8-bit file."""
    nearest: Images = np.floor(images * np.float32(255) + np.float32(0.5)) / np.float32(255)
    return nearest


def uniform(generators: Generators, low: float, high: float, shape: tuple[int, ...] = ()) -> Images:
    """(N, *shape) numbers uniform on [low, high), each image's from its own generator."""
    return np.stack([np.asarray(generator.uniform(low, high, shape)) for generator in generators]).astype(np.float32)
