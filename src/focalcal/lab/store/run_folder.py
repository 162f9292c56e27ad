"""A run's folder: written whole by `write_run`, read with suspicion by `read_folder`.

`record.json` says what was run, what came out, and size and SHA-256 of every other file; its last line is the SHA-256
of what stands before it. Sizes and that checksum are compared whenever a folder is read, those of the other files where
their content is used (`Checksums`). What is not as it was stored is a `RunProblem` of this run, and of no other.
An evaluation of the run has a folder of the same kind within it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focalcal.core.checks import whole
from focalcal.lab.store.diagnostics import ProblemKind, RunProblem, StoreProblem
from focalcal.lab.store.keys import spec_key
from focalcal.lab.store.layout import EPOCHS, EVALUATIONS, LAYOUT, PREDICTIONS, RECORD, is_key, split_file

if TYPE_CHECKING:
    from focalcal.lab.store.spec import Evaluation, Spec
    from focalcal.predictions import Predictions

FileStates = dict[str, tuple[int, int]]  # of each file: size and time of change

_SEAL = b',\n "sha256": "'  # between what is sealed and its checksum
_OURS = (RECORD, EPOCHS, PREDICTIONS, EVALUATIONS)
_WORDS = {math.inf: "Infinity", -math.inf: "-Infinity"}  # standard JSON has none of them
_LARGEST = 2**53  # of whole numbers: beyond it floats, and so tables, do not tell them apart


class FolderContents(NamedTuple):
    """What a run's folder holds: its record and those of its evaluations by name, and which of these are damaged."""

    record: dict[str, Any]
    evaluations: dict[str, dict[str, Any]]
    problems: list[StoreProblem]


def read_folder(folder: str, state: FileStates | None = None) -> FolderContents:
    """The run in a folder, or `RunProblem`."""
    try:
        state = state_of(folder) if state is None else state
        path = Path(folder)
        if not is_key(path.name):
            raise RunProblem(path, "foreign", "a run's folder has 32 hexadecimal digits as its name")
        record = _read_record(path, state)
        key = spec_key(record["spec"])
        if not key == record["key"] == path.name:
            raise damage(path, f"its content is that of run {key}; it was renamed")
        evaluations, problems = _read_evaluations(path, key, state)
    except OSError as error:
        raise unreadable(folder, error) from error
    return FolderContents(record, evaluations, problems)


def state_of(folder: str) -> FileStates:
    """Size and time of every file, by its name in the folder; files that are not ours included, links left out."""
    if os.path.islink(folder):
        raise NotADirectoryError(errno.ENOTDIR, "a link", folder)
    state: FileStates = {}
    _add_state(folder, "", state)
    return state


def _add_state(folder: str, within: str, state: FileStates) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                stat = entry.stat(follow_symlinks=False)
                state[within + entry.name] = (stat.st_size, stat.st_mtime_ns)
            elif entry.is_dir(follow_symlinks=False) and (
                entry.name in (PREDICTIONS, EVALUATIONS) or within == f"{EVALUATIONS}/"
            ):
                _add_state(entry.path, f"{within}{entry.name}/", state)


def _read_evaluations(folder: Path, key: str, state: FileStates) -> tuple[dict[str, Any], list[StoreProblem]]:
    """By name and then number, `saliency-8` before `saliency-10`."""

    def by_number(name: str) -> tuple[str, int]:
        stem, _, number = name.rpartition("-")
        return (stem, int(number)) if number.isdecimal() else (name, 0)

    names = {name.split("/")[1] for name in state if name.startswith(f"{EVALUATIONS}/") and name.count("/") > 1}
    evaluations: dict[str, Any] = {}
    problems: list[StoreProblem] = []
    for name in sorted(names, key=by_number):
        within, own = f"{EVALUATIONS}/{name}/", folder / EVALUATIONS / name
        try:
            record = _read_record(own, {file.removeprefix(within): at for file, at in state.items() if within in file})
            if (record["key"], record.get("evaluation")) != (key, name):
                raise damage(own, f"it is the evaluation {record.get('evaluation')!r} of run {record['key']}")
            evaluations[name] = record
        except RunProblem as error:
            problems.append(error.problem)
        except OSError as error:
            problems.append(unreadable(str(own), error).problem)
    return evaluations, problems


