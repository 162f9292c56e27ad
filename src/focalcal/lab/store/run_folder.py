"""A run's folder, read with suspicion: what it holds, or what is wrong with it. `run_writer` writes one.

Sizes are compared whenever a folder is read, and so are the checksums of its spec and record; those of the other files
are compared by whoever reads them. What is not as it was stored, or makes no sense, is a `RunProblem` of this run, and
of no other.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from focalcal.lab.store.diagnostics import Kind, RunProblem, StoreProblem
from focalcal.lab.store.keys import OLDEST, SCHEMA, current_key, old_evaluations, stored_key
from focalcal.lab.store.layout import (
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

State = dict[str, tuple[int, int]]  # of each file: size and time of change

_LISTED = ("data_set", "model", "objective", "objective_options", "seed")  # of a spec, in a list of runs
_FIELDS = {
    **dict.fromkeys(_LISTED[:3], str),
    "objective_options": dict,
    "seed": int,
    "training": dict,
    "protocol": dict,
}
_DEEPEST = 50  # levels of JSON; a run of ours has fewer than ten
_LARGEST = 2**53  # of whole numbers: beyond it floats, and so tables and keys, do not tell them apart
_WORDS = (None, "Infinity", "-Infinity")  # in the place of a metric that is not finite


class Examined(NamedTuple):
    """What a folder holds, for `Run` to read, and which of its evaluations cannot be used.

    texts  the key; then a glance at the run, its spec, its record, its files and its evaluations, each as JSON on one
           line, with tabs between
    """

    texts: bytes
    problems: list[StoreProblem]


def state_of(folder: str) -> State:
    """Size and time of every file, by its name in the folder; files that are not ours included, links left out."""
    if os.path.islink(folder):
        raise NotADirectoryError(errno.ENOTDIR, "a link", folder)
    state: State = {}
    _add_state(folder, "", state)
    return state


def _add_state(folder: str, within: str, state: State) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                stat = entry.stat(follow_symlinks=False)
                state[within + entry.name] = (stat.st_size, stat.st_mtime_ns)
            elif entry.is_dir(follow_symlinks=False) and (
                entry.name in (PREDICTIONS, EVALUATIONS) or within == f"{EVALUATIONS}/"
            ):
                _add_state(entry.path, f"{within}{entry.name}/", state)


def examine(folder: str, state: State | None = None) -> Examined:
    """The run in a folder, or `RunProblem`. Checks all sizes, and the content of the spec and the record."""
    try:
        return _examine(Path(folder), state_of(folder) if state is None else state)
    except OSError as error:
        raise unreadable(folder, error) from error


def _examine(folder: Path, state: State) -> Examined:
    if not is_key(folder.name):
        raise RunProblem(folder, "foreign", "a run's folder has 32 hexadecimal digits as its name")
    files_text, manifest = _read_manifest(folder, (SPEC, RESULT), state)
    spec_text, spec = _read_object(folder, SPEC, state)
    _check_schema(folder, SPEC, spec, OLDEST, SCHEMA)
    _check_spec(folder, spec)
    try:
        key = stored_key(spec_text)
    except ValueError:
        raise damage(folder, f"{SPEC} must have finite numbers, got others") from None
    if not key == manifest.get("key") == folder.name:
        other = key if key != folder.name else manifest.get("key")
        raise damage(folder, f"its content is that of run {other}; it was renamed or edited")
    check_content(folder, SPEC, spec_text, manifest)
    record_text, record = _read_record(folder, manifest, state)
    kept: dict[str, Any] = {}
    if spec["schema"] < SCHEMA:
        try:
            key, kept = current_key(spec), {name: {} for name in old_evaluations(spec)}
        except (TypeError, ValueError) as error:
            raise damage(folder, f"{SPEC} must have the protocol of schema {spec['schema']}, got {error}") from None
    added, problems = _read_evaluations(folder, key, state)
    glance = {name: spec[name] for name in _LISTED}
    glance |= {"seconds": record["seconds"], "test": record["metrics"].get("test")}
    parts = (_compact(glance), *map(_line, (spec_text, record_text, files_text)), _compact({**kept, **added}))
    return Examined(b"\t".join((key.encode(), *parts)), problems)


def _read_evaluations(folder: Path, key: str, state: State) -> tuple[dict[str, Any], list[StoreProblem]]:
    """The evaluations in a run's folder, by name and then number, and what is wrong with those that are not whole."""
    names = {name.split("/")[1] for name in state if name.startswith(f"{EVALUATIONS}/") and name.count("/") > 1}
    evaluations: dict[str, Any] = {}
    problems: list[StoreProblem] = []
    for name in sorted(names, key=_by_number):
        within = f"{EVALUATIONS}/{name}/"
        own = {file.removeprefix(within): size for file, size in state.items() if file.startswith(within)}
        try:
            evaluations[name] = _read_evaluation(folder / EVALUATIONS / name, key, own)
        except RunProblem as error:
            problems.append(error.problem)
        except OSError as error:
            problems.append(unreadable(str(folder / EVALUATIONS / name), error).problem)
    return evaluations, problems


