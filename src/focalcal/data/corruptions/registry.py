"""The fifteen corruptions of CIFAR-10-C and their strengths at severities 1 to 5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from focalcal.data.corruptions.batches import Images
from focalcal.data.corruptions.blur import defocus_blur, glass_blur, motion_blur, zoom_blur
from focalcal.data.corruptions.digital import contrast, elastic_transform, jpeg_compression, pixelate
from focalcal.data.corruptions.noise import gaussian_noise, impulse_noise, shot_noise
from focalcal.data.corruptions.weather import brightness, fog, frost, snow


@dataclass(frozen=True)
class Corruption:
    """`function(images, generators, strength)` on images (N, H, W, 3) in 0 .. 1, and its strength at each severity."""

    function: Callable[[Images, Any, Any], Images]
    strengths: tuple[Any, Any, Any, Any, Any]


# In the order of the published set. The strengths are those for 32 x 32 images, milder than ImageNet-C's.
CORRUPTIONS: dict[str, Corruption] = {
    "gaussian_noise": Corruption(gaussian_noise, (0.04, 0.06, 0.08, 0.09, 0.10)),
    "shot_noise": Corruption(shot_noise, (500, 250, 100, 75, 50)),
    "impulse_noise": Corruption(impulse_noise, (0.01, 0.02, 0.03, 0.05, 0.07)),
    "defocus_blur": Corruption(defocus_blur, ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1))),
    "glass_blur": Corruption(glass_blur, ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2))),
    "motion_blur": Corruption(motion_blur, ((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5))),
    "zoom_blur": Corruption(zoom_blur, (1.05, 1.10, 1.15, 1.20, 1.25)),
    "snow": Corruption(
        snow,
        (
            (0.1, 0.2, 1.0, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1.0, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
    ),
    "frost": Corruption(frost, ((1.0, 0.2), (1.0, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))),
    "fog": Corruption(fog, ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))),
    "brightness": Corruption(brightness, (0.05, 0.1, 0.15, 0.2, 0.3)),
    "contrast": Corruption(contrast, (0.75, 0.5, 0.4, 0.3, 0.15)),
    "elastic_transform": Corruption(
        elastic_transform,
        ((0.0, 0.0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    ),
    "pixelate": Corruption(pixelate, (0.95, 0.9, 0.85, 0.75, 0.65)),
    "jpeg_compression": Corruption(jpeg_compression, (80, 65, 58, 50, 40)),
}