def _read_record(folder: Path, state: FileStates) -> dict[str, Any]:
    """What is sealed was written by `write_run`, which had checked it; the files are those that it lists."""
    _check_there(folder, RECORD, state)
    text = (folder / RECORD).read_bytes()
    sealed, seal, digest = text.rpartition(_SEAL)
    if not seal or digest != f'{hashlib.sha256(sealed).hexdigest()}"\n}}\n'.encode():
        _refuse_schema(folder, text)
        raise damage(folder, f"{RECORD} was changed after it was stored or is cut off (its SHA-256 is another)")
    record: dict[str, Any] = json.loads(text)
    _refuse_schema(folder, text)
    for name, stated in record["files"].items():
        _check_there(folder, name, state)
        if state[name][0] != stated["bytes"]:
            raise damage(folder, f"{name} must have {stated['bytes']} bytes, got {state[name][0]}")
    return record


def _refuse_schema(folder: Path, text: bytes) -> None:
    """Of a file of another version of this package, say so, whatever else it holds."""
    try:
        schema = json.loads(text)["schema"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if type(schema) is int and schema != LAYOUT:
        fact = f"{RECORD} has schema {schema}, this version reads {LAYOUT}"
        raise RunProblem(folder, "newer" if schema > LAYOUT else "older", fact)


def _check_there(folder: Path, name: str, state: FileStates) -> None:
    if name not in state:
        linked = any(path.is_symlink() for path in (folder / name, (folder / name).parent))
        raise damage(folder, f"{name} must be a file of the run itself, got a link" if linked else f"{name} is missing")


class Checksums:
    """Compares files with the checksums of their records: each once, and again when its size or time has changed."""

    def __init__(self) -> None:
        self._compared: set[tuple[Path, int, int]] = set()

    def check(self, folder: Path, name: str, record: Mapping[str, Any]) -> Path:
        """The file's path; `RunProblem` if its content is another."""
        path = folder / name
        stat = path.stat()
        which = (path, stat.st_size, stat.st_mtime_ns)
        if which not in self._compared:
            if sha256(path) != record["files"][name]["sha256"]:
                raise damage(folder, f"{name} was changed after it was stored (its SHA-256 is another)")
            self._compared.add(which)
        return path

    def trust(self, folder: Path) -> None:
        """What this process has just written and hashed need not be read again."""
        for path in folder.rglob("*"):
            stat = path.stat()
            self._compared.add((path, stat.st_size, stat.st_mtime_ns))


def sha256(path: Path) -> str:
    """Of a file's content."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def damage(folder: Path, fact: str) -> RunProblem:
    """The problem of a run, or of one of its evaluations, that is not what was stored."""
    return RunProblem(folder, "damaged", fact)


def unreadable(folder: str, error: OSError) -> RunProblem:
    """The problem of a folder that the operating system does not give us."""
    kinds: dict[type[OSError], ProblemKind] = {FileNotFoundError: "damaged", NotADirectoryError: "foreign"}
    fact = f"{error.strerror or error} ({error.filename})"
    return RunProblem(Path(folder), kinds.get(type(error), "unreadable"), fact)


def write_run(
    folder: Path,
    spec: Spec,
    record: Mapping[str, Any],
    epochs: Path | None,
    predictions: Iterable[Predictions],
    files: Mapping[str, Path],
) -> None:
    """Every file of a run into an empty folder; `record.json`, which lists them, last."""
    _check_names(files)
    if epochs is not None:
        (folder / EPOCHS).write_bytes(_read_epochs(Path(epochs)))
    for name, source in files.items():
        shutil.copyfile(source, folder / name)
    _write_record(folder, {"key": spec.key, "spec": spec.as_dict()}, checked_record(record), predictions)


def write_evaluation(folder: Path, key: str, evaluation: Evaluation) -> None:
    """Every file of an evaluation of the run with this key into a folder that is empty or new; `record.json` last."""
    _check_names(evaluation.files)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in evaluation.files.items():
        (folder / name).write_bytes(content)
    record = checked_record({**evaluation.record, "epochs": 0})
    _write_record(folder, {"key": key, "evaluation": evaluation.name}, record, evaluation.predictions)


def checked_record(record: Any) -> dict[str, Any]:
    """A record as it is stored; metrics that are not finite become "Infinity", "-Infinity" and null for NaN."""
    needed = ("metrics", "provenance", "seconds", "epochs")
    if not isinstance(record, Mapping) or (absent := [name for name in needed if name not in record]):
        lacking = f"a mapping without {', '.join(absent)}" if isinstance(record, Mapping) else type(record).__name__
        raise ValueError(f"record must be a mapping with metrics, provenance, seconds and epochs, got {lacking}")
    stored = {
        **record,
        "metrics": {
            split: {name: _metric(split, name, value) for name, value in _items(f"metrics[{split!r}]", values)}
            for split, values in _items("metrics", record["metrics"])
        },
        "provenance": dict(_items("provenance", record["provenance"])),
        "seconds": float(record["seconds"]),
        "epochs": whole("record['epochs']", record["epochs"], 0),
    }
    try:
        json.dumps(stored, allow_nan=False, ensure_ascii=False).encode()  # which refuses half a character
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"record must be what JSON can say and people can read, with finite numbers outside metrics: {error}; "
            "convert arrays and NumPy numbers with .tolist()"
        ) from None
    return stored


def stored_number(value: float) -> float | str | None:
    """What standard JSON has for a number that may not be finite."""
    return None if math.isnan(value) else _WORDS.get(value, value)


def read_number(value: Any) -> float:
    """A stored metric."""
    return math.nan if value is None else float(value)


def _metric(split: str, name: str, value: Any) -> float | str | None:
    if value is None:
        return None
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TypeError(
            f"record: metrics[{split!r}][{name!r}] must be a number, got {value!r} of type {type(value).__name__}; "
            "give each number a name of its own"
        )
    return stored_number(float(value))


def _items(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, Mapping) or any(not isinstance(key, str) for key in value):
        raise TypeError(f"record: {name} must be a mapping from names, got {value!r}")
    return value.items()


def _check_names(files: Iterable[str]) -> None:
    for name in files:
        if name in _OURS or name != os.path.basename(name) or name.startswith(".") or not name:
            raise ValueError(f"files must have plain names other than {', '.join(_OURS)}, got {name!r}; rename it")


def _read_epochs(path: Path) -> bytes:
    content = path.read_bytes()
    for number, line in enumerate(content.splitlines(), 1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        check_epoch(record, f"{path}, line {number}")
    return content


def check_epoch(record: Any, where: str) -> None:
    """Refuse the record of an epoch that reports and queries could not use."""
    if not isinstance(record, dict):
        raise ValueError(f"{where}: must be a JSON object; write one line per epoch")
    for names, is_right in ((("epoch", "lr", "seconds"), _is_number), (("train", "val", "test"), _are_metrics)):
        for name in names:
            if name in record and not is_right(record[name]):
                raise ValueError(
                    f"{where}: {name} must be a number, or for train, val and test a mapping from names to numbers, "
                    f"got {record[name]!r:.60}; give it another name"
                )


def _write_record(
    folder: Path, about: dict[str, Any], record: dict[str, Any], predictions: Iterable[Predictions]
) -> None:
    from focalcal.predictions import Predictions
    from focalcal.predictions.arrays_file import write_archive

    splits: dict[str, str] = {}
    (folder / PREDICTIONS).mkdir()
    for part in predictions:
        if not isinstance(part, Predictions):
            raise TypeError(f"predictions must be Predictions, got {type(part).__name__}")
        if part.split in splits:
            raise ValueError(f"predictions must have different splits, got {part.split!r} twice; rename or join them")
        splits[part.split] = f"{PREDICTIONS}/{split_file(part.split)}"
        with open(folder / splits[part.split], "xb") as handle:  # not `save`: the whole folder is forced to the disk
            write_archive(handle, part)
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    files = {name: {"bytes": os.path.getsize(folder / name), "sha256": sha256(folder / name)} for name in names}
    told = {name: value for name, value in record.items() if name != "schema" and name not in about}
    listed = {"schema": LAYOUT, **about, **told, "splits": splits, "files": files}
    sealed = json.dumps(listed, indent=1, allow_nan=False).encode().removesuffix(b"\n}")
    (folder / RECORD).write_bytes(sealed + _SEAL + f'{hashlib.sha256(sealed).hexdigest()}"\n}}\n'.encode())


def _are_metrics(values: Any) -> bool:
    words = (None, *_WORDS.values())
    return isinstance(values, dict) and all(_is_number(value) or value in words for value in values.values())


def _is_number(value: Any) -> bool:
    if type(value) is float:
        return not math.isinf(value)  # JSON's 1e400; infinities that are meant are words
    return type(value) is int and abs(value) <= _LARGEST
