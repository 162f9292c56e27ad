"""Reading a run's folder with suspicion: what it holds, or what is wrong with it."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from focalcal.results.diagnostics import AGAIN, Kind, Problem, RunProblem, damaged
from focalcal.results.keys import OLDEST, SCHEMA, current_fields, current_key, old_evaluations, stored_key
from focalcal.results.layout import (
    EVALUATIONS,
    FILES,
    LAYOUT,
    PREDICTIONS,
    RESULT,
    SPEC,
    is_evaluation,
    is_key,
    split_file,
)
from focalcal.results.run_json import GLANCE, check_record, check_schema, check_spec, parsed

State = dict[str, tuple[int, int]]  # of each file: size and time of change


@dataclass(eq=False)  # not frozen: thousands are made at once
class Entry:
    """What is known of a run, as text until it is looked at.

    texts     its key; then a glance at it, its spec, its record, its files and its evaluations, each as JSON on one
              line, with tabs between
    problems  evaluations of it that cannot be used
    """

    folder: str
    texts: bytes
    problems: tuple[Problem, ...] = ()

    @property
    def key(self) -> str:
        """That of its spec; the name of its folder, unless an older version stored it."""
        return self.texts[:32].decode("ascii")

    @property
    def path(self) -> Path:
        """Its folder."""
        return Path(self.folder)

    def glance(self) -> dict[str, Any]:
        """The little of spec and record that a list of runs shows: a tenth of the text."""
        found: dict[str, Any] = json.loads(self.texts[33 : self.texts.index(b"\t", 33)].decode())  # quicker than bytes
        return found

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The fields of the spec."""
        return current_fields(self._part(2))

    @cached_property
    def record(self) -> dict[str, Any]:
        """The record as it is stored, without that of its evaluations."""
        return self._part(3)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`files`: size and checksum by name; `splits`: file by split. Without those of its evaluations."""
        return self._part(4)

    @cached_property
    def evaluations(self) -> dict[str, dict[str, Any]]:
        """`record` and `manifest` of each evaluation by name; empty for one that an older version kept in the run."""
        return self._part(5)

    def _part(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.texts.split(b"\t")[number])
        return found


def state_of(folder: str) -> State:
    """Size and time of every file, by its name in the folder; files that are not ours included, links left out."""
    if os.path.islink(folder):
        raise NotADirectoryError(errno.ENOTDIR, "a link", folder)
    found: State = {}
    _look(folder, "", found)
    return found


def _look(folder: str, within: str, found: State) -> None:
    with os.scandir(folder) as names:
        for one in names:
            if one.is_file(follow_symlinks=False):
                stat = one.stat(follow_symlinks=False)
                found[within + one.name] = (stat.st_size, stat.st_mtime_ns)
            elif one.is_dir(follow_symlinks=False) and (
                one.name in (PREDICTIONS, EVALUATIONS) or within == f"{EVALUATIONS}/"
            ):
                _look(one.path, f"{within}{one.name}/", found)


def examined(folder: str, state: State | None = None) -> Entry:
    """The run in a folder, or `RunProblem`. Checks all sizes, and the content of the spec and the record."""
    try:
        return _examined(Path(folder), state_of(folder) if state is None else state)
    except OSError as error:
        raise unreadable(folder, error) from error


def _examined(folder: Path, state: State) -> Entry:
    if not is_key(folder.name):
        raise RunProblem(folder, "foreign", "a run's folder has 32 hexadecimal digits as its name; move this elsewhere")
    listed, manifest = _listed(folder, (SPEC, RESULT), state)
    files = manifest["files"]
    described, spec = _object(folder, SPEC, state)
    check_schema(folder, SPEC, spec, OLDEST, SCHEMA)
    check_spec(folder, spec)
    try:
        key = stored_key(described)
    except ValueError:
        raise damaged(folder, f"{SPEC} must have finite numbers, got others") from None
    if not key == manifest.get("key") == folder.name:
        found = key if key != folder.name else manifest.get("key")
        raise damaged(folder, f"its content is that of run {found}; it was renamed or edited")
    _check_content(folder, SPEC, described, files)
    came_out, record = _record(folder, files, state)
    glance = {name: spec[name] for name in GLANCE} | {
        "seconds": record["seconds"],
        "test": record["metrics"].get("test"),
    }
    known_as = key
    held: dict[str, Any] = {}
    if spec["schema"] < SCHEMA:
        try:
            known_as, held = current_key(spec), {name: {} for name in old_evaluations(spec)}
        except (TypeError, ValueError) as error:
            raise damaged(folder, f"{SPEC} must have the protocol of schema {spec['schema']}, got {error}") from None
    added, problems = _added(folder, known_as, state)
    texts = (_compact(glance), _line(described), _line(came_out), _line(listed), _compact({**held, **added}))
    return Entry(str(folder), b"\t".join((known_as.encode(), *texts)), tuple(problems))


def _added(folder: Path, key: str, state: State) -> tuple[dict[str, Any], list[Problem]]:
    """The evaluations in a run's folder, by name and then number, and what is wrong with those that are not whole."""
    names = {name.split("/")[1] for name in state if name.startswith(f"{EVALUATIONS}/") and name.count("/") > 1}
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in sorted(names, key=_by_number):
        place = folder / EVALUATIONS / name
        within = f"{EVALUATIONS}/{name}/"
        own = {file.removeprefix(within): size for file, size in state.items() if file.startswith(within)}
        try:
            found[name] = _evaluation(place, key, own)
        except RunProblem as error:
            problems.append(error.problem)
        except OSError as error:
            problems.append(unreadable(str(place), error).problem)
    return found, problems


