"""Progress on stderr, so that what is printed can be piped: a bar in a terminal, elsewhere a line every tenth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from focalcal.core.extras import required


@contextmanager
def bar(what: str) -> Iterator[Callable[[float, float], None]]:
    """A function that is told `(done, of)`, in any unit of work; nothing is shown before its first call."""
    console = required("rich.console", purpose="The progress bar").Console(stderr=True)
    parts = required("rich.progress", purpose="The progress bar")
    columns = (
        parts.TextColumn("{task.fields[what]}", markup=False),  # a name may hold brackets and braces
        parts.BarColumn(),
        parts.TextColumn("{task.description}", markup=False),
    )
    started, tenths = time.monotonic(), 0
    with parts.Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None, visible=False, what=what)

        def told(done: float, of: float) -> None:
            nonlocal tenths
            state = progress_text(done, of, time.monotonic() - started)
            progress.update(task, completed=done, total=of, description=state, visible=True)
            reached = int(10 * _share(done, of) + 1e-9)  # sums of costs need not be exact
            if not console.is_terminal and reached > tenths:
                console.print(f"{what}: {state}", highlight=False, markup=False, soft_wrap=True)
            tenths = max(reached, tenths)

        yield told


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
