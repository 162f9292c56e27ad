"""Data sets: examples in disjoint splits, from their official files or drawn from a known posterior."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

from focalcal.core.plugins import resolve
from focalcal.lab.data.catalogue import CATALOGUE
from focalcal.lab.data.chestxray14 import load_chestxray14
from focalcal.lab.data.cifar import load_cifar10, load_cifar10c, load_cifar100
from focalcal.lab.data.errors import DataSetError
from focalcal.lab.data.examples import DataSet, Examples, fingerprint
from focalcal.lab.data.fetch import fetch_data_set
from focalcal.lab.data.glove import word_vectors
from focalcal.lab.data.image_sets import load_digits, load_fashion_mnist, load_svhn, load_tiny_imagenet
from focalcal.lab.data.known_posteriors import load_discrete, load_gaussian_mixture, load_teacher, relabelled
from focalcal.lab.data.own_files import load_images, load_npz, load_table, load_texts
from focalcal.lab.data.source_files import VARIABLE, data_folder
from focalcal.lab.data.text_sets import load_ag_news, load_finsen, load_newsgroups, load_newsgroups_19997

__all__ = [
    "CATALOGUE",
    "DATA_SETS",
    "LOADERS",
    "OWN_DATA",
    "DataSet",
    "DataSetError",
    "Examples",
    "data_folder",
    "data_loader",
    "data_options",
    "fetch_data_set",
    "fingerprint",
    "load_data",
    "relabelled",
    "word_vectors",
]

DATA_SETS: dict[str, Callable[..., DataSet]] = {
    "digits": load_digits,
    "cifar10": load_cifar10,
    "cifar100": load_cifar100,
    "cifar10c": load_cifar10c,
    "svhn": load_svhn,
    "fashion_mnist": load_fashion_mnist,
    "tiny_imagenet": load_tiny_imagenet,
    "newsgroups": load_newsgroups,
    "newsgroups_19997": load_newsgroups_19997,
    "ag_news": load_ag_news,
    "finsen": load_finsen,
    "chestxray14": load_chestxray14,
    "gaussian_mixture": load_gaussian_mixture,
    "discrete": load_discrete,
    "teacher": load_teacher,
}
"""The loader of every data set by its name."""

OWN_DATA: dict[str, Callable[..., DataSet]] = {
    "npz": load_npz,
    **dict.fromkeys(("csv", "parquet", "tabular"), load_table),
    "texts": load_texts,
    "images": load_images,
}
"""The loaders of files of one's own: what is in them is part of a run's key, as it is of a loader of one's own."""

LOADERS = DATA_SETS | OWN_DATA
"""The loaders of DATA_SETS and of OWN_DATA."""


def load_data(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, allow_partial: bool = False, **options: Any
) -> DataSet:
    """The data set of a name; its content is checked.

    Args:
        name: as `data_loader` takes it.
        data_dir: the folder of the data sets; None: where FOCALCAL_DATA points.
        allow_partial: accept a part of it, such as a test split alone; the provenance then says `partial` and how
            many examples there are.
        options: the loader's own, such as `validation=0`; an unknown one lists them.

    Returns:
        The examples of its splits.

    >>> load_data("gaussian_mixture", sizes=(100, 20, 50)).test.inputs.shape
    (50, 10)
    """
    loader, known = data_loader(name), data_options(name)
    for option in options:
        if option not in known:
            raise ValueError(f"options of {name} must be among {', '.join(known)}, got {option!r}")
    taken = signature(loader).parameters
    if "folder" in taken:
        optional = name in OWN_DATA and data_dir is None and VARIABLE not in os.environ
        options["folder"] = Path() if optional else data_folder(data_dir)
    if "allow_partial" in taken:
        options["allow_partial"] = allow_partial
    data = loader(**options)
    if not isinstance(data, DataSet):
        raise TypeError(
            f"data set {name!r} must give a focalcal.lab.data.DataSet, got {type(data).__name__}; return one"
        )
    return data


def data_loader(name: str) -> Callable[..., DataSet]:
    """What loads the data set of a name.

    Args:
        name: of DATA_SETS or OWN_DATA, or `package.module:function`. A function that is not ours is given `folder`,
            which holds the data sets, and `allow_partial` if it takes them.

    Returns:
        The loader, which returns a `DataSet`.

    >>> data_loader("digits").__name__
    'load_digits'
    """
    return resolve("data_sets", name, LOADERS)


def data_options(name: str) -> dict[str, Any]:
    """The options that `load_data` takes for a data set.

    Args:
        name: as `data_loader` takes it.

    Returns:
        The default of each option by its name.

    >>> data_options("digits")
    {'seed': 1}
    """
    parameters = signature(data_loader(name)).parameters.values()
    return {option.name: option.default for option in parameters if option.name not in ("folder", "allow_partial")}
