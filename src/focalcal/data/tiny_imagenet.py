"""Tiny ImageNet (Stanford CS231n): colour images uint8 (N, 3, 64, 64), 200 classes, from `tiny-imagenet-200`.

The official test images have no public labels. As everywhere in the literature the 10,000 official validation images
are `test`; our own validation is held out of the 100,000 training images, so nothing is tuned on what is reported.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from focalcal.data.decoded import decoded
from focalcal.data.errors import problem, reading
from focalcal.data.examples import DataSet, Examples, numbered_ids
from focalcal.data.location import located
from focalcal.data.sources import Sources, complete
from focalcal.data.splits import validation_split

_EXPECTED = {"train": (500,) * 200, "test": (50,) * 200}


def load_tiny_imagenet(folder: Path, *, allow_partial: bool = False, validation: int = 5000) -> DataSet:
    """100,000 - `validation` / `validation` / 10,000. The first call decodes the images into the folder."""
    sources = Sources(folder)
    path = located("tiny_imagenet", folder)
    synsets = sources.read(path / "wnids.txt", "Tiny ImageNet's list of classes").decode("ascii").split()
    listed = {"train": _training(path, synsets), "test": _official_validation(sources, path, synsets)}
    labels = {split: np.array([label for _, label in found], np.int64) for split, found in listed.items()}
    whole = complete("tiny_imagenet", labels, _EXPECTED, allow_partial=allow_partial)
    made, pixels = {}, {}
    for split, found in listed.items():
        images, pixels[split] = decoded([one for one, _ in found], size=64, mode="RGB", cache=path / "decoded")
        ids = np.array([one.name for one, _ in found]) if found else numbered_ids(split, 0)
        made[split] = Examples(images, labels[split], ids)
    train, val = validation_split(made["train"], validation, whole=whole)
    note = f"test: the official validation images; validation: the first {len(val)} of a shuffle, NumPy seed 1"
    provenance = sources.provenance(split=note, partial=not whole, images_sha256=pixels)
    return DataSet("tiny_imagenet", _names(sources, path, synsets), train, val, made["test"], provenance=provenance)


def _training(path: Path, synsets: list[str]) -> list[tuple[Path, int]]:
    return [
        (image, label)
        for label, synset in enumerate(synsets)
        for image in sorted((path / "train" / synset / "images").glob("*.JPEG"))
    ]


def _official_validation(sources: Sources, path: Path, synsets: list[str]) -> list[tuple[Path, int]]:
    """The annotated images that are there; how many are missing shows in the counts."""
    notes = path / "val" / "val_annotations.txt"
    if not notes.exists():  # in a part of the data set
        return []
    content = sources.read(notes, "Tiny ImageNet's validation labels")
    found, label = [], {synset: k for k, synset in enumerate(synsets)}
    with reading(notes, "Tiny ImageNet's validation labels"):
        for line in content.decode("ascii").splitlines():
            name, synset = line.split("\t")[:2]
            if synset not in label or Path(name).name != name:
                raise problem(notes, "must name images and classes of wnids.txt", repr(line[:60]), "fetch it again")
            found.append((path / "val" / "images" / name, label[synset]))
    return [one for one in found if one[0].exists()]


def _names(sources: Sources, path: Path, synsets: list[str]) -> tuple[str, ...]:
    lines = sources.read(path / "words.txt", "Tiny ImageNet's class names").decode("utf-8").splitlines()
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    nameless = [synset for synset in synsets if synset not in words]
    if nameless:
        raise problem(path / "words.txt", "must name every class of wnids.txt", f"no {nameless[0]}", "fetch it again")
    return tuple(words[synset] for synset in synsets)
