"""The files a data set was read from: found, read once, and remembered with size and SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.data.errors import problem, reading

PART_WILL_DO = "pass allow_partial=True (--allow-partial) if a part will do"


class Sources:
    """What was read below `folder`, for a data set's provenance."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: list[dict[str, Any]] = []

    def read(self, path: Path, what: str) -> bytes:
        """The whole file."""
        with reading(path, what):
            content = path.read_bytes()
        self._remember(path.relative_to(self.folder).as_posix(), len(content), hashlib.sha256(content).hexdigest())
        return content

    def noted(self, path: Path, what: str) -> Path:
        """The same path, for a reader that opens files itself."""
        with reading(path, what):
            digest = file_sha256(path)
            self._remember(path.relative_to(self.folder).as_posix(), path.stat().st_size, digest)
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
        self._remember(name, sum(map(len, contents)), digest.hexdigest())
        return contents

    def _remember(self, name: str, size: int, sha256: str) -> None:
        self._files.append({"file": name, "bytes": size, "sha256": sha256})

    def provenance(self, *, split: str, partial: bool, **more: Any) -> dict[str, Any]:
        """Everything read so far, how the splits were made, and what else the loader wants to say."""
        return {"files": list(self._files), "split": split, "partial": partial, **more}


def file_sha256(path: Path) -> str:
    """The file's SHA-256, read in pieces."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def complete(
    name: str,
    labels: dict[str, NDArray[Any]],
    expected: Mapping[str, tuple[int, ...]],
    *,
    allow_partial: bool,
) -> bool:
    """Whether every split holds the expected number of each class; refuse what does not, unless allowed.

    `labels` by split, as read; `expected` holds a number a class, or a single number for the whole split. More
    examples than expected are never allowed: that is another data set.
    """
    whole = True
    for split, wanted in expected.items():
        have = _counted(f"{name} {split}", labels[split], len(wanted))
        if have == wanted:
            continue
        whole = False
        if allow_partial and all(one <= most for one, most in zip(have, wanted, strict=True)):
            continue
        at = next(k for k, one in enumerate(have) if one != wanted[k])
        where = f" of class {at}" if len(wanted) > 1 else " in all"
        remedy = f"delete its folder and run `focalcal data get {name}`"
        remedy += "" if allow_partial else f", or {PART_WILL_DO}"
        rule = f"{split} must hold {sum(wanted)} examples, {wanted[at]}{where}"
        raise problem(name, rule, f"{len(labels[split])}, {have[at]}{where}", remedy)
    return whole


def _counted(where: str, labels: NDArray[Any], classes: int) -> tuple[int, ...]:
    if classes == 1:
        return (len(labels),)
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        wrong = int(labels[(labels < 0) | (labels >= classes)][0])
        raise problem(where, f"labels must be from 0 to {classes - 1}", wrong, "fetch it again")
    return tuple(np.bincount(labels, minlength=classes).tolist())
