"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009): colour images uint8 (N, 3, 32, 32), from the official Python archives.

A batch is a pickled dict: `data` uint8 (N, 3072), the red plane, then green, then blue; and a list of labels.
The 50,000 training images become 45,000 / 5,000 with the split of the literature (`splits.hold_out`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.data.errors import problem, reading
from focalcal.data.examples import DataSet, Examples, numbered_ids
from focalcal.data.location import located
from focalcal.data.pickled_batches import unpickled
from focalcal.data.sources import Sources, complete
from focalcal.data.splits import hold_out

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_BATCH = "a pickled CIFAR batch"
_BATCHES_10 = {"train": tuple(f"data_batch_{k}" for k in range(1, 6)), "test": ("test_batch",)}
_BATCHES_100 = {"train": ("train",), "test": ("test",)}


def load_cifar10(folder: Path, *, allow_partial: bool = False, validation: int = 5000) -> DataSet:
    """CIFAR-10 from `cifar-10-batches-py`; `validation` of the 50,000 are held out, 0 for none."""
    sources = Sources(folder)
    path = located("cifar10", folder)
    found = {split: _read(sources, path, split, names, "labels") for split, names in _BATCHES_10.items()}
    expected = {"train": (5000,) * 10, "test": (1000,) * 10}
    return _data_set("cifar10", CIFAR10_CLASSES, found, expected, sources, allow_partial, validation)


def load_cifar100(folder: Path, *, allow_partial: bool = False, validation: int = 5000) -> DataSet:
    """CIFAR-100 with its fine labels from `cifar-100-python`; `validation` of the 50,000 are held out, 0 for none."""
    sources = Sources(folder)
    path = located("cifar100", folder)
    found = {split: _read(sources, path, split, names, "fine_labels") for split, names in _BATCHES_100.items()}
    expected = {"train": (500,) * 100, "test": (100,) * 100}
    return _data_set("cifar100", _fine_classes(sources, path), found, expected, sources, allow_partial, validation)


def _fine_classes(sources: Sources, path: Path) -> tuple[str, ...]:
    meta = path / "meta"
    if not meta.exists():  # in a part of the data set
        return tuple(f"class {k}" for k in range(100))
    with reading(meta, "CIFAR-100's pickled class names"):
        return tuple(map(str, unpickled(sources.read(meta, "CIFAR-100's class names"))["fine_label_names"]))


def _read(sources: Sources, folder: Path, split: str, names: tuple[str, ...], key: str) -> Examples:
    """The batches that are there; which are missing shows in the counts."""
    there = [folder / name for name in names if (folder / name).exists()]
    pairs = [_batch(path, sources.read(path, _BATCH), key) for path in there]
    images = np.concatenate([pixels for pixels, _ in pairs]) if pairs else np.empty((0, 3, 32, 32), np.uint8)
    labels = np.concatenate([labels for _, labels in pairs]) if pairs else np.empty(0, np.int64)
    return Examples(images, labels, numbered_ids(split, len(images)))


def _batch(path: Path, content: bytes, key: str) -> tuple[NDArray[Any], NDArray[Any]]:
    with reading(path, _BATCH):
        batch = unpickled(content)
        pixels, labels = batch["data"], batch[key]
        if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape != (len(labels), 3072):
            shape = getattr(pixels, "shape", type(pixels).__name__)
            raise problem(path, f"data must be (N, 3072) for {len(labels)} labels", shape, "fetch it again")
        return pixels.reshape(-1, 3, 32, 32), np.array(labels, np.int64)


def _data_set(
    name: str,
    classes: tuple[str, ...],
    found: dict[str, Examples],
    expected: Mapping[str, tuple[int, ...]],
    sources: Sources,
    allow_partial: bool,
    validation: int,
) -> DataSet:
    labels = {split: examples.labels for split, examples in found.items()}
    whole = complete(name, labels, expected, allow_partial=allow_partial)
    held_out = min(validation, len(found["train"]) // 10) if not whole else validation  # a tenth of a part
    train, val = hold_out(found["train"], held_out)
    split = f"official test; validation: the first {held_out} of a shuffle of the training images, NumPy seed 1"
    return DataSet(
        name, classes, train, val, found["test"], provenance=sources.provenance(split=split, partial=not whole)
    )
