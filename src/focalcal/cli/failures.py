"""What goes wrong for a reason that the user can fix, as one line and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from focalcal.cli import INTERRUPTED, INTERRUPTION, USAGE
from focalcal.cli.execution import to_go_on


@contextmanager
def plain_failures(*, resumable: bool = False) -> Iterator[None]:
    """The library's errors, and Ctrl-C, on stderr; anything else is a bug and keeps its traceback.

    A command that goes on where it was when it is given again is `resumable`, and says so when it is interrupted.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"{INTERRUPTION}; {to_go_on()}" if resumable else INTERRUPTION, err=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if not _can_be_fixed(error):
            raise
        for line in _message(error).splitlines():
            typer.echo(f"focalcal: {' '.join(line.split())}", err=True)
        raise typer.Exit(USAGE) from None


def _message(error: Exception) -> str:
    """What it says, without the number of an operating system's error where the library has put it into words."""
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        return error.strerror
    return str(error)


def _can_be_fixed(error: Exception) -> bool:
    if isinstance(error, ValueError | OSError | ModuleNotFoundError):
        return True
    from focalcal.theory.minimiser import SolverError  # here, because it costs what NumPy costs

    return isinstance(error, SolverError)
