"""Digital: contrast, elastic distortion, pixelation and JPEG."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from scipy import ndimage

from focalcal.core.extras import required
from focalcal.lab.data.corruptions.pixels import (
    Array,
    Generators,
    Images,
    mirror,
    read_bilinear,
    reflect,
    to_levels,
    uniform,
)


def contrast(images: Images, _: Generators, factor: float) -> Images:
    """(x - mean) factor + mean, with the mean of each channel of each image."""
    mean: Images = images.mean((1, 2), keepdims=True)
    return ((images - mean) * factor + mean).astype(np.float32)


def elastic_transform(images: Images, generators: Generators, strength: tuple[float, float, float]) -> Images:
    """A random affine map, then a smooth random displacement; strength (amplitude, smoothing, affine) in sides.

    The affine map takes three corners of a central square to places up to `affine` away each way (borders mirrored);
    then each pixel is read from where `amplitude` times uniform noise on (-1, 1), Gaussian-smoothed, says (borders
    reflected). Both read bilinearly. Simard et al. (2003), "Best practices for convolutional neural networks".
    """
    height, width = images.shape[1:3]
    side = min(height, width)
    amplitude, smoothing, affine = (side * part for part in strength)
    rows, columns = _affine_sources(uniform(generators, -affine, affine, (3, 2)), height, width)
    images = read_bilinear(images, rows, columns, mirror)
    noise = uniform(generators, -1, 1, (2, height, width))
    shift = amplitude * ndimage.gaussian_filter(noise, smoothing, axes=(2, 3), mode="reflect", truncate=3.0)
    return read_bilinear(images, np.arange(height)[:, None] + shift[:, 0], np.arange(width) + shift[:, 1], reflect)


def _affine_sources(moves: Array, height: int, width: int) -> tuple[Array, Array]:
    """Rows and columns (N, H, W) from which the image is read that takes three corners c to c + moves (N, 3, 2)."""
    centre, reach = np.array([width // 2, height // 2]), min(height, width) // 3
    corners = centre + reach * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = np.concatenate([corners + moves.astype(np.float64), np.ones((len(moves), 3, 1))], 2)
    back = np.linalg.solve(moved, np.broadcast_to(corners, (len(moves), 3, 2)).astype(np.float64))
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    sources = np.stack([x, y, np.ones_like(x)], -1) @ back[:, None]
    return sources[..., 1], sources[..., 0]


def pixelate(images: Images, _: Generators, share: float) -> Images:
    """Down to floor(share side) pixels and up again, each by means over boxes, by Pillow."""
    pillow = required("PIL.Image", purpose="pixelate")
    height, width = images.shape[1:3]
    small, box = (max(int(width * share), 1), max(int(height * share), 1)), pillow.Resampling.BOX
    made = [pillow.fromarray(one).resize(small, box).resize((width, height), box) for one in to_levels(images)]
    return np.stack(made).astype(np.float32) / np.float32(255)


def jpeg_compression(images: Images, _: Generators, quality: int) -> Images:
    """Written as JPEG at `quality` and read back, by Pillow."""
    pillow = required("PIL.Image", purpose="jpeg_compression")
    read = []
    for levels in to_levels(images):
        file = BytesIO()
        pillow.fromarray(levels).save(file, "JPEG", quality=quality)
        read.append(np.asarray(pillow.open(file)))
    return np.stack(read).astype(np.float32) / np.float32(255)