def _evaluation(folder: Path, key: str, state: State) -> dict[str, Any]:
    _, manifest = _listed(folder, (RESULT,), state)
    if (manifest.get("key"), manifest.get("evaluation")) != (key, folder.name) or not is_evaluation(folder.name):
        raise damaged(folder, f"it is the evaluation {manifest.get('evaluation')!r} of run {manifest.get('key')}")
    return {"record": _record(folder, manifest["files"], state, trained=False)[1], "manifest": manifest}


def _by_number(name: str) -> tuple[str, int]:
    """`saliency-8` before `saliency-10`."""
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if number.isdecimal() else (name, 0)


def _listed(folder: Path, needed: tuple[str, ...], state: State) -> tuple[bytes, dict[str, Any]]:
    """`files.json`, whose files are all there and as large as it says."""
    text, manifest = _object(folder, FILES, state)
    check_schema(folder, FILES, manifest, LAYOUT, LAYOUT)
    files, splits = manifest.get("files"), manifest.get("splits")
    if not isinstance(files, dict) or not isinstance(splits, dict) or not set(needed) <= files.keys():
        raise damaged(folder, f"{FILES} must list files and splits, {' and '.join(needed)} among them")
    for name, stated in files.items():
        _check_size(folder, name, stated, state)
    if strange := [split for split, name in splits.items() if not _holds(name, split) or name not in files]:
        raise damaged(folder, f"{FILES} must give the file of every split, got another for {strange[0]!r}")
    return text, manifest


def _record(
    folder: Path, files: Mapping[str, Any], state: State, *, trained: bool = True
) -> tuple[bytes, dict[str, Any]]:
    text, record = _object(folder, RESULT, state)
    _check_content(folder, RESULT, text, files)
    check_record(folder, record, trained=trained)
    return text, record


def spec_key(folder: Path) -> str:
    """The key that what a folder says was run has now, without looking further."""
    spec = json.loads((folder / SPEC).read_bytes())
    return folder.name if spec["schema"] == SCHEMA else current_key(spec)


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


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _line(text: bytes) -> bytes:
    return (
        text.replace(b"\n", b" ").replace(b"\t", b" ").replace(b"\r", b" ")
    )  # between tokens: in strings JSON escapes them


def unreadable(folder: str, error: OSError) -> RunProblem:
    """The problem of a folder that the operating system does not give us."""
    kinds: dict[type[OSError], tuple[Kind, str]] = {
        FileNotFoundError: ("damaged", AGAIN),
        NotADirectoryError: ("foreign", "a run is a folder; move this elsewhere"),
    }
    kind, remedy = kinds.get(type(error), ("unreadable", "check its permissions and its disk"))
    return RunProblem(Path(folder), kind, f"{error.strerror or error} ({error.filename}); {remedy}")


def changed(folder: Path, name: str) -> RunProblem:
    """The problem of a file whose checksum is not the stored one."""
    return damaged(folder, f"{name} was changed after it was stored (its SHA-256 is another)")


def _absent(folder: Path, name: str) -> RunProblem:
    linked = any(path.is_symlink() for path in (folder / name, (folder / name).parent))
    return damaged(folder, f"{name} must be a file of the run itself, got a link" if linked else f"{name} is missing")


def _object(folder: Path, name: str, state: State) -> tuple[bytes, dict[str, Any]]:
    if name not in state:
        raise _absent(folder, name)
    text = (folder / name).read_bytes()
    return text, parsed(folder, name, text)


def _holds(name: Any, split: str) -> bool:
    """Whether a file is where `write_run` puts the predictions of a split."""
    return bool(name == f"{PREDICTIONS}/{split_file(split)}")


def _check_size(folder: Path, name: str, stated: Any, state: State) -> None:
    if not isinstance(stated, dict) or not {"bytes", "sha256"} <= stated.keys():
        raise damaged(folder, f"{FILES} must give the size and SHA-256 of {name}, got {stated!r}")
    if name not in state:
        raise _absent(folder, name)
    if state[name][0] != stated["bytes"]:
        raise damaged(folder, f"{name} must have {stated['bytes']} bytes, got {state[name][0]}")
