"""The JSON of a run, read with suspicion: one strange file is a `RunProblem` of its run, and of no other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from focalcal.results.diagnostics import RunProblem, damaged
from focalcal.results.layout import RESULT, SPEC

GLANCE = ("data_set", "model", "objective", "objective_options", "seed")
_FIELDS = {**dict.fromkeys(GLANCE[:3], str), "objective_options": dict, "seed": int, "training": dict, "protocol": dict}
_DEEPEST = 50  # levels of JSON; a run of ours has fewer than ten
_LARGEST = 2**53  # of whole numbers: beyond it floats, and so tables and keys, do not tell them apart


def parsed(folder: Path, name: str, text: bytes) -> dict[str, Any]:
    """The JSON object in a text; `RunProblem` for anything that no run of ours has."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise damaged(folder, f"{name} must be whole JSON, got {len(text)} bytes that are not: {error}") from None
    except RecursionError:
        raise damaged(folder, f"{name} must be JSON of at most {_DEEPEST} levels, got far more") from None
    if not isinstance(found, dict):
        raise damaged(folder, f"{name} must be a JSON object, got {type(found).__name__}")
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _inside(one)]
    if level:
        raise damaged(folder, f"{name} must be JSON of at most {_DEEPEST} levels, got more")
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise damaged(folder, f"{name} must be text that can be printed, got half a character") from None
    return found


def check_schema(folder: Path, name: str, found: Mapping[str, Any], oldest: int, newest: int) -> None:
    """Refuse a file of a version of this package that this one does not read, with the numbers."""
    schema = found.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise damaged(folder, f"{name} must state its schema, got {schema!r}")
    reads = f"this version reads {newest if oldest == newest else f'{oldest} to {newest}'}"
    if schema > newest:
        raise RunProblem(folder, "newer", f"{name} has schema {schema}, {reads}; install a newer focalcal to read it")
    if schema < oldest:
        remedy = "read it with the focalcal that made it, or run it again"
        raise RunProblem(folder, "older", f"{name} has schema {schema}, {reads}; {remedy}")


def check_spec(folder: Path, spec: Mapping[str, Any]) -> None:
    """That the fields are there and of the right kind."""
    if absent := [name for name in _FIELDS if name not in spec]:
        raise damaged(folder, f"{SPEC} must have {', '.join(absent)}")
    for name, kind in _FIELDS.items():
        if type(spec[name]) is not kind:
            raise damaged(folder, f"{name} in {SPEC} must be of type {kind.__name__}, got {spec[name]!r:.60}")
    for name, value in {"seed": spec["seed"], **spec["objective_options"]}.items():
        if type(value) is int and not _is_number(value):
            raise damaged(folder, f"{name} in {SPEC} must be a number up to 2**53, got a larger one")


def check_record(folder: Path, record: Mapping[str, Any], *, trained: bool = True) -> None:
    """That there are numbers where numbers belong; the record of an evaluation, not `trained`, has no epochs."""
    metrics = record.get("metrics")
    right = {
        "metrics": isinstance(metrics, dict) and all(map(_are_metrics, metrics.values())),
        "provenance": isinstance(record.get("provenance"), dict),
        "seconds": _is_number(record.get("seconds")),
        "epochs": not trained or (type(record.get("epochs")) is int and _is_number(record["epochs"])),
    }
    if wrong := [name for name, one in right.items() if not one]:
        rule = "metrics (numbers by split and name), provenance, seconds and epochs (numbers)"
        raise damaged(folder, f"{RESULT} must hold {rule}, got other {', '.join(wrong)}")


def checked_epoch(folder: Path, name: str, line: bytes) -> dict[str, Any]:
    """The record of an epoch; numbers where reports and queries count on them."""
    record = parsed(folder, name, line)
    wrong: list[str] = [one for one in ("epoch", "lr", "seconds") if one in record and not _is_number(record[one])]
    wrong += [one for one in ("train", "val", "test") if one in record and not _are_metrics(record[one])]
    if wrong:
        raise damaged(folder, f"{name} must have numbers for {wrong[0]}, got {record[wrong[0]]!r:.60}")
    return record


def _are_metrics(values: Any) -> bool:
    words = (None, "Infinity", "-Infinity")
    return isinstance(values, dict) and all(_is_number(one) or one in words for one in values.values())


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= _LARGEST)


def _inside(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value
