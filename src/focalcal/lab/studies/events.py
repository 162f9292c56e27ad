"""What a grid tells while it runs: Examined; then of each cell Started, any number of Progress, Finished or Failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from focalcal.lab.store import Spec


@dataclass(frozen=True)
class Examined:
    """The store was looked at, and these cells are to be run."""

    missing: Sequence[Spec]


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


Event = Examined | Started | Progress | Finished | Failed
OnEvent = Callable[[Event], None]
Report = Callable[[Progress], None]


class RunProgress:
    """Tells `report`, if there is one, how far the run with this key is.

    In epochs, and one more for predictions, metrics and storing.
    """

    def __init__(self, key: str, epochs: int, report: Report | None) -> None:
        self._key, self._epochs, self._report = key, epochs, report

    def step(self, done: int, of: int) -> None:
        """So many training steps."""
        reached = self._epochs * done / of
        self._tell(reached, f"epoch {min(int(reached) + 1, self._epochs)} of {self._epochs}")

    def count_splits(self, pieces: int) -> Callable[[str], None]:
        """To be called after each of so many splits, with its name; the storing is one piece of work more."""
        done = 0

        def count(split: str) -> None:
            nonlocal done
            done += 1
            self._tell(self._epochs + done / (pieces + 1), f"predicted {split}")

        return count

    def end(self, note: str) -> None:
        """Everything."""
        self._tell(self._epochs + 1.0, note)

    def _tell(self, done: float, note: str) -> None:
        if self._report is not None:
            self._report(Progress(self._key, done, self._epochs + 1.0, note))
