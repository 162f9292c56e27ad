"""Images that need little to be read: the digits, SVHN, Fashion-MNIST and Tiny ImageNet."""

from __future__ import annotations

import gzip
import io
import struct
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.lab.data.catalogue import CATALOGUE
from focalcal.lab.data.errors import problem
from focalcal.lab.data.examples import DataSet, Examples, numbered_ids
from focalcal.lab.data.image_cache import decode_images
from focalcal.lab.data.source_files import SourceFiles
from focalcal.lab.data.splits import stratified

_BYTE = 8  # IDX's type code of uint8
_MAX_BYTES = 1 << 30  # no IDX file is larger; a gzip that claims more is a bomb


def load_digits(*, seed: int = 1) -> DataSet:
    """Handwritten digits (UCI; Alpaydin and Kaynak 1998) that scikit-learn carries: 1,797 images uint8 (N, 1, 8, 8).

    The grey values 0 .. 16 are scaled to 0 .. 255; 60 / 20 / 20 per cent, every digit divided alike, by `seed`. Needs
    no file and no network, hence the default.
    """
    import sklearn
    from sklearn.datasets import load_digits as bundled

    images, labels = bundled(return_X_y=True)
    pixels = np.rint(images * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    whole = Examples(pixels, labels.astype(np.int64), numbered_ids("digit", len(pixels)))
    rest, test = stratified(whole, 0.2, seed=seed)
    train, val = stratified(rest, 0.25, seed=seed)
    source, split = f"scikit-learn {sklearn.__version__}", f"stratified 60 / 20 / 20, seed {seed}"
    provenance = {"files": [], "source": source, "split": split, "partial": False}
    return DataSet("digits", CATALOGUE["digits"].classes, train, val, test, provenance=provenance)


def load_svhn(folder: Path, *, allow_partial: bool = False, test_only: bool = False, validation: int = 0) -> DataSet:
    """Street View House Numbers (Netzer et al. 2011): uint8 (N, 3, 32, 32), the official split.

    `train_32x32.mat` and `test_32x32.mat` hold X (32, 32, 3, N) and y (N, 1), in which the digit 0 is written 10.
    `test_only` leaves the training file alone, for use as shifted data.
    """
    sources = SourceFiles("svhn", folder, allow_partial=allow_partial)
    splits = ["test"] if test_only else ["train", "test"]
    return sources.data_set({split: _mat(sources, split) for split in splits}, validation, test_only=test_only)


def _mat(sources: SourceFiles, split: str) -> Examples | None:
    from scipy.io import loadmat

    path = sources.path / f"{split}_32x32.mat"
    if not path.exists():  # in a part of the data set
        return None
    with sources.found(path, "SVHN's .mat file with X and y") as file:
        arrays = loadmat(file, variable_names=("X", "y"))
        pixels, digits = arrays["X"], arrays["y"].ravel().astype(np.int64)
        if pixels.dtype != np.uint8 or pixels.shape != (32, 32, 3, len(digits)):
            rule = f"X must be uint8 (32, 32, 3, {len(digits)})"
            raise problem(path, rule, f"{pixels.dtype} {pixels.shape}", "fetch it again")
        if len(digits) and not (digits.min() >= 1 and digits.max() <= 10):
            wrong = int(digits[(digits < 1) | (digits > 10)][0])
            raise problem(path, "y must be from 1 to 10", wrong, "fetch it again")
        images = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
        return Examples(images, digits % 10, numbered_ids(split, len(digits)))


def load_fashion_mnist(folder: Path, *, allow_partial: bool = False, validation: int = 5000) -> DataSet:
    """Fashion-MNIST (Xiao, Rasul and Vollgraf 2017): grey images uint8 (N, 1, 28, 28), from IDX files, gzipped or not.

    The official 60,000 / 10,000; `validation` of the training images are held out.
    """
    sources = SourceFiles("fashion_mnist", folder, allow_partial=allow_partial)
    parts = {"train": _idx_pair(sources, "train", "train"), "test": _idx_pair(sources, "t10k", "test")}
    return sources.data_set(parts, validation)


def _idx_pair(sources: SourceFiles, prefix: str, split: str) -> Examples | None:
    folder = sources.path
    files = [folder / f"{prefix}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1")]
    if not any(folder.glob(f"{prefix}-*-ubyte*")):  # in a part of the data set
        return None
    images, labels = _idx(sources, files[0], 3), _idx(sources, files[1], 1)
    if images.shape != (len(labels), 28, 28):
        rule = f"{prefix}-images-idx3-ubyte must be ({len(labels)}, 28, 28), one image per label"
        raise problem(folder, rule, images.shape, "fetch both files again")
    return Examples(images[:, None], labels.astype(np.int64), numbered_ids(split, len(labels)))


