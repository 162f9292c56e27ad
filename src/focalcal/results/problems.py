"""What is wrong with something in a store: named, explained, with a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["damaged", "foreign", "newer", "older", "unreadable", "set aside"]


@dataclass(frozen=True)
class Problem:
    """Something in a store that cannot be used; it is left as it is.

    damaged     a run of which a file is missing, cut off, changed, or not that of its folder's name
    foreign     not a run
    newer       a run of a schema that this version does not know; `older` likewise
    unreadable  the operating system does not let us read it
    set aside   a damaged run that has been run again since
    """

    path: Path
    kind: Kind
    message: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.path}: {self.kind}: {self.message}"


class RunProblem(ValueError):
    """A run that cannot be used, and why."""

    def __init__(self, path: Path, kind: Kind, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.problem = Problem(path, kind, message)
