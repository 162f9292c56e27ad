"""What a grid tells while it runs. Of one cell: Started, then any number of Progress, then Finished or Failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from focalcal.results import Spec


@dataclass(frozen=True)
class Progress:
    """`done` of `of`, in whatever unit the cell counts; the note is a few words to show."""

    key: str
    done: float
    of: float
    note: str = ""


@dataclass(frozen=True)
class _OfCell:
    spec: Spec

    @property
    def key(self) -> str:
        """Of the cell's spec."""
        return self.spec.key


@dataclass(frozen=True)
class Started(_OfCell):
    """The cell has a process, or is waited for while another process works on it."""


@dataclass(frozen=True)
class Finished(_OfCell):
    """The cell's run is in the store; seconds since it started, waiting for another process included."""

    seconds: float


@dataclass(frozen=True)
class Failed(_OfCell):
    """The cell has no run; the store has the whole record.

    kind     "error" (an exception), "out of memory", "non-finite loss" or "killed" (the process died without a word)
    message  a line or two
    """

    kind: str
    message: str


Event = Started | Progress | Finished | Failed
OnEvent = Callable[[Event], None]
