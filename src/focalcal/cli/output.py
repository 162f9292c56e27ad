"""What the sub-commands print: JSON, and what went wrong for a reason that the user can fix as one line."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import typer

from focalcal.cli import INTERRUPTED, INTERRUPTION, UNFORESEEN, USAGE
from focalcal.core.extras import install_command

tracebacks = ContextVar("tracebacks", default=False)  # what --debug asks for
NO_FLAGS: Mapping[str, str] = MappingProxyType({})


def print_json(value: Any) -> None:
    """See `json_text`."""
    typer.echo(json_text(value))


def json_text(value: Any) -> str:
    """Indented; what JSON does not know is written as text."""
    return json.dumps(without_odd_numbers(value), indent=2, allow_nan=False, default=str)


def without_odd_numbers(value: Any) -> Any:
    """The same with None for NaN and infinity, and 0 for -0."""
    if isinstance(value, dict):
        return {key: without_odd_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_odd_numbers(inner) for inner in value]
    if not isinstance(value, float):
        return value
    return value + 0.0 if math.isfinite(value) else None  # -0 is 0


def to_go_on() -> str:
    """How to resume what this command began."""
    return f"to go on: {shlex.join(['focalcal', *sys.argv[1:]])}"


@contextmanager
def plain_failures(*, resumable: bool = False, flags: Mapping[str, str] = NO_FLAGS) -> Iterator[None]:
    """The library's errors and warnings, and Ctrl-C, as lines on stderr; see `report_failure`.

    With --debug errors are raised. A command that goes on where it was when it is given again is `resumable`,
    and says so when it is interrupted. `flags` are the words of Python that an error may hold, and the command's own.
    """
    try:
        with _plain_warnings():
            yield
    except KeyboardInterrupt:
        typer.echo(f"{INTERRUPTION}; {to_go_on()}" if resumable else INTERRUPTION, err=True)
        raise typer.Exit(INTERRUPTED) from None
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise  # the command's own end; who reads the output, such as `head`, has enough: Typer ends without a word
    except Exception as error:
        if tracebacks.get():
            raise
        raise typer.Exit(report_failure(error, flags=flags)) from None


def report_failure(error: Exception, *, debug: bool = False, flags: Mapping[str, str] = NO_FLAGS) -> int:
    """Say on stderr what went wrong, or where; the exit code is USAGE if the user can fix it, else UNFORESEEN."""
    foreseen = _can_be_fixed(error)
    if debug:
        traceback.print_exception(error)
    elif foreseen:
        message = _message(error)
        for said, flag in flags.items():
            message = message.replace(said, flag)
        for line in message.splitlines():
            typer.echo(f"focalcal: {' '.join(line.split())}", err=True)
    else:
        told = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        line = f"an error that should not occur ({told}); report it with what the same command prints with --debug"
        if isinstance(error, MemoryError):
            line = f"not enough memory ({told}); use less data at a time, or a machine with more"
        typer.echo(f"focalcal: {line}", err=True)
    return USAGE if foreseen else UNFORESEEN


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """What the library says of its input as a note, without the place in the code; others as they come."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if category.__module__.startswith("focalcal."):
                typer.echo(f"focalcal: note: {message}", err=True)
            else:
                shown(message, category, *place, **more)

        warnings.showwarning = show
        yield


def _message(error: Exception) -> str:
    """What it says, without the number of an operating system's error; of a missing package how to install it."""
    if isinstance(error, ModuleNotFoundError) and str(error).startswith("No module named"):
        package = str(error.name).partition(".")[0]
        return f"this command needs the package {package}: {install_command(package)}"
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    if error.filename is None:  # the library has put it into words
        return error.strerror
    return f"{os.fsdecode(error.filename)}: {error.strerror}; check the path and its permissions"


def _can_be_fixed(error: Exception) -> bool:
    if isinstance(error, ValueError | OSError | ModuleNotFoundError):
        return True
    # Nothing is imported here, which could fail once more: there may be no memory left.
    solver = sys.modules.get("focalcal.theory.minimiser")
    return solver is not None and isinstance(error, solver.SolverError)