def _idx(sources: SourceFiles, path: Path, dimensions: int) -> NDArray[Any]:
    """The uint8 array in `path`, or in `path` + ".gz" if only that is there: bytes behind a big-endian header."""
    path = path if path.exists() else path.with_name(f"{path.name}.gz")
    with sources.opened(path, "an IDX file") as content:
        if content[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as plain:
                content = plain.read(_MAX_BYTES)
                if plain.read(1):
                    raise ValueError(f"it unpacks to more than {_MAX_BYTES} bytes")
        if struct.unpack_from(">HBB", content) != (0, _BYTE, dimensions):
            rule = f"must be an IDX file of bytes in {dimensions} dimensions"
            raise problem(path, rule, f"a header {content[:4].hex()}", "fetch it again")
        shape, start = struct.unpack_from(f">{dimensions}I", content, 4), 4 + 4 * dimensions
        if len(content) - start != prod(shape):
            raise problem(path, f"must hold {prod(shape)} bytes for {shape}", len(content) - start, "fetch it again")
        return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def load_tiny_imagenet(folder: Path, *, allow_partial: bool = False, validation: int = 5000) -> DataSet:
    """Tiny ImageNet (Stanford CS231n): colour images uint8 (N, 3, 64, 64), 200 classes, from `tiny-imagenet-200`.

    100,000 - `validation` / `validation` / 10,000. The official test images have no public labels. As everywhere in the
    literature the 10,000 official validation images are `test`; our own validation is held out of the 100,000 training
    images, so nothing is tuned on what is reported. The first call decodes the images into the folder.
    """
    sources = SourceFiles("tiny_imagenet", folder, allow_partial=allow_partial)
    with sources.opened(sources.path / "wnids.txt", "Tiny ImageNet's list of classes") as content:
        synsets = content.decode("ascii").split()
    listed = {
        "train": [
            (image, label)
            for label, synset in enumerate(synsets)
            for image in sorted((sources.path / "train" / synset / "images").glob("*.JPEG"))
        ],
        "test": _annotated(sources, synsets),
    }
    labels = {split: np.array([label for _, label in images], np.int64) for split, images in listed.items()}
    names = _class_names(sources, synsets)
    sources.complete(labels, len(names))  # before minutes of decoding
    parts: dict[str, Examples | None] = {}
    for split, images in listed.items():
        files = [file for file, _ in images]
        inputs = decode_images(files, size=64, mode="RGB", cache=sources.path / "decoded")
        parts[split] = Examples(inputs, labels[split], np.array([file.name for file in files], np.str_))
    return sources.data_set(parts, validation, classes=names, official="test: the official validation images")


def _annotated(sources: SourceFiles, synsets: list[str]) -> list[tuple[Path, int]]:
    """The official validation images that are there; how many are missing shows in the counts."""
    notes = sources.path / "val" / "val_annotations.txt"
    if not notes.exists():  # in a part of the data set
        return []
    images, label = [], {synset: k for k, synset in enumerate(synsets)}
    with sources.opened(notes, "Tiny ImageNet's validation labels") as content:
        for line in content.decode("ascii").splitlines():
            name, synset = line.split("\t")[:2]
            if synset not in label or Path(name).name != name:
                raise problem(notes, "must name images and classes of wnids.txt", repr(line[:60]), "fetch it again")
            images.append((notes.parent / "images" / name, label[synset]))
    return [(image, number) for image, number in images if image.exists()]


def _class_names(sources: SourceFiles, synsets: list[str]) -> tuple[str, ...]:
    path = sources.path / "words.txt"
    with sources.opened(path, "Tiny ImageNet's class names") as content:
        words = dict(line.split("\t", 1) for line in content.decode("utf-8").splitlines() if "\t" in line)
    if nameless := [synset for synset in synsets if synset not in words]:
        raise problem(path, "must name every class of wnids.txt", f"no {nameless[0]}", "fetch it again")
    return tuple(words[synset] for synset in synsets)
