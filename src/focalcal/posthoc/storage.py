"""Calibrators as JSON files: readable, exact in float64, and unable to run anything when read."""

from __future__ import annotations

import json
import math
import os
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.core.atomic import write_atomically

FORMAT, VERSION = "focalcal calibrator", 1
LARGEST_FILE, MOST_CLASSES = 1 << 30, 10**6  # bytes; what a file may make its reader allocate
_FIELDS = {"format", "version", "class", "params", "classes", "state"}

Decoder = Callable[[str, Any, int], Any]  # (attribute, value in the file, number of classes) -> attribute's value


@dataclass(frozen=True)
class ScoreColumns:
    """Where a table has the scores that a calibrator is for: their kind, "logits" or "probs", and the columns."""

    kind: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Stored:
    """What a file says: class name, constructor arguments, number of classes, fitted attributes."""

    name: str
    params: Mapping[str, Any]
    classes: int | None
    state: Mapping[str, Any]
    names: tuple[Any, ...] | None = None  # of the classes
    one_column: bool = False  # whether scores are those of the positive class alone
    clip: float | None = None  # of probabilities
    columns: ScoreColumns | None = None  # of the table it was fitted on

    def decoded(self, decoders: Mapping[str, Decoder]) -> dict[str, Any]:
        """The fitted attributes, each checked by its decoder."""
        if self.classes is None or set(self.state) != set(decoders):
            raise ValueError(f"it must hold the fitted {sorted(decoders)}, got {sorted(self.state)}")
        return {name: decode(name, self.state[name], self.classes) for name, decode in decoders.items()}


def content_of(stored: Stored) -> dict[str, Any]:
    """As JSON has it; infinite arguments are the text "inf", since JSON has no such number, and None is left out."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "class": stored.name,
        "params": {name: _argument(value) for name, value in stored.params.items() if value is not None},
        "classes": stored.classes,
        "state": {name: _plain(value) for name, value in stored.state.items()},
    }
    if stored.names is not None:
        content["names"] = [_plain(name) for name in stored.names]
    if stored.one_column:
        content["one_column"] = True
    if stored.clip is not None:
        content["clip"] = stored.clip
    if stored.columns is not None:
        content["columns"] = {"kind": stored.columns.kind, "names": list(stored.columns.names)}
    return content


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Strict JSON, whole or not at all."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is no folder; create it before saving {target.name} there")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; add a file name")
    write_atomically(target, json.dumps(content, allow_nan=False).encode())


def read(path: str | os.PathLike[str]) -> Stored:
    """The content of a calibrator's file, its outline checked."""
    return stored_from(read_json(path), path)


def read_json(path: str | os.PathLike[str]) -> Any:
    """The content of a file of JSON, of whatever it is."""
    try:
        return json.loads(_bytes(path).decode("utf-8"))
    except (ValueError, RecursionError, OverflowError, MemoryError) as error:
        raise ValueError(f"{path} is not a saved calibrator, or only a part of one: {error!r}") from error


def stored_from(content: Any, path: str | os.PathLike[str]) -> Stored:
    """What the content of a file says, its outline checked."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not a saved calibrator; pass a file that a calibrator's save() wrote")
    if content.get("version") != VERSION or isinstance(content["version"], bool):
        raise ValueError(
            f"{path} has version {content.get('version')!r} and this focalcal reads version {VERSION}; "
            "read it with the focalcal that wrote it, or fit and save again"
        )
    classes = content.get("classes")
    whole = classes is None or (type(classes) is int and 2 <= classes <= MOST_CLASSES)
    named = isinstance(content.get("class"), str)
    content = dict(content)
    names, one_column, clip = content.pop("names", None), content.pop("one_column", False), content.pop("clip", None)
    columns = content.pop("columns", None)
    if names is not None:
        plain = isinstance(names, list) and all(isinstance(name, str | int | float) for name in names)
        named &= plain and len(names) == classes
    named &= one_column is False or (one_column is True and classes == 2)
    if (
        set(content) != _FIELDS
        or not whole
        or not named
        or not all(isinstance(content[f], dict) for f in ("params", "state"))
    ):
        raise ValueError(
            f"{path} is damaged: it must hold {sorted(_FIELDS)} with 2 to {MOST_CLASSES} classes, "
            f"got {reprlib.repr(sorted(content))} with {reprlib.repr(classes)}"
        )
    if beyond := [name for name, value in content["params"].items() if value in (math.inf, -math.inf)]:
        raise ValueError(f"{path} is damaged: {beyond[0]} must be within the range of float64, got a number beyond it")
    params = {name: math.inf if value == "inf" else value for name, value in content["params"].items()}
    names = None if names is None else tuple(names)
    places = None if columns is None else _score_columns(columns, path)
    return Stored(content["class"], params, classes, content["state"], names, one_column, clip, places)


def _score_columns(content: Any, path: str | os.PathLike[str]) -> ScoreColumns:
    names = content.get("names") if isinstance(content, dict) else None
    named = isinstance(names, list) and len(names) > 0 and all(isinstance(name, str) for name in names)
    if names is None or not named or set(content) != {"kind", "names"} or content["kind"] not in ("logits", "probs"):
        raise ValueError(
            f"{path} is damaged: columns must hold a kind, logits or probs, and names, got {reprlib.repr(content)}"
        )
    return ScoreColumns(content["kind"], tuple(names))


def _bytes(path: str | os.PathLike[str]) -> bytes:
    with open(Path(path), "rb") as handle:  # a number would be taken for an open file
        content = handle.read(LARGEST_FILE + 1) if os.fstat(handle.fileno()).st_size <= LARGEST_FILE else b""
    if not content or len(content) > LARGEST_FILE:
        raise ValueError(f"it must have 1 to {LARGEST_FILE} bytes")
    return content


def number(name: str, value: Any, classes: int) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < math.inf:
        raise ValueError(f"{name} must be a finite number, got {reprlib.repr(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a finite number, got one above 1e308") from None


def _number_that(holds: Callable[[float], bool], rule: str) -> Decoder:
    def decode(name: str, value: Any, classes: int) -> float:
        if not holds(found := number(name, value, classes)):
            raise ValueError(f"{name} must be {rule}, got {value!r}")
        return found

    return decode


positive = _number_that(lambda value: value > 0, "positive")
nonnegative = _number_that(lambda value: value >= 0, ">= 0")
share = _number_that(lambda value: 0 <= value <= 1, "from 0 to 1")


def count(name: str, value: Any, classes: int) -> int:
    """A whole number >= 0."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{name} must be a whole number >= 0, got {reprlib.repr(value)}")
    return value


