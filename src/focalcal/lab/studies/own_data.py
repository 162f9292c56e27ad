"""Data sets that are not shipped: the fingerprint of their examples is part of a run's key, since options say little.

A loader is called for it wherever cells are planned. Where it has named its `files` these are looked at instead, and it
is called only if the size or a time of one has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from focalcal.core.atomic import write_atomically
from focalcal.core.plugins import source_hash
from focalcal.lab.data import DATA_SETS, LOADERS, OWN_DATA, DataSet, load_data
from focalcal.lab.data.source_files import VARIABLE
from focalcal.lab.training.recipe import Recipe

FINGERPRINT = "fingerprint"  # in a spec's training, of data that is not shipped
_SETTLED = 2_000_000_000  # nanoseconds, the coarsest clock of a file system


def own_fingerprint(recipe: Recipe, *, allow_partial: bool = False, data_dir: Path | None = None) -> str | None:
    """Of the recipe's data as its loader returns them now, before any protocol; None for what the package ships."""
    if recipe.data_set in DATA_SETS:
        return None
    options = dict(recipe.data_options)
    code = source_hash("data_sets", recipe.data_set, LOADERS)
    place = [str(data_dir), os.environ.get(VARIABLE), os.getcwd()]
    known = _cache_folder() / f"{_digest([recipe.data_set, code, options, allow_partial, place])}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):  # not there, or not what was written
        written = json.loads(known.read_text())
        if written["files"] == _looks(list(written["files"])):
            return str(written[FINGERPRINT])
    began = time.time_ns()
    with nullcontext() if recipe.data_set in OWN_DATA else blame("data set", recipe.data_set):
        data = load_data(recipe.data_set, data_dir, allow_partial=allow_partial, **options)
        looks = _looks([str(Path(file).absolute()) for file in data.files])
    fingerprint = data_fingerprint(data)
    if looks and began - max(max(times) for _, *times in looks.values()) > _SETTLED:  # else they may change unseen
        with suppress(OSError):  # it is only slower next time
            known.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(known, json.dumps({FINGERPRINT: fingerprint, "files": looks}).encode())
    return fingerprint


def data_fingerprint(data: DataSet) -> str:
    """16 hexadecimal digits of SHA-256 over the fingerprints of the splits and the vocabulary."""
    return _digest([data.provenance["fingerprints"], data.vocabulary])[:16]


def check_fingerprint(data: DataSet, planned: str | None) -> None:
    """Refuse other examples than those that a run was planned with; None stands for data whose key needs none."""
    if planned is not None and (got := data_fingerprint(data)) != planned:
        raise ValueError(
            f"data set {data.name!r} must hold the examples that the run was planned with (fingerprint {planned}), got "
            f"others ({got}); restore them or start the study again, with a loader that returns the same at every call"
        )


@contextmanager
def blame(kind: str, name: str) -> Iterator[None]:
    """Name the plug-in and the line in what its code raises."""
    try:
        yield
    except Exception as error:  # whatever somebody's code raises
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}, line {frame.lineno}"
        raise ValueError(
            f"{kind} {name!r} must work when it is called once, got {type(error).__name__}: {error} ({place})"
        ) from error


def _looks(files: Sequence[str]) -> dict[str, list[int]]:
    """Size and times by path; the time of the inode also tells of a file that was replaced and kept its other time."""
    looks = {file: os.stat(file) for file in files}
    return {file: [look.st_size, look.st_mtime_ns, look.st_ctime_ns] for file, look in looks.items()}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "focalcal" / "fingerprints"
