"""Fashion-MNIST (Xiao, Rasul and Vollgraf 2017): grey images uint8 (N, 1, 28, 28), from the official IDX files.

IDX is the format of MNIST and its successors: arrays of bytes with a big-endian header, gzipped or not.
"""

from __future__ import annotations

import gzip
import io
import struct
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.lab.data.errors import problem
from focalcal.lab.data.examples import DataSet, Examples, numbered_ids
from focalcal.lab.data.source_files import SourceFiles

FASHION_CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_EXPECTED = {"train": (6000,) * 10, "test": (1000,) * 10}
_BYTE = 8  # the type code of uint8
_MAX_BYTES = 1 << 30  # no such file is larger; a gzip that claims more is a bomb


def load_fashion_mnist(folder: Path, *, allow_partial: bool = False, validation: int = 5000) -> DataSet:
    """The official 60,000 / 10,000; `validation` of the training images are held out."""
    sources = SourceFiles("fashion_mnist", folder, allow_partial=allow_partial)
    parts = {"train": _read(sources, "train", "train"), "test": _read(sources, "t10k", "test")}
    return sources.data_set(FASHION_CLASSES, parts, _EXPECTED, validation)


def _read(sources: SourceFiles, prefix: str, split: str) -> Examples | None:
    folder = sources.path
    files = [folder / f"{prefix}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1")]
    if not any(folder.glob(f"{prefix}-*-ubyte*")):  # in a part of the data set
        return None
    images, labels = _read_idx(sources, files[0], 3), _read_idx(sources, files[1], 1)
    if images.shape != (len(labels), 28, 28):
        rule = f"{prefix}-images-idx3-ubyte must be ({len(labels)}, 28, 28), one image per label"
        raise problem(folder, rule, images.shape, "fetch both files again")
    return Examples(images[:, None], labels.astype(np.int64), numbered_ids(split, len(labels)))


def _read_idx(sources: SourceFiles, path: Path, dimensions: int) -> NDArray[Any]:
    """The uint8 array of so many dimensions in `path`, or in `path` + ".gz" if only that is there."""
    if not path.exists():
        path = path.with_name(f"{path.name}.gz")
    with sources.opened(path, "an IDX file") as content:
        if content[:2] == b"\x1f\x8b":
            content = _unzip(content)
        return _array(path, content, dimensions)


def _unzip(content: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as plain:
        unpacked = plain.read(_MAX_BYTES)
        if plain.read(1):
            raise ValueError(f"it unpacks to more than {_MAX_BYTES} bytes")
        return unpacked


def _array(path: Path, content: bytes, dimensions: int) -> NDArray[Any]:
    zeros, kind, dims = struct.unpack_from(">HBB", content)
    if (zeros, kind, dims) != (0, _BYTE, dimensions):
        rule = f"must be an IDX file of bytes in {dimensions} dimensions"
        raise problem(path, rule, f"a header {content[:4].hex()}", "fetch it again")
    shape = struct.unpack_from(f">{dims}I", content, 4)
    start = 4 + 4 * dims
    if len(content) - start != prod(shape):
        raise problem(path, f"must hold {prod(shape)} bytes for {shape}", len(content) - start, "fetch it again")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
