"""Writing the files of a run, from values that are checked first; `run_folder` reads them."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from focalcal.core.checks import whole
from focalcal.lab.store.keys import SCHEMA
from focalcal.lab.store.layout import (
    EPOCHS,
    EVALUATIONS,
    FILES,
    LAYOUT,
    PREDICTIONS,
    RESULT,
    SPEC,
    json_bytes,
    split_file,
)
from focalcal.lab.store.run_folder import sha256, wrong_epoch_fields
from focalcal.lab.store.spec import Evaluation, Spec
from focalcal.predictions import Predictions
from focalcal.predictions.arrays_file import write_archive

_OURS = (SPEC, RESULT, EPOCHS, FILES, PREDICTIONS, EVALUATIONS)
_WORDS = {math.inf: "Infinity", -math.inf: "-Infinity"}


def write_run(
    folder: Path,
    spec: Spec,
    record: Mapping[str, Any],
    epochs: Path | None,
    predictions: Iterable[Predictions],
    files: Mapping[str, Path],
) -> None:
    """Every file of a run into an empty folder; `files.json`, which lists them, last."""
    _check_names(files)
    (folder / SPEC).write_bytes(json_bytes({"schema": SCHEMA, **spec.as_dict()}))
    (folder / RESULT).write_bytes(json_bytes(stored_record(record)))
    if epochs is not None:
        (folder / EPOCHS).write_bytes(_read_epochs(Path(epochs)))
    for name, source in files.items():
        shutil.copyfile(source, folder / name)
    _write_manifest(folder, {"key": spec.key}, _write_predictions(folder, predictions))


def write_evaluation(folder: Path, key: str, evaluation: Evaluation) -> None:
    """Every file of an evaluation of the run with this key into a folder that is empty or new; `files.json` last."""
    _check_names(evaluation.files)
    folder.mkdir(parents=True, exist_ok=True)
    record = stored_record({**evaluation.record, "epochs": 0})
    (folder / RESULT).write_bytes(json_bytes({name: value for name, value in record.items() if name != "epochs"}))
    for name, content in evaluation.files.items():
        (folder / name).write_bytes(content)
    about = {"key": key, "evaluation": evaluation.name}
    _write_manifest(folder, about, _write_predictions(folder, evaluation.predictions))


def stored_record(record: Any) -> dict[str, Any]:
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
        json.dumps(stored, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"record must be what JSON can say, with finite numbers outside metrics: {error}; "
            "convert arrays and NumPy numbers with .tolist()"
        ) from None
    return stored


def stored_number(value: float) -> float | str | None:
    """What standard JSON has for a number that may not be finite; `run_folder.read_number` reads it."""
    return None if math.isnan(value) else _WORDS.get(value, value)


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
        if not isinstance(record, dict):
            raise ValueError(
                f"{path}, line {number}: must be a JSON object, got {line[:60]!r}; write one line per epoch"
            )
        check_epoch(record, f"{path}, line {number}")
    return content


def check_epoch(record: Mapping[str, Any], where: str) -> None:
    """Refuse the record of an epoch that could not be read again."""
    if wrong := wrong_epoch_fields(record):
        raise ValueError(
            f"{where}: {wrong[0]} must be a number, or for train, val and test a mapping from names to numbers, "
            f"got {record[wrong[0]]!r:.60}; give it another name"
        )


def _write_predictions(folder: Path, predictions: Iterable[Predictions]) -> dict[str, str]:
    """The file of each split, by the split."""
    files: dict[str, str] = {}
    (folder / PREDICTIONS).mkdir()
    for part in predictions:
        if not isinstance(part, Predictions):
            raise TypeError(f"predictions must be Predictions, got {type(part).__name__}")
        name = f"{PREDICTIONS}/{split_file(part.split)}"
        if (folder / name).exists():
            raise ValueError(f"predictions must have different splits, got {part.split!r} twice; rename or join them")
        with open(folder / name, "xb") as handle:  # not `save`: the whole folder is forced to the disk at once
            write_archive(handle, part)
        files[part.split] = name
    return files


def _write_manifest(folder: Path, about: Mapping[str, str], splits: Mapping[str, str]) -> None:
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    files = {name: {"bytes": os.path.getsize(folder / name), "sha256": sha256(folder / name)} for name in names}
    (folder / FILES).write_bytes(json_bytes({"schema": LAYOUT, **about, "splits": splits, "files": files}))