def _of_type(kind: type, rule: str) -> Decoder:
    def decode(name: str, value: Any, classes: int) -> Any:
        if not isinstance(value, kind):
            raise ValueError(f"{name} must be {rule}, got {reprlib.repr(value)}")
        return value

    return decode


flag, word = _of_type(bool, "true or false"), _of_type(str, "text")


def vector(name: str, value: Any, classes: int) -> Any:
    """K finite numbers."""
    return _array(name, value, (classes,))


def matrix(name: str, value: Any, classes: int) -> Any:
    """K rows of K finite numbers."""
    return _array(name, value, (classes, classes))


def wide_matrix(name: str, value: Any, classes: int) -> Any:
    """K rows of K finite numbers, or of 2 K."""
    wide = isinstance(value, list) and value and isinstance(value[0], list) and len(value[0]) == 2 * classes
    return _array(name, value, (classes, classes * (1 + bool(wide))))


def curves(name: str, value: Any, classes: int) -> list[Any]:
    """For each class any number of values in [0, 1]."""
    if not isinstance(value, list) or len(value) != classes:
        raise ValueError(f"{name} must have one list per class, {classes} of them")
    arrays = [_array(name, row, (len(row) if isinstance(row, list) else 0,)) for row in value]
    if any(len(a) == 0 or a.min() < 0 or a.max() > 1 for a in arrays):
        raise ValueError(f"{name} must hold numbers in [0, 1], at least one a class")
    return arrays


def rising_curves(name: str, value: Any, classes: int) -> list[Any]:
    """For each class values in [0, 1] that never fall."""
    arrays = curves(name, value, classes)
    if any((np.diff(a) < 0).any() for a in arrays):
        raise ValueError(f"{name} must not fall within a class")
    return arrays


def curve(name: str, value: Any, classes: int) -> Any:
    """Any number of values in [0, 1]."""
    return curves(name, [value], 1)[0]


def rising_curve(name: str, value: Any, classes: int) -> Any:
    """Values in [0, 1] that never fall."""
    return rising_curves(name, [value], 1)[0]


def amounts(name: str, value: Any, classes: int) -> Any:
    """Any number of values >= 0, or none."""
    found = _array(name, value, (len(value) if isinstance(value, list) else 0,)) if value != [] else np.zeros(0)
    if (found < 0).any():
        raise ValueError(f"{name} must hold numbers >= 0, got {reprlib.repr(value)}")
    return found


def mixture(name: str, value: Any, classes: int) -> Any:
    """Three weights >= 0 that sum to one."""
    weights = _array(name, value, (3,))
    if weights.min() < 0 or abs(weights.sum() - 1) > 1e-9:
        raise ValueError(f"{name} must be >= 0 and sum to one, got {value}")
    return weights


def calibrator(name: str, value: Any, classes: int) -> Any:
    """A fitted calibrator of as many classes, as its own file would hold it."""
    from focalcal.posthoc import restored  # the table of calibrators is above this file

    inner = restored(stored_from(value, name), name)
    if getattr(inner, "n_features_in_", None) != classes:
        raise ValueError(f"{name} must be of {classes} classes")
    return inner


def calibrators(name: str, value: Any, classes: int) -> Any:
    """Several of them."""
    if not isinstance(value, list) or not value:
        raise ValueError(f"{name} must be a list of calibrators, got {reprlib.repr(value)}")
    return [calibrator(name, each, classes) for each in value]


def _array(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    try:
        array = np.array(value)
    except (ValueError, OverflowError, RecursionError):  # ragged, or nested without end
        array = np.array(None)
    if array.dtype.kind not in "fi" or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}, got {array.dtype} of shape {array.shape}")
    return array.astype(np.float64)


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, float) and value == math.inf:
        return "inf"
    if hasattr(value, "record"):
        return value.record()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _argument(value: Any) -> Any:
    """A constructor's argument: text, a whole number or a truth value as it is, other numbers as a float."""
    value = value.item() if isinstance(value, np.generic) else value
    number = value if isinstance(value, (str, int)) else float(value)
    return "inf" if number == math.inf else number
