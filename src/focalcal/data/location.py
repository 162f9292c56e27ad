"""The folder that holds the data sets, the folder of each, and which of them are there."""

from __future__ import annotations

import os
from pathlib import Path

from focalcal.data.catalogue import by_hand, catalogue_entry
from focalcal.data.errors import problem
from focalcal.data.fetch import unpack_data_set

VARIABLE = "FOCALCAL_DATA"


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """`folder`, or the one that the environment variable FOCALCAL_DATA names."""
    named = folder if folder is not None else os.environ.get(VARIABLE)
    if not named:
        raise ValueError(
            f"data_dir must name the folder of the data sets, got None; pass it (--data-dir), or set {VARIABLE}"
        )
    return Path(named)


def locate(name: str, folder: Path) -> Path:
    """The data set's own folder inside `folder`, its archive unpacked first if only that is there."""
    subfolder = catalogue_entry(name).folder
    assert subfolder is not None  # what has no files is not looked for
    unpack_data_set(name, folder)
    path = folder / subfolder
    if not path.is_dir():
        remedy = f"run `focalcal data get {name}`, or without a network {by_hand(name, folder)}"
        raise problem(path, f"must be the folder of {name}", "nothing of that name", remedy)
    return path


def state(name: str, folder: str | os.PathLike[str] | None = None) -> str:
    """What is there of it: "built in", "here", "part" (files are missing), "archive" (to unpack) or "absent"."""
    files = catalogue_entry(name)
    if files.folder is None:
        return "built in"
    named = folder if folder is not None else os.environ.get(VARIABLE)
    if not named:
        return "absent"
    there = [_is_there(Path(named) / remote.path) for remote in files.remotes]
    if any(path.is_dir() or path.suffix not in (".part", ".tag") for path in (Path(named) / files.folder).glob("*")):
        read_as_they_are = [here for here, remote in zip(there, files.remotes, strict=True) if not remote.unpack_into]
        return "here" if all(read_as_they_are) else "part"
    return "archive" if files.remotes and all(there) else "absent"


def _is_there(path: Path) -> bool:
    """The file, or what it is without .gz, which its reader takes as well."""
    return path.exists() or (path.suffix == ".gz" and path.with_suffix("").exists())
