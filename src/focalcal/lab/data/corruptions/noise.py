"""Noise: on each value of each pixel, by itself."""

from __future__ import annotations

import numpy as np

from focalcal.lab.data.corruptions.pixels import Generators, Images


def gaussian_noise(images: Images, generators: Generators, deviation: float) -> Images:
    """x + N(0, deviation^2)."""
    noise = [generator.standard_normal(images.shape[1:], dtype=np.float32) for generator in generators]
    return (images + deviation * np.stack(noise)).astype(np.float32)


def shot_noise(images: Images, generators: Generators, photons: float) -> Images:
    """Poisson(photons x) / photons: a white value counts `photons` photons."""
    pairs = zip(images, generators, strict=True)
    counts = [generator.poisson(np.float64(photons) * image) for image, generator in pairs]
    return np.stack(counts).astype(np.float32) / np.float32(photons)


def impulse_noise(images: Images, generators: Generators, share: float) -> Images:
    """With probability `share` a value becomes 0 or 1, each as often."""
    drawn = np.stack([generator.random(images.shape[1:], dtype=np.float32) for generator in generators])
    # One number decides both: the lower half of [0, share) is pepper, the upper half salt.
    salted = np.where(drawn < share, np.float32(1), images)
    return np.where(drawn < share / 2, np.float32(0), salted).astype(np.float32)
