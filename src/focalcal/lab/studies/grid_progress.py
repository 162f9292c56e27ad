"""How far a grid is: what its events add up to, for whoever shows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from focalcal.lab.studies.events import Event, Examined, Failed, Finished, Progress, Started

if TYPE_CHECKING:
    from focalcal.lab.store import Spec


@dataclass(frozen=True)
class RunningCell:
    """A cell that has a process; `share` of it is done."""

    spec: Spec
    share: float = 0.0
    note: str = "loading"


class GridProgress:
    """Told every event of a grid.

    cells    that are to be run, of all rounds so far
    ended    how many of them are finished or failed
    running  the others that were started, by key
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.cells = self.ended = 0
        self.running: dict[str, RunningCell] = {}
        self._clock, self._started = clock, clock()

    def __call__(self, event: Event) -> None:
        """Count it."""
        if isinstance(event, Examined):
            self.cells = self.ended + len(event.missing)  # a grid may have several rounds
        elif isinstance(event, Started):
            self.running[event.key] = RunningCell(event.spec)
        elif isinstance(event, Progress):
            if event.key in self.running:
                share = event.done / event.of if event.of else 0.0
                self.running[event.key] = RunningCell(self.running[event.key].spec, share, event.note)
        elif isinstance(event, Finished | Failed):
            self.ended += 1
            self.running.pop(event.key, None)

    @property
    def done(self) -> float:
        """In cells, shares of running ones included."""
        return self.ended + sum(cell.share for cell in tuple(self.running.values()))

    @property
    def seconds(self) -> float:
        """Since this object was made."""
        return self._clock() - self._started

    @property
    def seconds_left(self) -> float | None:
        """If the rest goes as fast as all of it so far; None before anything is done."""
        done = self.done
        return self.seconds * max(0.0, self.cells - done) / done if done > 0 else None