def _by_number(name: str) -> tuple[str, int]:
    """`saliency-8` before `saliency-10`."""
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if number.isdecimal() else (name, 0)


def _read_evaluation(folder: Path, key: str, state: State) -> dict[str, Any]:
    _, manifest = _read_manifest(folder, (RESULT,), state)
    if (manifest.get("key"), manifest.get("evaluation")) != (key, folder.name) or not is_evaluation(folder.name):
        raise damage(folder, f"it is the evaluation {manifest.get('evaluation')!r} of run {manifest.get('key')}")
    return {"record": _read_record(folder, manifest, state, trained=False)[1], "manifest": manifest}


def _read_manifest(folder: Path, needed: tuple[str, ...], state: State) -> tuple[bytes, dict[str, Any]]:
    """`files.json`, whose files are all there and as large as it says."""
    text, manifest = _read_object(folder, FILES, state)
    _check_schema(folder, FILES, manifest, LAYOUT, LAYOUT)
    files, splits = manifest.get("files"), manifest.get("splits")
    if not isinstance(files, dict) or not isinstance(splits, dict) or not set(needed) <= files.keys():
        raise damage(folder, f"{FILES} must list files and splits, {' and '.join(needed)} among them")
    for name, stated in files.items():
        if not isinstance(stated, dict) or not {"bytes", "sha256"} <= stated.keys():
            raise damage(folder, f"{FILES} must give the size and SHA-256 of {name}, got {stated!r}")
        _check_there(folder, name, state)
        if state[name][0] != stated["bytes"]:
            raise damage(folder, f"{name} must have {stated['bytes']} bytes, got {state[name][0]}")
    for split, name in splits.items():
        if name != f"{PREDICTIONS}/{split_file(split)}" or name not in files:
            raise damage(folder, f"{FILES} must give the file of every split, got another for {split!r}")
    return text, manifest


def _read_record(
    folder: Path, manifest: Mapping[str, Any], state: State, *, trained: bool = True
) -> tuple[bytes, dict[str, Any]]:
    """Numbers where numbers belong; the record of an evaluation, not `trained`, has no epochs."""
    text, record = _read_object(folder, RESULT, state)
    check_content(folder, RESULT, text, manifest)
    metrics = record.get("metrics")
    right = {
        "metrics": isinstance(metrics, dict) and all(map(_are_metrics, metrics.values())),
        "provenance": isinstance(record.get("provenance"), dict),
        "seconds": _is_number(record.get("seconds")),
        "epochs": not trained or (type(record.get("epochs")) is int and _is_number(record["epochs"])),
    }
    if wrong := [name for name, is_right in right.items() if not is_right]:
        rule = "metrics (numbers by split and name), provenance, seconds and epochs (numbers)"
        raise damage(folder, f"{RESULT} must hold {rule}, got other {', '.join(wrong)}")
    return text, record


def read_spec_key(folder: Path) -> str:
    """The key that what a folder says was run has now, without looking further."""
    spec = json.loads((folder / SPEC).read_bytes())
    return folder.name if spec["schema"] == SCHEMA else current_key(spec)


def read_epoch(folder: Path, name: str, line: bytes) -> dict[str, Any]:
    """The record of an epoch; numbers where reports and queries count on them."""
    record = _parse_object(folder, name, line)
    if wrong := wrong_epoch_fields(record):
        raise damage(folder, f"{name} must have numbers for {wrong[0]}, got {record[wrong[0]]!r:.60}")
    return record


def wrong_epoch_fields(record: Mapping[str, Any]) -> list[str]:
    """Those of epoch, lr and seconds that are no number, and those of train, val and test that are no metrics."""
    numbers = [name for name in ("epoch", "lr", "seconds") if name in record and not _is_number(record[name])]
    return numbers + [name for name in ("train", "val", "test") if name in record and not _are_metrics(record[name])]


