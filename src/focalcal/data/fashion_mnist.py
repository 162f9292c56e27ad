"""Fashion-MNIST (Xiao, Rasul and Vollgraf 2017): grey images uint8 (N, 1, 28, 28), from the official IDX files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from focalcal.data.errors import problem
from focalcal.data.examples import DataSet, Examples, numbered_ids
from focalcal.data.idx import read_idx
from focalcal.data.location import located
from focalcal.data.sources import Sources, complete
from focalcal.data.splits import validation_split

FASHION_CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_EXPECTED = {"train": (6000,) * 10, "test": (1000,) * 10}


def load_fashion_mnist(folder: Path, *, allow_partial: bool = False, validation: int = 5000) -> DataSet:
    """The official 60,000 / 10,000; `validation` of the training images are held out."""
    sources = Sources(folder)
    path = located("fashion_mnist", folder)
    found = {"train": _read(sources, path, "train", "train"), "test": _read(sources, path, "t10k", "test")}
    labels = {split: examples.labels for split, examples in found.items()}
    whole = complete("fashion_mnist", labels, _EXPECTED, allow_partial=allow_partial)
    train, val = validation_split(found["train"], validation, whole=whole)
    split = f"official; validation: the first {len(val)} of a shuffle of the training images, NumPy seed 1"
    provenance = sources.provenance(split=split, partial=not whole)
    return DataSet("fashion_mnist", FASHION_CLASSES, train, val, found["test"], provenance=provenance)


def _read(sources: Sources, folder: Path, prefix: str, split: str) -> Examples:
    files = [folder / f"{prefix}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1")]
    if not any(folder.glob(f"{prefix}-*-ubyte*")):  # in a part of the data set
        return Examples(np.empty((0, 1, 28, 28), np.uint8), np.empty(0, np.int64), numbered_ids(split, 0))
    images, labels = read_idx(sources, files[0], 3), read_idx(sources, files[1], 1)
    if images.shape != (len(labels), 28, 28):
        rule = f"{prefix}-images-idx3-ubyte must be ({len(labels)}, 28, 28), an image a label"
        raise problem(folder, rule, images.shape, "fetch both files again")
    return Examples(images[:, None], labels.astype(np.int64), numbered_ids(split, len(labels)))
