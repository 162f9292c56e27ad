"""What is wrong in a store, as objects: of which run, of what kind, with the facts; `str` says it in one line.

Why runs failed is kept too: the last failure of each, as a small file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from focalcal.core.atomic import write_atomically
from focalcal.core.checks import text
from focalcal.lab.store.layout import EVALUATIONS, is_key, json_bytes, now

if TYPE_CHECKING:
    from focalcal.lab.store.spec import Spec

ProblemKind = Literal["damaged", "foreign", "newer", "older", "unreadable", "set aside", "left out", "no failure"]
_REMEDIES: dict[ProblemKind, str] = {
    "damaged": "run it again (the folder is then set aside), or remove it with `focalcal runs rm`",
    "foreign": "move this elsewhere",
    "newer": "install a newer focalcal to read it",
    "older": "read it with the focalcal that made it, or run it again",
    "unreadable": "check its permissions and its disk",
    "set aside": "delete the folder when you have looked at it",
    "no failure": "delete it",
}
_EVALUATE_AGAIN = "evaluate it again with `focalcal evaluate` (the folder is then set aside); the run itself is whole"
_FAILURE_FIELDS = {"key", "spec", "kind", "message", "details", "time"}
_NAMED_BY = {"data_set", "model", "objective", "objective_options", "seed"}  # of a spec


@dataclass(frozen=True)
class StoreProblem:
    """Something in a store that cannot be used; it is left as it is. `fact` says what is wrong with it.

    damaged     a run of which a file is missing, cut off, changed, or not that of its folder's name
    foreign     not a run
    newer       a run of a schema that this version does not know; `older` likewise
    unreadable  the operating system does not let us read it
    set aside   a damaged run that has been run again since
    left out    a whole run of a spec that this version does not understand
    no failure  something else in the place of a failure's record

    Args:
        path: of the file or folder.
        kind: one of the above.
        fact: what is wrong with it.

    >>> StoreProblem(Path("runs/ab12"), "foreign", "has no record.json").kind
    'foreign'
    """

    path: Path
    kind: ProblemKind
    fact: str

    @property
    def key(self) -> str | None:
        """Of the run whose folder, evaluation or failure it is; None for what is no run's."""
        names = (part.partition(".")[0] for part in reversed(self.path.parts[-3:]))
        return next((name for name in names if is_key(name)), None)

    @property
    def evaluation(self) -> str | None:
        """Of a run, whose folder it is; None for what is none."""
        return self.path.name if self.path.parent.name == EVALUATIONS else None

    @property
    def message(self) -> str:
        """What is wrong, and what to do about it."""
        again = self.kind == "damaged" and self.evaluation is not None
        remedy = _EVALUATE_AGAIN if again else _REMEDIES.get(self.kind)
        return self.fact if remedy is None else f"{self.fact}; {remedy}"

    def __str__(self) -> str:
        """One line."""
        return f"{self.path}: {self.kind}: {self.message}"


class RunProblem(ValueError):
    """A run that cannot be used: its `problem` is why."""

    def __init__(self, path: Path, kind: ProblemKind, fact: str) -> None:
        self.problem = StoreProblem(path, kind, fact)
        super().__init__(f"{path}: {self.problem.message}")


@dataclass(frozen=True)
class Disagreement:
    """Two stores that hold one run, called `name`, with different metrics: `values` of the first that differs."""

    key: str
    name: str
    used: Path
    other: Path
    split: str
    metric: str
    values: tuple[float | None, float | None]

    def __str__(self) -> str:
        """One line."""
        where = f"{self.split} {self.metric} {self.values[0]} and {self.values[1]}"
        return (
            f"{self.name} ({self.key[:12]}): {self.used} and {self.other} hold different results ({where}); "
            "the first is used"
        )


@dataclass(frozen=True)
class RunFailure:
    """A spec whose last attempt failed and that no store has a run of."""

    key: str
    kind: str
    message: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.key[:12]}  failed ({self.kind}): {' '.join(self.message.split())}"


StoreFinding = StoreProblem | Disagreement | RunFailure


def write_failure(folder: Path, spec: Spec, kind: str, message: str, details: Mapping[str, Any]) -> None:
    """Keep a failure, whatever the details are: what JSON cannot say is kept as text."""
    record = {
        "key": spec.key,
        "spec": spec.as_dict(),
        "kind": text("kind", kind),
        "message": str(message),
        "details": json.loads(json.dumps(dict(details), default=str), parse_constant=str),
        "time": now(),
    }
    write_atomically(folder / f"{spec.key}.json", json_bytes(record))


def read_failures(folder: Path) -> tuple[list[dict[str, Any]], list[StoreProblem]]:
    """Every failure by key, and the files that are none."""
    failures, problems = [], []
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder)):
            if not name.startswith("."):
                failure = _read_failure(folder / name)
                if failure is not None:
                    failures.append(failure)
                elif os.path.lexists(folder / name):  # else its run was stored meanwhile
                    problems.append(StoreProblem(folder / name, "no failure", "must be a failure's record in JSON"))
    return failures, problems


def clear_failure(folder: Path, key: str) -> None:
    """Forget the failure of a run."""
    with suppress(FileNotFoundError):
        (folder / f"{key}.json").unlink()


def _read_failure(path: Path) -> dict[str, Any] | None:
    try:
        failure = None if path.is_symlink() else json.loads(path.read_bytes())
        if not isinstance(failure, dict) or not failure.keys() >= _FAILURE_FIELDS or not is_key(path.stem):
            return None
        spec = failure["spec"]
        if failure["key"] != path.stem or not isinstance(spec, dict) or not spec.keys() >= _NAMED_BY:
            return None
        if not isinstance(spec["objective_options"], dict) or not isinstance(failure["message"], str):
            return None
        return failure
    except (ValueError, RecursionError, OSError):
        return None
