"""Writing the files of a run, from values that are checked first."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from focalcal.core.primitives import whole
from focalcal.predictions import Predictions
from focalcal.predictions.arrays_file import write_archive
from focalcal.results.keys import SCHEMA
from focalcal.results.layout import (
    EPOCHS,
    EVALUATIONS,
    FILES,
    LAYOUT,
    PREDICTIONS,
    RESULT,
    SPEC,
    is_evaluation,
    json_bytes,
    split_file,
)
from focalcal.results.run_folder import sha256
from focalcal.results.spec import Spec

_OURS = (SPEC, RESULT, EPOCHS, FILES, PREDICTIONS, EVALUATIONS)
_WORDS = {math.inf: "Infinity", -math.inf: "-Infinity"}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What came out of evaluating a trained network on more than its own splits.

    name         that of its folder: letters, digits, ".", "_" and "-"
    record       {"metrics": {split: {metric: number}}, "provenance": {...}, "seconds": number}
    predictions  of splits that the run does not have
    files        others to keep, by the name they get
    """

    name: str
    record: Mapping[str, Any]
    predictions: Iterable[Predictions] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be a folder's name."""
        if not is_evaluation(self.name):
            raise ValueError(
                "an evaluation's name must be at most 100 letters, digits, '.', '_' and '-', and not begin with '.' or "
                f"'-', got {self.name!r}; choose another"
            )


def checked_record(record: Any) -> dict[str, Any]:
    """A record as it is stored; metrics that are not finite become "Infinity", "-Infinity" and null for NaN."""
    if not isinstance(record, Mapping) or (missing := _absent(record)):
        lacking = f"a mapping without {', '.join(missing)}" if isinstance(record, Mapping) else type(record).__name__
        raise ValueError(f"record must be a mapping with metrics, provenance, seconds and epochs, got {lacking}")
    found = {
        **record,
        "metrics": {
            split: {name: _stored_number(split, name, value) for name, value in _mapping(f"metrics[{split!r}]", one)}
            for split, one in _mapping("metrics", record["metrics"])
        },
        "provenance": dict(_mapping("provenance", record["provenance"])),
        "seconds": float(record["seconds"]),
        "epochs": whole("record['epochs']", record["epochs"], 0),
    }
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"record must be what JSON can say, with finite numbers outside metrics: {error}; "
            "convert arrays and NumPy numbers with .tolist()"
        ) from None
    return found


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
    (folder / RESULT).write_bytes(json_bytes(checked_record(record)))
    if epochs is not None:
        (folder / EPOCHS).write_bytes(_checked_epochs(Path(epochs)))
    for name, source in files.items():
        shutil.copyfile(source, folder / name)
    _write_list(folder, {"key": spec.key}, _write_predictions(folder, predictions))


def write_evaluation(folder: Path, key: str, evaluation: Evaluation) -> None:
    """Every file of an evaluation of the run with this key into an empty folder; `files.json` last."""
    _check_names(evaluation.files)
    stored = checked_record({**evaluation.record, "epochs": 0})
    (folder / RESULT).write_bytes(json_bytes({name: value for name, value in stored.items() if name != "epochs"}))
    for name, content in evaluation.files.items():
        (folder / name).write_bytes(content)
    _write_list(folder, {"key": key, "evaluation": evaluation.name}, _write_predictions(folder, evaluation.predictions))


def _check_names(files: Iterable[str]) -> None:
    for name in files:
        if name in _OURS or name != os.path.basename(name) or name.startswith(".") or not name:
            raise ValueError(f"files must have plain names other than {', '.join(_OURS)}, got {name!r}; rename it")


def _write_list(folder: Path, about: Mapping[str, str], splits: Mapping[str, str]) -> None:
    listed = {name: {"bytes": os.path.getsize(folder / name), "sha256": sha256(folder / name)} for name in _all(folder)}
    (folder / FILES).write_bytes(json_bytes({"schema": LAYOUT, **about, "splits": splits, "files": listed}))


def _write_predictions(folder: Path, predictions: Iterable[Predictions]) -> dict[str, str]:
    splits: dict[str, str] = {}
    (folder / PREDICTIONS).mkdir()
    for one in predictions:
        if not isinstance(one, Predictions):
            raise TypeError(f"predictions must be Predictions, got {type(one).__name__}")
        name = f"{PREDICTIONS}/{split_file(one.split)}"
        if (folder / name).exists():
            raise ValueError(f"predictions must have different splits, got {one.split!r} twice; rename or join them")
        with open(folder / name, "xb") as handle:  # not `save`: the whole folder is forced to the disk at once
            write_archive(handle, one)
        splits[one.split] = name
    return splits


def _checked_epochs(path: Path) -> bytes:
    content = path.read_bytes()
    for number, line in enumerate(content.splitlines(), 1):
        try:
            right = isinstance(json.loads(line), dict)
        except ValueError:
            right = False
        if not right:
            raise ValueError(
                f"{path}, line {number}: must be a JSON object, got {line[:60]!r}; write one line an epoch"
            )
    return content


def _all(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _absent(record: Mapping[str, Any]) -> list[str]:
    return [name for name in ("metrics", "provenance", "seconds", "epochs") if name not in record]


def _mapping(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, Mapping) or any(not isinstance(key, str) for key in value):
        raise TypeError(f"record: {name} must be a mapping from names, got {value!r}")
    return value.items()


def _stored_number(split: str, name: str, value: Any) -> float | str | None:
    if value is None or isinstance(value, bool | str) or not hasattr(value, "__float__"):
        if value is None:
            return None
        raise TypeError(
            f"record: metrics[{split!r}][{name!r}] must be a number, got {value!r} of type {type(value).__name__}; "
            "give each number a name of its own"
        )
    number = float(value)
    return None if math.isnan(number) else _WORDS.get(number, number)