def read_number(value: Any) -> float:
    """A stored metric."""
    return math.nan if value is None else float(value)


def sha256(path: Path) -> str:
    """Of a file's content."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def check_content(folder: Path, name: str, content: bytes | None, manifest: Mapping[str, Any]) -> None:
    """Compare a file with its checksum; its content is read here if that is not given."""
    digest = sha256(folder / name) if content is None else hashlib.sha256(content).hexdigest()
    if digest != manifest["files"][name]["sha256"]:
        raise damage(folder, f"{name} was changed after it was stored (its SHA-256 is another)")


def damage(folder: Path, fact: str) -> RunProblem:
    """The problem of a run, or of one of its evaluations, that is not what was stored."""
    return RunProblem(folder, "damaged", fact)


def unreadable(folder: str, error: OSError) -> RunProblem:
    """The problem of a folder that the operating system does not give us."""
    kinds: dict[type[OSError], Kind] = {FileNotFoundError: "damaged", NotADirectoryError: "foreign"}
    fact = f"{error.strerror or error} ({error.filename})"
    return RunProblem(Path(folder), kinds.get(type(error), "unreadable"), fact)


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _line(text: bytes) -> bytes:
    """On one line, without tabs: they stand between tokens, since JSON escapes them in strings."""
    return text.replace(b"\n", b" ").replace(b"\t", b" ").replace(b"\r", b" ")


def _check_there(folder: Path, name: str, state: State) -> None:
    if name not in state:
        linked = any(path.is_symlink() for path in (folder / name, (folder / name).parent))
        raise damage(folder, f"{name} must be a file of the run itself, got a link" if linked else f"{name} is missing")


def _read_object(folder: Path, name: str, state: State) -> tuple[bytes, dict[str, Any]]:
    _check_there(folder, name, state)
    text = (folder / name).read_bytes()
    return text, _parse_object(folder, name, text)


def _parse_object(folder: Path, name: str, text: bytes) -> dict[str, Any]:
    """The JSON object in a text; `RunProblem` for anything that no run of ours has."""
    try:
        value = json.loads(text)
        may_be_deep = text.count(b"{") + text.count(b"[") > _DEEPEST  # which is quicker to see
        if not isinstance(value, dict) or (may_be_deep and _depth(value) > _DEEPEST):
            raise ValueError(f"a {type(value).__name__} of {_depth(value)} levels")
        if b"\\u" in text or not text.isascii():
            json.dumps(value, ensure_ascii=False).encode()  # refuses half a character, which cannot be printed
    except (ValueError, RecursionError) as error:
        rule = f"{name} must be a whole JSON object of at most {_DEEPEST} levels"
        raise damage(folder, f"{rule}, got {len(text)} bytes that are not: {error}") from None
    return value


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


def _check_schema(folder: Path, name: str, fields: Mapping[str, Any], oldest: int, newest: int) -> None:
    """Refuse a file of a version of this package that this one does not read, with the numbers."""
    schema = fields.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise damage(folder, f"{name} must state its schema, got {schema!r}")
    if not oldest <= schema <= newest:
        reads = newest if oldest == newest else f"{oldest} to {newest}"
        fact = f"{name} has schema {schema}, this version reads {reads}"
        raise RunProblem(folder, "newer" if schema > newest else "older", fact)


def _check_spec(folder: Path, spec: Mapping[str, Any]) -> None:
    """That the fields are there and of the right kind, and numbers such as tables and keys tell apart."""
    right = {name: type(spec.get(name)) is kind for name, kind in _FIELDS.items()}
    if all(right.values()):
        numbers = {"seed": spec["seed"], **spec["objective_options"]}
        right = {name: type(value) is not int or _is_number(value) for name, value in numbers.items()}
    if wrong := [name for name, is_right in right.items() if not is_right]:
        kinds = ", ".join(f"{name} ({kind.__name__})" for name, kind in _FIELDS.items())
        raise damage(folder, f"{SPEC} must hold {kinds}, whole numbers up to 2**53, got other {', '.join(wrong)}")


def _are_metrics(values: Any) -> bool:
    return isinstance(values, dict) and all(_is_number(value) or value in _WORDS for value in values.values())


def _is_number(value: Any) -> bool:
    if type(value) is float:
        return not math.isinf(value)  # JSON's 1e400; infinities that are meant are words
    return type(value) is int and abs(value) <= _LARGEST
