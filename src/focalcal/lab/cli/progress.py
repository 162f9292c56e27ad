"""Progress on stderr, so that what is printed can be piped: bars in a terminal, elsewhere lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from focalcal.core.extras import required
from focalcal.lab.studies.events import Event, Examined, Failed, Finished, Progress, Started
from focalcal.lab.studies.grid_progress import GridProgress

if TYPE_CHECKING:
    from focalcal.lab.store import Spec


@contextmanager
def _bars(*, transient: bool) -> Iterator[tuple[Any, Any]]:
    """A console on stderr, and bars with a description and a state, which are shown in a terminal alone."""
    console = required("rich.console", purpose="The progress display").Console(stderr=True)
    parts = required("rich.progress", purpose="The progress display")
    columns = (
        parts.TextColumn("{task.description}", markup=False),  # a name may hold brackets and braces
        parts.BarColumn(),
        parts.TextColumn("{task.fields[state]}", markup=False),
    )
    with parts.Progress(*columns, console=console, disable=not console.is_terminal, transient=transient) as bars:
        yield console, bars


@contextmanager
def bar(what: str) -> Iterator[Callable[[float, float], None]]:
    """A function that is told `(done, of)`, in any unit of work; nothing is shown before its first call."""
    started, tenths = time.monotonic(), 0
    with _bars(transient=False) as (console, bars):
        task = bars.add_task(what, total=None, visible=False, state="")

        def show(done: float, of: float) -> None:
            nonlocal tenths
            state = progress_text(done, of, time.monotonic() - started)
            bars.update(task, completed=done, total=of, state=state, visible=True)
            reached = int(10 * _share(done, of) + 1e-9)  # sums of costs need not be exact
            if not console.is_terminal and reached > tenths:
                console.print(f"{what}: {state}", highlight=False, markup=False, soft_wrap=True)
            tenths = max(reached, tenths)

        yield show


def progress_text(done: float, of: float, seconds: float) -> str:
    """How much of the work is done, and the time left if the rest goes as fast as all of it so far.

    >>> progress_text(1.5, 6.0, 60.0)
    '25 %, about 3 min left'
    """
    share = _share(done, of)
    if share >= 1 - 1e-9:
        return "100 %"
    left = seconds * (1 - share) / share if share > 0 else None
    return f"{int(100 * share + 1e-9)} %" + ("" if left is None else f", about {duration(left)} left")


def _share(done: float, of: float) -> float:
    return min(max(done / of, 0.0), 1.0) if of > 0 else 1.0


def duration(seconds: float) -> str:
    """In the largest unit that leaves two digits or nearly.

    >>> duration(5400.0)
    '2 h'
    """
    for unit, size, until in (("s", 1, 90), ("min", 60, 5400), ("h", 3600, 172_800)):
        if seconds < until:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


class GridDisplay:
    """Told every event of a grid; nothing is shown before the first. Cells are called by `names`, else by spec."""

    def __init__(self, names: Mapping[str, str], console: Any, bars: Any) -> None:
        self.progress = GridProgress()
        self._names, self._console, self._bars = names, console, bars
        self._tasks: dict[str, Any] = {}
        self._whole = bars.add_task("starting", total=None, state="", visible=False)

    def __call__(self, event: Event) -> None:
        """Show it."""
        progress = self.progress
        progress(event)
        if isinstance(event, Examined):
            self._bars.update(self._whole, total=progress.cells, visible=True)
        elif isinstance(event, Started):
            self._tasks[event.key] = self._bars.add_task(self.name(event.spec), total=1.0, state="loading")
        elif isinstance(event, Progress) and event.key in self._tasks:
            share = progress.running[event.key].share
            self._bars.update(self._tasks[event.key], completed=share, state=event.note)
        elif isinstance(event, Finished | Failed):
            self._end(event)
        so_far = progress_text(progress.done, progress.cells, progress.seconds)
        # in the column of the names, which is the last to be cut off where the terminal is narrow
        whole = f"{progress.ended} of {progress.cells}, {so_far}"
        self._bars.update(self._whole, completed=progress.done, description=whole)

    def name(self, spec: Spec) -> str:
        """What the cell is called."""
        return self._names.get(spec.key, spec.name)

    def _end(self, event: Finished | Failed) -> None:
        if event.key in self._tasks:
            self._bars.remove_task(self._tasks.pop(event.key))
        place = f"[{self.progress.ended}/{self.progress.cells}] {self.name(event.spec)}"
        ending = f"{event.seconds:.1f} s" if isinstance(event, Finished) else f"{event.kind}: {event.message}"
        self._console.print(f"{place}: {ending}", highlight=False, markup=False, soft_wrap=True)


@contextmanager
def grid_display(names: Mapping[str, str] = MappingProxyType({})) -> Iterator[GridDisplay]:
    """A display that is removed when the block ends; the lines of finished cells stay."""
    with _bars(transient=True) as (console, bars):
        yield GridDisplay(names, console, bars)
