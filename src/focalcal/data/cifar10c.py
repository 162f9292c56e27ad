"""CIFAR-10-C (Hendrycks and Dietterich 2019): CIFAR-10's test images, corrupted; uint8 (10000, 3, 32, 32) as `test`.

A corruption's .npy file holds (50000, 32, 32, 3): five severities of the 10,000 images in their order, so that ids
are those of CIFAR-10's test images and labels.npy repeats its labels five times. There is nothing to train on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from focalcal.core.checks import one_of, whole_number
from focalcal.data.cifar import CIFAR10_CLASSES
from focalcal.data.errors import problem, reading
from focalcal.data.examples import DataSet, Examples, numbered_ids
from focalcal.data.source_files import SourceFiles

CORRUPTIONS = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression"),
)
_SEVERITIES = 5


def load_cifar10c(
    folder: Path, *, allow_partial: bool = False, corruption: str = "gaussian_noise", severity: int = 5
) -> DataSet:
    """One corruption at one severity, 1 .. 5."""
    one_of("corruption", corruption, CORRUPTIONS)
    whole_number("severity", severity, least=1, most=_SEVERITIES, remedy="5 is the strongest")
    sources = SourceFiles("cifar10c", folder, allow_partial=allow_partial)
    test = _read(sources, sources.path / f"{corruption}.npy", sources.path / "labels.npy", severity)
    whole = sources.complete({"test": test.labels}, {"test": (1000,) * 10})
    provenance = sources.provenance(
        split="test only", partial=not whole, options={"corruption": corruption, "severity": severity}
    )
    return DataSet("cifar10c", CIFAR10_CLASSES, test.none(), test.none(), test, provenance=provenance)


def _read(sources: SourceFiles, images: Path, labels: Path, severity: int) -> Examples:
    with reading(labels, "CIFAR-10-C's labels"):
        truth = np.load(sources.remember(labels, "CIFAR-10-C's labels"), allow_pickle=False).astype(np.int64)
    with reading(images, "CIFAR-10-C's images"):
        pixels = np.load(sources.remember(images, "CIFAR-10-C's images"), mmap_mode="r", allow_pickle=False)
        if pixels.dtype != np.uint8 or pixels.shape != (len(truth), 32, 32, 3) or len(truth) % _SEVERITIES:
            rule = f"must be uint8 ({len(truth)}, 32, 32, 3), five severities of as many images"
            raise problem(images, rule, f"{pixels.dtype} {pixels.shape}", "fetch it again")
        count = len(truth) // _SEVERITIES
        rows = slice((severity - 1) * count, severity * count)
        inputs = np.ascontiguousarray(pixels[rows].transpose(0, 3, 1, 2))
        return Examples(inputs, truth[rows], numbered_ids("test", count))
