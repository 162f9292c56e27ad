"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009): colour images uint8 (N, 3, 32, 32), from the official Python archives.

A batch is a pickled dict: `data` uint8 (N, 3072), the red plane, then green, then blue; and a list of labels.
The 50,000 training images become 45,000 / 5,000 with the split of the literature (`splits.hold_out`). A batch of
CIFAR-10 whose images, labels or order are not the published ones is refused, whatever the bytes of its pickle.

CIFAR-10-C (Hendrycks and Dietterich 2019) has its test images, corrupted, and nothing to train on. A corruption's .npy
file holds (50000, 32, 32, 3): five severities of the 10,000 images in their order, so that ids are those of CIFAR-10's
test images and labels.npy repeats its labels five times.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import one_of, whole_number
from focalcal.lab.data.errors import problem
from focalcal.lab.data.examples import DataSet, Examples, numbered_ids
from focalcal.lab.data.pickled_batches import read_pickle
from focalcal.lab.data.source_files import SourceFiles

_BATCHES_10 = {"train": tuple(f"data_batch_{k}" for k in range(1, 6)), "test": ("test_batch",)}
_BATCH_SIZE = 10_000  # of CIFAR-10; CIFAR-100 has one batch per split
# SHA-256 of the 10,000 images, then of the labels as little-endian int64.
_PUBLISHED = {
    "data_batch_1": "54b2ed21fbd6a52cfc507fb5af63b8610e1938828f3017b159e69e87bb1965db",
    "data_batch_2": "a860ea80505c3e017d336ca80eca64bdc58099bf285ae8650980ed6c846f5e53",
    "data_batch_3": "701e5e97f12252a2ec703b29fe275315471b883e27926ec8e9d3b08ca81b2fab",
    "data_batch_4": "6c9358a56fb97959b9b494683c1c1ef9f0c4f291f3686302835e08a0b0ab2f47",
    "data_batch_5": "c2108fec4d9d07a51c26c680b5886f54ff810c859a3f7ba7efe3a4a82a838293",
    "test_batch": "2c33b053d1cd726af8d86e174a96dd89d7000ba1412add026d68142375b89d51",
}
_BATCHES_100 = {"train": ("train",), "test": ("test",)}
_CORRUPTIONS = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression"),
)
_SEVERITIES = 5


def load_cifar10(folder: Path, *, allow_partial: bool = False, validation: int = 5000) -> DataSet:
    """CIFAR-10 from `cifar-10-batches-py`; `validation` of the 50,000 are held out, 0 for none."""
    sources = SourceFiles("cifar10", folder, allow_partial=allow_partial)
    parts = {split: _read(sources, split, names, "labels") for split, names in _BATCHES_10.items()}
    return sources.data_set(parts, validation, official="official test")


def load_cifar100(folder: Path, *, allow_partial: bool = False, validation: int = 5000) -> DataSet:
    """CIFAR-100 with its fine labels from `cifar-100-python`; `validation` of the 50,000 are held out, 0 for none."""
    sources = SourceFiles("cifar100", folder, allow_partial=allow_partial)
    parts = {split: _read(sources, split, names, "fine_labels") for split, names in _BATCHES_100.items()}
    return sources.data_set(parts, validation, classes=_fine_classes(sources), official="official test")


def load_cifar10c(
    folder: Path, *, allow_partial: bool = False, corruption: str = "gaussian_noise", severity: int = 5
) -> DataSet:
    """One corruption at one severity, 1 .. 5."""
    one_of("corruption", corruption, _CORRUPTIONS)
    whole_number("severity", severity, least=1, most=_SEVERITIES, remedy="5 is the strongest")
    sources = SourceFiles("cifar10c", folder, allow_partial=allow_partial)
    test = _corrupted(sources, sources.path / f"{corruption}.npy", sources.path / "labels.npy", severity)
    whole = sources.complete({"test": test.labels})
    options = {"corruption": corruption, "severity": severity}
    provenance = sources.provenance(split="test only", partial=not whole, options=options)
    return DataSet("cifar10c", sources.entry.classes, test.none(), test.none(), test, provenance=provenance)


def _fine_classes(sources: SourceFiles) -> tuple[str, ...]:
    meta = sources.path / "meta"
    if not meta.exists():  # in a part of the data set
        return tuple(f"class {k}" for k in range(100))
    with sources.opened(meta, "CIFAR-100's pickled class names") as content:
        return tuple(map(str, read_pickle(content)["fine_label_names"]))


def _read(sources: SourceFiles, split: str, names: tuple[str, ...], key: str) -> Examples | None:
    """The batches that are there; which are missing shows in the counts. An id is the place in the whole split."""
    pixels, labels, places = [], [], []
    for number, path in enumerate(sources.path / name for name in names):
        if path.exists():
            images, classes = _batch(sources, path, key)
            pixels.append(images)
            labels.append(classes)
            places.append(number * _BATCH_SIZE + np.arange(len(images)))
    if not pixels:
        return None
    ids = np.char.add(f"{split}-", np.concatenate(places).astype(str))
    return Examples(np.concatenate(pixels), np.concatenate(labels), ids)


def _batch(sources: SourceFiles, path: Path, key: str) -> tuple[NDArray[Any], NDArray[Any]]:
    with sources.opened(path, "a pickled CIFAR batch") as content:
        batch = read_pickle(content)
        pixels, labels = batch["data"], np.array(batch[key], np.int64)
        if not isinstance(pixels, np.ndarray) or pixels.shape != (len(labels), 3072):
            shape = getattr(pixels, "shape", type(pixels).__name__)
            raise problem(path, f"data must be (N, 3072) for {len(labels)} labels", shape, "fetch it again")
        images = pixels.reshape(-1, 3, 32, 32)
        _check_published(path, images, labels)
        return images, labels


def _check_published(path: Path, images: NDArray[Any], labels: NDArray[Any]) -> None:
    """Refuse a batch of the full size with another content; a smaller one shows in the counts."""
    published = _PUBLISHED.get(path.name)
    if published is None or len(labels) < _BATCH_SIZE:
        return
    remedy = "it has been altered: delete its folder and run `focalcal data get cifar10`"
    if len(labels) > _BATCH_SIZE:
        raise problem(path, f"must hold {_BATCH_SIZE} images", len(labels), remedy)
    digest = hashlib.sha256(images.tobytes())
    digest.update(labels.astype("<i8").tobytes())
    if digest.hexdigest() != published:
        rule = f"must hold the published images and labels, SHA-256 {published}"
        raise problem(path, rule, digest.hexdigest(), remedy)


def _corrupted(sources: SourceFiles, images: Path, labels: Path, severity: int) -> Examples:
    with sources.found(labels, "CIFAR-10-C's labels") as file:
        truth = np.load(file, allow_pickle=False).astype(np.int64)
    with sources.found(images, "CIFAR-10-C's images") as file:
        pixels = np.load(file, mmap_mode="r", allow_pickle=False)
        if pixels.dtype != np.uint8 or pixels.shape != (len(truth), 32, 32, 3) or len(truth) % _SEVERITIES:
            rule = f"must be uint8 ({len(truth)}, 32, 32, 3), five severities of as many images"
            raise problem(images, rule, f"{pixels.dtype} {pixels.shape}", "fetch it again")
        count = len(truth) // _SEVERITIES
        rows = slice((severity - 1) * count, severity * count)
        inputs = np.ascontiguousarray(pixels[rows].transpose(0, 3, 1, 2))
        return Examples(inputs, truth[rows], numbered_ids("test", count))
