"""A progress bar on stderr, so that what is printed can be piped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from focalcal.reports.extras import required


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function that is told `(done, of)`; nothing is shown before its first call, nor where there is no terminal."""
    console = required("rich.console", purpose="The progress bar").Console(stderr=True)
    parts = required("rich.progress", purpose="The progress bar")
    columns = (parts.TextColumn(what), parts.BarColumn(), parts.MofNCompleteColumn(), parts.TimeRemainingColumn())
    with parts.Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = None

        def told(done: int, of: int) -> None:
            nonlocal task
            task = progress.add_task(what, total=of) if task is None else task
            progress.update(task, completed=done)

        yield told
