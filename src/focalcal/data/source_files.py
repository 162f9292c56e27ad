"""The files a data set was read from, remembered with size and SHA-256, and whether they hold the whole of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.data.errors import problem, reading
from focalcal.data.examples import DataSet, Examples
from focalcal.data.location import locate
from focalcal.data.splits import validation_split

PART_WILL_DO = "pass allow_partial=True (--allow-partial) if a part will do"


class SourceFiles:
    """The files of the data set `name` in the folder of the data sets: what was read, and whether it is all there is.

    `path` is the data set's own folder, its archive unpacked first if only that is there. `allow_partial` accepts a
    part of the data set.
    """

    def __init__(self, name: str, folder: Path, *, allow_partial: bool = False) -> None:
        self.name, self.folder, self.allow_partial = name, folder, allow_partial
        self.path = locate(name, folder)
        self._files: list[dict[str, Any]] = []

    def read(self, path: Path, what: str) -> bytes:
        """The whole file."""
        with reading(path, what):
            content = path.read_bytes()
        self._add(path.relative_to(self.folder).as_posix(), len(content), hashlib.sha256(content).hexdigest())
        return content

    def remember(self, path: Path, what: str) -> Path:
        """The same path, for a reader that opens files itself."""
        with reading(path, what):
            digest = file_sha256(path)
            self._add(path.relative_to(self.folder).as_posix(), path.stat().st_size, digest)
        return path

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

    def complete(self, labels: Mapping[str, NDArray[Any]], expected: Mapping[str, tuple[int, ...]]) -> bool:
        """`complete` for this data set."""
        return complete(self.name, labels, expected, allow_partial=self.allow_partial)

    def provenance(self, *, split: str, partial: bool, **more: Any) -> dict[str, Any]:
        """Everything read so far, how the splits were made, and what else the loader wants to say."""
        return {"files": list(self._files), "split": split, "partial": partial, **more}

    def data_set(
        self,
        classes: tuple[str, ...],
        parts: Mapping[str, Examples],
        expected: Mapping[str, tuple[int, ...]],
        validation: int,
        *,
        official: str = "official",
        **more: Any,
    ) -> DataSet:
        """The official "train" and "test" of `parts`, if complete; `validation` images of train are held out."""
        whole = self.complete({split: examples.labels for split, examples in parts.items()}, expected)
        test = parts["test"]
        train, val = validation_split(parts.get("train", test.none()), validation, whole=whole)
        note = f"{official}; validation: the first {len(val)} of a shuffle of the training images, NumPy seed 1"
        provenance = self.provenance(split=note, partial=not whole, **more)
        return DataSet(self.name, classes, train, val, test, provenance=provenance)


def file_sha256(path: Path) -> str:
    """The file's SHA-256, read in pieces."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def complete(
    name: str,
    labels: Mapping[str, NDArray[Any]],
    expected: Mapping[str, tuple[int, ...]],
    *,
    allow_partial: bool,
) -> bool:
    """Whether every split holds the expected number of each class; refuse what does not, unless allowed.

    `labels` by split, as read; `expected` holds one number per class, or a single number for the whole split. More
    examples than expected are never allowed: that is another data set.
    """
    whole = True
    for split, wanted in expected.items():
        have = _class_counts(f"{name} {split}", labels[split], len(wanted))
        if have == wanted:
            continue
        whole = False
        if allow_partial and all(count <= most for count, most in zip(have, wanted, strict=True)):
            continue
        at = next(k for k, count in enumerate(have) if count != wanted[k])
        where = f" of class {at}" if len(wanted) > 1 else " in all"
        remedy = f"delete its folder and run `focalcal data get {name}`"
        remedy += "" if allow_partial else f", or {PART_WILL_DO}"
        rule = f"{split} must hold {sum(wanted)} examples, {wanted[at]}{where}"
        raise problem(name, rule, f"{len(labels[split])}, {have[at]}{where}", remedy)
    return whole


def _class_counts(where: str, labels: NDArray[Any], classes: int) -> tuple[int, ...]:
    if classes == 1:
        return (len(labels),)
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        wrong = int(labels[(labels < 0) | (labels >= classes)][0])
        raise problem(where, f"labels must be from 0 to {classes - 1}", wrong, "fetch it again")
    return tuple(np.bincount(labels, minlength=classes).tolist())
