"""Where each data set comes from, what it must hold, and what one may do with it: `catalogue.toml`, read."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from focalcal.core.checks import unknown_name


@dataclass(frozen=True)
class Remote:
    """A file to download: from `url` to `path` in the data folder, then unpacked into the folder `unpack_into`.

    `checksum` is `md5:...` or `sha256:...`. A file with `unpack_into` None is read as it is; "." is the data folder.
    """

    url: str
    path: str
    size: int | None = None
    checksum: str | None = None
    unpack_into: str | None = None


@dataclass(frozen=True)
class CatalogueEntry:
    """A data set: what it is, the folder its loader reads (None: no file is needed), its files and its licence.

    `classes` are none where a file of the data set names them. `examples` are those of the whole data set: by split one
    number that every class has, or one for each class; a single one in a tuple counts the split.
    """

    description: str
    folder: str | None = None
    remotes: tuple[Remote, ...] = ()
    licence: str = "none needed: made by this package"
    by_hand: str | None = None  # what to do where no address can be downloaded without a person
    classes: tuple[str, ...] = ()
    examples: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)


def _entry(*, files: Sequence[Mapping[str, Any]] = (), classes: Sequence[str] = (), **told: Any) -> CatalogueEntry:
    counts = {
        split: count if isinstance(count, int) else tuple(count) for split, count in told.pop("examples", {}).items()
    }
    remotes = []
    for file in files:
        name = file["url"].rpartition("/")[2]
        remotes.append(Remote(**{"path": name if "unpack_into" in file else f"{told['folder']}/{name}", **file}))
    return CatalogueEntry(**told, remotes=tuple(remotes), classes=tuple(classes), examples=counts)


_TEXT = resources.files(__package__).joinpath("catalogue.toml").read_text("utf-8")
CATALOGUE = {name: _entry(**told) for name, told in tomllib.loads(_TEXT).items()}
"""What each data set is, where its files come from, and their licence."""


def catalogue_entry(name: str) -> CatalogueEntry:
    """The entry of that name; an unknown name lists the known ones."""
    if name not in CATALOGUE:
        raise ValueError(unknown_name("a data set", name, CATALOGUE))
    return CATALOGUE[name]


def by_hand(name: str, folder: object) -> str:
    """What to put where, for a machine without a network."""
    files = catalogue_entry(name)
    if files.by_hand:
        return f"{files.by_hand}, and put it into {folder}/{files.folder}"
    return f"put {' and '.join(describe(remote, folder) for remote in files.remotes)}"


def describe(remote: Remote, folder: object) -> str:
    """A file's address, what is known of it, and where it belongs."""
    size = f"{remote.size} bytes, " if remote.size else ""
    return f"{remote.url} ({size}{remote.checksum or 'checksum unknown'}) as {folder}/{remote.path}"
