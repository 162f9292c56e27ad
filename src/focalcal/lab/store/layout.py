"""Where things lie in a store, and what its folder says about itself.

STORE.json              what the folder is, and the number of this layout
runs/<key>/             a run: whole, and never changed
    record.json         what was run (the key follows from it), metrics by split, provenance, seconds, number of epochs,
                        the file of each split, size and SHA-256 of each file; sealed by its own SHA-256, written last
    epochs.jsonl        one line per epoch, if there are any: larger than all else of long runs, read for curves
    predictions/*.npz   one file per split
    epoch-*.npz         of val and test after epochs that other rules would have kept
    evaluations/<name>/ of the trained network on other sets: whole, added at any time, and never changed;
                        a record.json and predictions/*.npz of its own
runs.parquet            what listings know already; safe to delete
work/<key>/             what a run in progress wants to find again after a crash
work/<key>.lock         locked by the process that works on it
failures/<key>.json     the last failure of a run
set-aside/              damaged runs that were run again
tmp/                    runs being written, and what running cells print

Links are not followed: none of these is read, written or cleared if it is one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from focalcal.core.atomic import write_atomically

LAYOUT = 2  # raised when older versions of this package could not read what is here
WHAT = "focalcal store of runs"
MARK = "STORE.json"
RUNS, WORK, FAILURES, SET_ASIDE, TMP, INDEX = "runs", "work", "failures", "set-aside", "tmp", "runs.parquet"
RECORD, EPOCHS, PREDICTIONS, EVALUATIONS = "record.json", "epochs.jsonl", "predictions", "evaluations"
DEFAULT, VARIABLE = "focalcal-runs", "FOCALCAL_STORE"

_FOLDERS = (RUNS, WORK, FAILURES, SET_ASIDE, TMP, INDEX)
_KEY = re.compile(r"[0-9a-f]{32}\Z")
_LONGEST_FILE_NAME = 200
_EVALUATION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")


def store_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder that was asked for, else the one that FOCALCAL_STORE names, else ./focalcal-runs."""
    return Path(given if given is not None else os.environ.get(VARIABLE) or DEFAULT)


def is_key(name: str) -> bool:
    """Whether a name has the form of a run's key."""
    return _KEY.match(name) is not None


def is_evaluation(name: str) -> bool:
    """Whether a name can be that of an evaluation, and so of a folder anywhere."""
    return _EVALUATION.match(name) is not None


def split_file(split: str) -> str:
    """A file name for a split, whatever characters it has: `svhn/test` is `svhn%2Ftest.npz`."""
    name = quote(split, safe="", errors="surrogatepass")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > _LONGEST_FILE_NAME:
        name = f"{name[:100]}-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return f"{name}.npz"


def epoch_file(epoch: int, split: str) -> str:
    """The file with the predictions after an epoch that a run did not keep and another rule would have."""
    return f"epoch-{epoch}-{split}.npz"


def refuse_link(path: Path) -> None:
    """What is kept in a store lies in it: a link would have its target written to, and cleared."""
    if path.is_symlink():
        raise OSError(
            f"{path} must lie in the store itself, got a link to {os.readlink(path)}; "
            "remove the link, or move the whole store and link that"
        )


def json_bytes(value: Any) -> bytes:
    """What is stored: standard JSON in UTF-8, to be read by people too."""
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def open_layout(folder: Path, *, create: bool) -> None:
    """Check that the folder is a store that this version can read; make it one if it is new or empty."""
    mark = folder / MARK
    for name in _FOLDERS:
        refuse_link(folder / name)
    if not mark.exists():
        _make(folder, create=create)
        return
    try:
        stated = json.loads(mark.read_bytes())
        schema, is_ours = stated["schema"], stated["what"] == WHAT and type(stated["schema"]) is int
    except (ValueError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise ValueError(
            f"{mark} must say {{'what': {WHAT!r}, 'schema': {LAYOUT}}}, got something else; "
            "name another folder, or write that into it if this is a store"
        )
    if schema != LAYOUT:
        remedy = "install a newer focalcal" if schema > LAYOUT else "read it with the focalcal that made it"
        raise ValueError(
            f"{folder} has schema {schema} and this version of focalcal reads schema {LAYOUT}; {remedy}, "
            "or name another store"
        )


def _make(folder: Path, *, create: bool) -> None:
    if not create:
        there = "a folder without it" if folder.is_dir() else "a file" if folder.exists() else "nothing of that name"
        raise FileNotFoundError(
            f"{folder} must be a store of runs, with a file {MARK}, got {there}; check the path, or $FOCALCAL_STORE"
        )
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} must be a folder to keep runs in, got a file; name another path")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = sorted(name for name in os.listdir(folder) if not name.startswith("."))  # another may be making it
        if strange and MARK not in strange:
            raise ValueError(
                f"{folder} must be a store of runs, or a new or empty folder to make one in, got a folder with "
                f"{', '.join(strange[:3])}{' and more' * (len(strange) > 3)}; name another"
            )
        write_atomically(folder / MARK, json_bytes({"what": WHAT, "schema": LAYOUT}))
    except OSError as error:
        reason = f"{error.strerror or error} ({error.filename})"
        raise OSError(
            error.errno, f"the store {folder} cannot be made: {reason}; name another folder, or make this one writable"
        ) from error
