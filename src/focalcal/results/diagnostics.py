"""What is wrong with something in a store: named, explained, with a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from focalcal.results.layout import EVALUATIONS, is_key

AGAIN = "run it again (the folder is then set aside), or remove it with `focalcal runs rm`"
EVALUATE_AGAIN = "evaluate it again with `focalcal evaluate` (the folder is then set aside); the run itself is whole"
Kind = Literal["damaged", "foreign", "newer", "older", "unreadable", "set aside", "left out"]


@dataclass(frozen=True)
class Problem:
    """Something in a store that cannot be used; it is left as it is.

    damaged     a run of which a file is missing, cut off, changed, or not that of its folder's name
    foreign     not a run
    newer       a run of a schema that this version does not know; `older` likewise
    unreadable  the operating system does not let us read it
    set aside   a damaged run that has been run again since
    left out    a whole run of a spec that this version does not understand
    """

    path: Path
    kind: Kind
    message: str

    @property
    def key(self) -> str | None:
        """Of the run whose folder, evaluation or failure it is; None for what is no run's."""
        names = (part.partition(".")[0] for part in reversed(self.path.parts[-3:]))
        return next((name for name in names if is_key(name)), None)

    def __str__(self) -> str:
        """One line."""
        return f"{self.path}: {self.kind}: {self.message}"


class RunProblem(ValueError):
    """A run that cannot be used, and why."""

    def __init__(self, path: Path, kind: Kind, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.problem = Problem(path, kind, message)


def damaged(folder: Path, what: str) -> RunProblem:
    """The problem of a run, or of one of its evaluations, that is not what was stored."""
    remedy = EVALUATE_AGAIN if folder.parent.name == EVALUATIONS else AGAIN
    return RunProblem(folder, "damaged", f"{what}; {remedy}")
