"""Reading a run's folder with suspicion: what it holds, or what is wrong with it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from focalcal.results.keys import SCHEMA, stored_key
from focalcal.results.layout import FILES, LAYOUT, PREDICTIONS, RESULT, SPEC, is_key
from focalcal.results.problems import Kind, RunProblem

State = dict[str, tuple[int, int]]  # of each file: size and time of change

GLANCE = ("data_set", "model", "objective", "objective_options", "seed")
_AGAIN = "run it again (the folder is then set aside), or remove it with `focalcal runs rm`"


@dataclass(eq=False)  # not frozen: thousands are made at once
class Entry:
    """What is known of a run, as text until it is looked at.

    texts   a glance at it, its spec, its record and its files, each as JSON on one line, with tabs between
    """

    key: str
    folder: str
    texts: bytes

    @property
    def path(self) -> Path:
        """Its folder."""
        return Path(self.folder)

    def glance(self) -> dict[str, Any]:
        """The little of spec and record that a list of runs shows: a tenth of the text."""
        found: dict[str, Any] = json.loads(self.texts[: self.texts.index(b"\t")].decode())  # quicker than from bytes
        return found

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The fields of the spec."""
        found = self._part(1)
        del found["schema"]
        return found

    @cached_property
    def record(self) -> dict[str, Any]:
        """The record as it is stored."""
        return self._part(2)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`files`: size and checksum by name; `splits`: file by split."""
        return self._part(3)

    def _part(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.texts.split(b"\t")[number])
        return found


def state_of(folder: str) -> State:
    """Size and time of every file, by its name in the folder; files that are not ours included."""
    found: State = {}
    nested = False
    with os.scandir(folder) as names:
        for one in names:
            if one.is_file():
                stat = one.stat()
                found[one.name] = (stat.st_size, stat.st_mtime_ns)
            else:
                nested |= one.name == PREDICTIONS
    if nested:
        with os.scandir(f"{folder}/{PREDICTIONS}") as names:
            for one in names:
                stat = one.stat()
                found[f"{PREDICTIONS}/{one.name}"] = (stat.st_size, stat.st_mtime_ns)
    return found


def examined(folder: str, state: State | None = None) -> Entry:
    """The run in a folder, or `RunProblem`. Checks all sizes, and the content of the spec and the record."""
    try:
        return _examined(Path(folder), state_of(folder) if state is None else state)
    except OSError as error:
        raise unreadable(folder, error) from error


def _examined(folder: Path, state: State) -> Entry:
    if not is_key(folder.name):
        raise RunProblem(folder, "foreign", "a run's folder has 32 hexadecimal digits as its name; move this elsewhere")
    listed, manifest = _object(folder, FILES, state)
    _check_schema(folder, FILES, manifest, LAYOUT)
    files, splits = manifest.get("files"), manifest.get("splits")
    if not isinstance(files, dict) or not isinstance(splits, dict) or not {SPEC, RESULT} <= files.keys():
        raise _damaged(folder, f"{FILES} must list files and splits, {SPEC} and {RESULT} among them")
    for name, stated in files.items():
        _check_size(folder, name, stated, state)
    described, spec = _object(folder, SPEC, state)
    _check_schema(folder, SPEC, spec, SCHEMA)
    if absent := [name for name in GLANCE if name not in spec]:
        raise _damaged(folder, f"{SPEC} must have {', '.join(absent)}")
    key = stored_key(described)
    if not key == manifest.get("key") == folder.name:
        found = key if key != folder.name else manifest.get("key")
        raise _damaged(folder, f"its content is that of run {found}; it was renamed or edited")
    came_out, record = _object(folder, RESULT, state)
    _check_content(folder, SPEC, described, files)
    _check_content(folder, RESULT, came_out, files)
    if not isinstance(record.get("metrics"), dict) or "seconds" not in record:
        raise _damaged(folder, f"{RESULT} must hold metrics and seconds")
    glance = {name: spec[name] for name in GLANCE} | {
        "seconds": record["seconds"],
        "test": record["metrics"].get("test"),
    }
    texts = (json.dumps(glance, separators=(",", ":")).encode(), _line(described), _line(came_out), _line(listed))
    return Entry(folder.name, str(folder), b"\t".join(texts))


def read_checked(entry: Entry, name: str) -> bytes:
    """The content of a small file, if it is what was stored."""
    content = (entry.path / name).read_bytes()
    _check_content(entry.path, name, content, entry.manifest["files"])
    return content


def read_number(value: Any) -> float:
    """A stored metric."""
    return math.nan if value is None else float(value)


def sha256(path: Path) -> str:
    """Of a file's content."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _check_content(folder: Path, name: str, content: bytes, files: Mapping[str, Any]) -> None:
    if hashlib.sha256(content).hexdigest() != files[name]["sha256"]:
        raise changed(folder, name)


def _line(text: bytes) -> bytes:
    return (
        text.replace(b"\n", b" ").replace(b"\t", b" ").replace(b"\r", b" ")
    )  # between tokens: in strings JSON escapes them


def unreadable(folder: str, error: OSError) -> RunProblem:
    """The problem of a folder that the operating system does not give us."""
    kinds: dict[type[OSError], tuple[Kind, str]] = {
        FileNotFoundError: ("damaged", _AGAIN),
        NotADirectoryError: ("foreign", "a run is a folder; move this elsewhere"),
    }
    kind, remedy = kinds.get(type(error), ("unreadable", "check its permissions and its disk"))
    return RunProblem(Path(folder), kind, f"{error.strerror or error} ({error.filename}); {remedy}")


def changed(folder: Path, name: str) -> RunProblem:
    """The problem of a file whose checksum is not the stored one."""
    return _damaged(folder, f"{name} was changed after it was stored (its SHA-256 is another)")


def _damaged(folder: Path, what: str) -> RunProblem:
    return RunProblem(folder, "damaged", f"{what}; {_AGAIN}")


def _object(folder: Path, name: str, state: State) -> tuple[bytes, dict[str, Any]]:
    if name not in state:
        raise _damaged(folder, f"{name} is missing")
    text = (folder / name).read_bytes()
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _damaged(folder, f"{name} must be whole JSON, got {len(text)} bytes that are not: {error}") from None
    if not isinstance(found, dict):
        raise _damaged(folder, f"{name} must be a JSON object, got {type(found).__name__}")
    return text, found


def _check_schema(folder: Path, name: str, found: Mapping[str, Any], known: int) -> None:
    schema = found.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise _damaged(folder, f"{name} must state its schema, got {schema!r}")
    if schema > known:
        remedy = "install a newer focalcal to read it"
        raise RunProblem(folder, "newer", f"{name} has schema {schema}, this version reads {known}; {remedy}")
    if schema < known:
        remedy = "read it with the focalcal that made it, or run it again"
        raise RunProblem(folder, "older", f"{name} has schema {schema}, this version reads {known}; {remedy}")


def _check_size(folder: Path, name: str, stated: Any, state: State) -> None:
    if not isinstance(stated, dict) or not {"bytes", "sha256"} <= stated.keys():
        raise _damaged(folder, f"{FILES} must give the size and SHA-256 of {name}, got {stated!r}")
    if name not in state:
        raise _damaged(folder, f"{name} is missing")
    if state[name][0] != stated["bytes"]:
        raise _damaged(folder, f"{name} must have {stated['bytes']} bytes, got {state[name][0]}")
