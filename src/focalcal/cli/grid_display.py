"""A grid's progress on stderr: in a terminal a bar for each running cell and one for all, elsewhere lines only."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from focalcal.cli.progress import progress_text
from focalcal.core.extras import required
from focalcal.experiments.events import Event, Examined, Failed, Finished, Progress, Started


class GridDisplay:
    """Told every event of a grid whose cells have these names, by key; nothing is shown before the first."""

    def __init__(self, names: Mapping[str, str], console: Any, bars: Any) -> None:
        self._names, self._console, self._bars = names, console, bars
        self._cells = 0  # that are to be run
        self._started = time.monotonic()
        self._shares: dict[str, float] = {}
        self._tasks: dict[str, Any] = {}
        self._ended = 0
        self._whole = bars.add_task("starting", total=None, state="", visible=False)

    def __call__(self, event: Event) -> None:
        """Show it."""
        if isinstance(event, Examined):
            self._cells = self._ended + len(event.missing)  # a grid may have several rounds
            self._bars.update(self._whole, total=self._cells, visible=True)
        elif isinstance(event, Started):
            self._tasks[event.key] = self._bars.add_task(self._names[event.key], total=1.0, state="loading")
        elif isinstance(event, Progress):
            self._shares[event.key] = event.done / event.of if event.of else 0.0
            if event.key in self._tasks:
                self._bars.update(self._tasks[event.key], completed=self._shares[event.key], state=event.note)
        elif isinstance(event, Finished | Failed):
            self._end(event)
        done = self._ended + sum(self._shares.values())
        so_far = progress_text(done, self._cells, time.monotonic() - self._started)
        # in the column of the names, which is the last to be cut off where the terminal is narrow
        self._bars.update(self._whole, completed=done, description=f"{self._ended} of {self._cells}, {so_far}")

    def _end(self, event: Finished | Failed) -> None:
        self._ended += 1
        self._shares.pop(event.key, None)
        if event.key in self._tasks:
            self._bars.remove_task(self._tasks.pop(event.key))
        place = f"[{self._ended}/{self._cells}] {self._names[event.key]}"
        ending = f"{event.seconds:.1f} s" if isinstance(event, Finished) else f"{event.kind}: {event.message}"
        self._console.print(f"{place}: {ending}", highlight=False, markup=False, soft_wrap=True)


@contextmanager
def grid_display(names: Mapping[str, str]) -> Iterator[GridDisplay]:
    """A display that is removed when the block ends; the lines of finished cells stay."""
    console = required("rich.console", purpose="The progress display").Console(stderr=True)
    parts = required("rich.progress", purpose="The progress display")
    columns = (
        parts.TextColumn("{task.description}", markup=False),
        parts.BarColumn(),
        parts.TextColumn("{task.fields[state]}", markup=False),
    )
    with parts.Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
        yield GridDisplay(names, console, bars)
