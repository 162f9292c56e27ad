"""The command `focalcal`: one file per sub-command, each of which parses, calls the library and prints the result."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import Any

USAGE, INTERRUPTED = 2, 130  # exit codes
INTERRUPTION = "focalcal: interrupted; no file was left half-written"


def main() -> None:
    """Run the command line, or say what to install. SIGTERM and SIGHUP end it as Ctrl-C does."""
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP; what is ignored, by `nohup` say, stays so
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    warnings.showwarning = show_warning
    try:
        from focalcal.cli.app import app
    except KeyboardInterrupt:
        print(INTERRUPTION, file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        from focalcal.core.extras import install_command

        print(f"focalcal: the command line needs the package typer: {install_command('typer')}", file=sys.stderr)
        raise SystemExit(USAGE) from None
    app()


def show_warning(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
    """The package's own as a plain line: where in the code they arose helps nobody at a prompt."""
    if category.__module__.startswith("focalcal."):
        print(f"focalcal: {message}", file=sys.stderr)
    else:
        _show_with_place(message, category, *place, **options)


_show_with_place = warnings.showwarning
