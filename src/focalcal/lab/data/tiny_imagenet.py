"""Tiny ImageNet (Stanford CS231n): colour images uint8 (N, 3, 64, 64), 200 classes, from `tiny-imagenet-200`.

The official test images have no public labels. As everywhere in the literature the 10,000 official validation images
are `test`; our own validation is held out of the 100,000 training images, so nothing is tuned on what is reported.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from focalcal.lab.data.errors import problem
from focalcal.lab.data.examples import DataSet, Examples
from focalcal.lab.data.image_cache import decode_images
from focalcal.lab.data.source_files import SourceFiles

_EXPECTED = {"train": (500,) * 200, "test": (50,) * 200}


def load_tiny_imagenet(folder: Path, *, allow_partial: bool = False, validation: int = 5000) -> DataSet:
    """100,000 - `validation` / `validation` / 10,000. The first call decodes the images into the folder."""
    sources = SourceFiles("tiny_imagenet", folder, allow_partial=allow_partial)
    path = sources.path
    with sources.opened(path / "wnids.txt", "Tiny ImageNet's list of classes") as content:
        synsets = content.decode("ascii").split()
    listed = {"train": _training(path, synsets), "test": _official_validation(sources, synsets)}
    labels = {split: np.array([label for _, label in images], np.int64) for split, images in listed.items()}
    sources.complete(labels, _EXPECTED)  # before minutes of decoding
    parts, pixels = {}, {}
    for split, images in listed.items():
        files = [file for file, _ in images]
        inputs, pixels[split] = decode_images(files, size=64, mode="RGB", cache=path / "decoded")
        ids = np.array([file.name for file in files], np.str_)
        parts[split] = Examples(inputs, labels[split], ids)
    names, official = _names(sources, synsets), "test: the official validation images"
    return sources.data_set(names, parts, _EXPECTED, validation, official=official, images_sha256=pixels)


def _training(path: Path, synsets: list[str]) -> list[tuple[Path, int]]:
    return [
        (image, label)
        for label, synset in enumerate(synsets)
        for image in sorted((path / "train" / synset / "images").glob("*.JPEG"))
    ]


def _official_validation(sources: SourceFiles, synsets: list[str]) -> list[tuple[Path, int]]:
    """The annotated images that are there; how many are missing shows in the counts."""
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


def _names(sources: SourceFiles, synsets: list[str]) -> tuple[str, ...]:
    path = sources.path / "words.txt"
    with sources.opened(path, "Tiny ImageNet's class names") as content:
        words = dict(line.split("\t", 1) for line in content.decode("utf-8").splitlines() if "\t" in line)
    nameless = [synset for synset in synsets if synset not in words]
    if nameless:
        raise problem(path, "must name every class of wnids.txt", f"no {nameless[0]}", "fetch it again")
    return tuple(words[synset] for synset in synsets)
