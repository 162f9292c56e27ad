"""What goes wrong for a reason that the user can mend, as one line and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

USAGE, INTERRUPTED = 2, 130


@contextmanager
def plain_failures() -> Iterator[None]:
    """The library's errors, and Ctrl-C, as one line on stderr; anything else is a bug and keeps its traceback."""
    from focalcal.theory.minimiser import SolverError

    try:
        yield
    except (ValueError, SolverError, OSError, ModuleNotFoundError) as error:
        typer.echo(f"focalcal: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(USAGE) from None
    except KeyboardInterrupt:
        typer.echo("focalcal: interrupted; no file was left half-written", err=True)
        raise typer.Exit(INTERRUPTED) from None
