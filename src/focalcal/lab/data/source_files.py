"""The folder of the data sets, the files that one was read from, and whether they hold the whole of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.lab.data.catalogue import by_hand, catalogue_entry
from focalcal.lab.data.errors import problem, reading
from focalcal.lab.data.examples import DataSet, Examples
from focalcal.lab.data.fetch import UNFINISHED, unpack_data_set
from focalcal.lab.data.splits import validation_split

VARIABLE = "FOCALCAL_DATA"
PART_WILL_DO = "pass allow_partial=True (--allow-partial) if a part will do"


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """The folder of the data sets.

    Args:
        folder: where they are; None: what the environment variable FOCALCAL_DATA names.

    Returns:
        The folder.

    >>> data_folder("data").name
    'data'
    """
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
    if any(path.is_dir() or path.suffix not in UNFINISHED for path in (Path(named) / files.folder).glob("*")):
        read_as_they_are = [here for here, remote in zip(there, files.remotes, strict=True) if not remote.unpack_into]
        return "here" if all(read_as_they_are) else "part"
    return "archive" if files.remotes and all(there) else "absent"


def _is_there(path: Path) -> bool:
    """The file, or what it is without .gz, which its reader takes as well."""
    return path.exists() or (path.suffix == ".gz" and path.with_suffix("").exists())


class SourceFiles:
    """The files of the data set `name` in the folder of the data sets: what was read, and whether it is all there is.

    `path` is the data set's own folder, its archive unpacked first if only that is there. `allow_partial` accepts a
    part of the data set. `entry` is what the catalogue says of it.
    """

    def __init__(self, name: str, folder: Path, *, allow_partial: bool = False) -> None:
        self.name, self.folder, self.allow_partial = name, folder, allow_partial
        self.path, self.entry = locate(name, folder), catalogue_entry(name)
        self._files: list[dict[str, Any]] = []

    @contextmanager
    def opened(self, path: Path, what: str) -> Iterator[bytes]:
        """The whole file, for a block in which whatever goes wrong becomes an error that names it."""
        with reading(path, what):
            content = path.read_bytes()
            self._add(path.relative_to(self.folder).as_posix(), len(content), hashlib.sha256(content).hexdigest())
            yield content

    @contextmanager
    def found(self, path: Path, what: str) -> Iterator[Path]:
        """The same for a reader that opens files itself."""
        with reading(path, what):
            self._add(path.relative_to(self.folder).as_posix(), path.stat().st_size, file_sha256(path))
            yield path

    def read_many(self, paths: Iterable[Path], what: str, *, under: Path) -> list[bytes]:
        """Many small files, remembered as one: SHA-256 over each one's name, size and content, in this order."""
        digest, contents = hashlib.sha256(), []
        for path in paths:
            with reading(path, what):
                contents.append(path.read_bytes())
            digest.update(f"{path.relative_to(under).as_posix()} {len(contents[-1])}\n".encode())
            digest.update(contents[-1])
        name = f"{under.relative_to(self.folder).as_posix()}/ ({len(contents)} files)"
        self._add(name, sum(map(len, contents)), digest.hexdigest())
        return contents

    def _add(self, name: str, size: int, sha256: str) -> None:
        self._files.append({"file": name, "bytes": size, "sha256": sha256})

    def complete(self, labels: Mapping[str, NDArray[Any]], classes: int | None = None) -> bool:
        """Whether every split holds as many examples as the catalogue says; refuse what does not, unless allowed.

        `labels` by split, as read. More examples than it says are never allowed: that is another data set.
        """
        whole, number = True, len(self.entry.classes) if classes is None else classes
        for split in labels:
            count = self.entry.examples[split]
            wanted = (count,) * number if isinstance(count, int) else count
            have = _class_counts(f"{self.name} {split}", labels[split], len(wanted))
            if have == wanted:
                continue
            whole = False
            if self.allow_partial and all(there <= most for there, most in zip(have, wanted, strict=True)):
                continue
            at = next(k for k, there in enumerate(have) if there != wanted[k])
            where = f" of class {at}" if len(wanted) > 1 else " in all"
            remedy = f"delete its folder and run `focalcal data get {self.name}`"
            remedy += "" if self.allow_partial else f", or {PART_WILL_DO}"
            rule = f"{split} must hold {sum(wanted)} examples, {wanted[at]}{where}"
            raise problem(self.name, rule, f"{len(labels[split])}, {have[at]}{where}", remedy)
        return whole

    def provenance(self, *, split: str, partial: bool, **more: Any) -> dict[str, Any]:
        """Everything read so far, how the splits were made, and what else the loader wants to say."""
        return {"files": list(self._files), "split": split, "partial": partial, **more}

    def data_set(
        self,
        parts: Mapping[str, Examples | None],
        validation: int,
        *,
        classes: tuple[str, ...] = (),
        official: str = "official",
        what: str = "images",
        **more: Any,
    ) -> DataSet:
        """The official "train" and "test" of `parts`, if complete; `validation` examples of train are held out.

        One of them may be None, of a data set of which files are missing. `classes` are needed where the catalogue has
        no names.
        """
        there = next((examples for examples in parts.values() if examples is not None), None)
        if there is None:
            remedy = f"run `focalcal data get {self.name}`"
            raise problem(self.path, f"must hold the files of {self.name}", "none", remedy)
        read = {split: examples or there.none() for split, examples in parts.items()}
        names = classes or self.entry.classes
        whole = self.complete({split: examples.labels for split, examples in read.items()}, len(names))
        train, val = validation_split(read.get("train", there.none()), validation, whole=whole)
        note = f"{official}; validation: the first {len(val)} of a shuffle of the training {what}, NumPy seed 1"
        provenance = self.provenance(split=note, partial=not whole, **more)
        return DataSet(self.name, names, train, val, read["test"], provenance=provenance)


def file_sha256(path: Path) -> str:
    """The file's SHA-256, read in pieces."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _class_counts(where: str, labels: NDArray[Any], classes: int) -> tuple[int, ...]:
    if classes == 1:
        return (len(labels),)
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        wrong = int(labels[(labels < 0) | (labels >= classes)][0])
        raise problem(where, f"labels must be from 0 to {classes - 1}", wrong, "fetch it again")
    return tuple(np.bincount(labels, minlength=classes).tolist())
