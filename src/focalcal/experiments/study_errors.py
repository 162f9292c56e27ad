"""What is wrong with a study, all of it at once, each fault with its line and key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from focalcal.experiments.toml_lines import Path, line_of

T = TypeVar("T")


@dataclass(frozen=True)
class Fault:
    """What is wrong, and the path of the key, such as ("settings", 0, "optimizer", "lr")."""

    path: Path
    message: str


class StudyError(ValueError):
    """A study that cannot be run. Its text has a line a fault: `file.toml:LINE: key: what, got, remedy`."""

    def __init__(self, faults: Sequence[Fault], file: str, lines: Mapping[Path, int]) -> None:
        found = {(line_of(fault.path, lines), _shown(fault.path, lines), fault.message) for fault in faults}
        super().__init__(
            "\n".join(f"{file}:{line}: {f'{key}: ' if key else ''}{text}" for line, key, text in sorted(found))
        )
        self.faults = tuple(faults)
        self.file = file


def attempt(make: Callable[[dict[str, Any]], T], values: Mapping[str, Any], path: Path) -> tuple[T, list[Fault]]:
    """`make(values)` and no fault; or a fault for each value that `make` refuses, and what the others make.

    `make({})` must work. The guilty value is the one that is refused alone with the same words, or else the one without
    which the rest is accepted; where neither is found, every value is dropped and the fault is that of the whole.
    """
    left = dict(values)
    faults: list[Fault] = []
    while True:
        try:
            return make(left), faults
        except (TypeError, ValueError) as error:
            key = _guilty(make, left, error)
            if key is None:
                faults.append(Fault(path, _one_line(error)))
                return make({}), faults
            faults += _within(make, left, key, path) or [Fault((*path, key), _one_line(error))]
            del left[key]


def _within(make: Callable[[dict[str, Any]], Any], values: dict[str, Any], key: str, path: Path) -> list[Fault]:
    """The faults of a table's own keys, if that is where they lie: alone, or beside the other values."""
    if isinstance(values[key], Mapping):
        others: dict[str, Any]
        for others in ({}, {name: value for name, value in values.items() if name != key}):
            beside = partial(_beside, make, others, key)
            if _refusal(beside, {}) is None and _refusal(beside, values[key]) is not None:
                return attempt(beside, values[key], (*path, key))[1]
    return []


def _beside(make: Callable[[dict[str, Any]], T], others: Mapping[str, Any], key: str, inner: Mapping[str, Any]) -> T:
    return make({**others, key: inner})


def _guilty(make: Callable[[dict[str, Any]], Any], values: dict[str, Any], error: Exception) -> str | None:
    for key in values:
        if _refusal(make, {key: values[key]}) == _one_line(error):
            return key
    for key in values:
        if _refusal(make, {name: value for name, value in values.items() if name != key}) is None:
            return key
    return None


def _refusal(make: Callable[[dict[str, Any]], Any], values: dict[str, Any]) -> str | None:
    try:
        make(values)
    except (TypeError, ValueError) as error:
        return _one_line(error)
    return None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _shown(path: Path, lines: Mapping[Path, int]) -> str:
    while path and isinstance(path[-1], int) and path not in lines and lines:
        path = path[:-1]  # a single name where a list is allowed
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
