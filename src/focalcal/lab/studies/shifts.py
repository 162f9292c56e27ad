"""The shifted sets that a trained network is evaluated on: SVHN, and CIFAR-10 corrupted.

svhn                SVHN's test images, which belong to no class of the training set
cifar10c/fog/5      one corruption at one severity: from the published file where it is in the data folder, else
                    made again from the recipe (`focalcal.lab.data.corruptions`); the provenance says which
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from focalcal.core.checks import one_of
from focalcal.lab.data import CATALOGUE, DataSet, DataSetError, Examples, data_folder, load_data
from focalcal.lab.data.corruptions import CORRUPTIONS, corrupt
from focalcal.lab.store import Evaluations, Protocol
from focalcal.lab.studies.subsets import subset

SHIFTS = ("svhn", "cifar10c")
SEED = 0  # of the corruptions that are made again
Folder = str | os.PathLike[str] | None
Loaded = tuple[Examples, dict[str, Any]]


@dataclass(frozen=True)
class Shift:
    """A shifted set by the name of its split. `load` gives the examples and their provenance.

    `same_classes` says whether its labels are classes of the training set, so that errors can be counted.
    """

    split: str
    same_classes: bool
    load: Callable[[], Loaded]


def load_shifts(data: DataSet, evaluations: Evaluations, protocol: Protocol, folder: Folder = None) -> list[Shift]:
    """The shifts that are asked for of a run on `data`; refuses those that could not be loaded later.

    Nothing is kept in memory until `load`: fifteen corruptions of CIFAR-10 would take half a gigabyte per severity.
    """
    asked: list[Shift] = []
    for name in evaluations.shifts:
        one_of("shifts", name, SHIFTS)
        if data.test.inputs.shape[1:] != (3, 32, 32) or data.multilabel:
            raise ValueError(
                f"shifts must fit the test images: {name!r} holds images (3, 32, 32) with one label each, "
                f"{data.name} has inputs {data.test.inputs.shape[1:]}; leave it out"
            )
        asked += _svhn(protocol, folder) if name == "svhn" else _cifar10c(data, evaluations, protocol, folder)
    return asked


def _svhn(protocol: Protocol, folder: Folder) -> list[Shift]:
    load = partial(_load_svhn, protocol, folder)
    load()  # a file that is missing or damaged must be known before hours of training, not after
    return [Shift("svhn", same_classes=False, load=load)]


def _load_svhn(protocol: Protocol, folder: Folder) -> Loaded:
    loaded = load_data("svhn", folder, allow_partial=protocol.allow_partial, test_only=True)
    examples = loaded.test if protocol.test_examples is None else subset(loaded.test, protocol.test_examples)
    if not len(examples):
        raise DataSetError("svhn: test must hold images to be a shift, got none; run `focalcal data get svhn`")
    return examples, {**loaded.provenance, "labels": "digits, which are no classes of the training set"}


def _cifar10c(data: DataSet, evaluations: Evaluations, protocol: Protocol, folder: Folder) -> list[Shift]:
    if data.name != "cifar10":
        raise ValueError(f"shifts: 'cifar10c' is made of CIFAR-10's test images, got the data set {data.name!r}")
    published = _published(folder)
    return [
        Shift(
            f"cifar10c/{corruption}/{severity}",
            same_classes=True,
            load=partial(_load_published, data.test, protocol, folder, corruption, severity)
            if corruption in published
            else partial(_regenerate, data.test, corruption, severity),
        )
        for corruption in CORRUPTIONS
        for severity in evaluations.severities
    ]


def _published(folder: Folder) -> set[str]:
    """The corruptions whose published file is there."""
    name = CATALOGUE["cifar10c"].folder
    assert name is not None
    try:
        place = data_folder(folder) / name
    except ValueError:  # no data folder at all
        return set()
    if not (place / "labels.npy").is_file():
        return set()
    return {corruption for corruption in CORRUPTIONS if (place / f"{corruption}.npy").is_file()}


def _load_published(test: Examples, protocol: Protocol, folder: Folder, corruption: str, severity: int) -> Loaded:
    loaded = load_data(
        "cifar10c", folder, allow_partial=protocol.allow_partial, corruption=corruption, severity=severity
    )
    examples = loaded.test.take(np.isin(loaded.test.ids, test.ids))
    if not np.array_equal(examples.ids, test.ids) or not np.array_equal(examples.labels, test.labels):
        raise DataSetError(
            f"cifar10c: {corruption}.npy must hold the corrupted test images of CIFAR-10 in their order, got other "
            "labels or fewer images; fetch both data sets again"
        )
    return examples, {**loaded.provenance, "images": "published"}


def _regenerate(test: Examples, corruption: str, severity: int) -> Loaded:
    """The test images with the corruption; image n of the official file has its own random numbers, in any subset."""
    numbers = [int(str(name).rpartition("-")[2]) for name in test.ids]
    images = corrupt(test.inputs.transpose(0, 2, 3, 1), corruption, severity, seed=SEED, ids=numbers)
    examples = Examples(np.ascontiguousarray(images.transpose(0, 3, 1, 2)), test.labels, test.ids)
    provenance = {
        "images": "regenerated from the recipe, not the published files",
        "name": "cifar10c",
        "options": {"corruption": corruption, "severity": severity, "seed": SEED},
    }
    return examples, provenance
