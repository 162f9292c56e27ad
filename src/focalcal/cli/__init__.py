"""The command `focalcal`: one file per sub-command, each of which parses, calls the library and prints the result."""

from __future__ import annotations

import gc
import signal
import sys

USAGE, UNFORESEEN, INTERRUPTED = 2, 3, 130  # exit codes; 1 is that of a gate, a check or a study that is not met
INTERRUPTION = "focalcal: interrupted; no file was left half-written"


def main() -> None:
    """Run the command line, or say what to install. SIGTERM and SIGHUP end it as Ctrl-C does."""
    gc.set_threshold(max(10_000, gc.get_threshold()[0]))  # imports make objects that stay: 700 is looked at too often
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP; what is ignored, by `nohup` say, stays so
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
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
    try:
        app()
    except Exception as error:  # of the command line itself, or any with --debug
        from focalcal.cli.output import report_failure

        raise SystemExit(report_failure(error, debug="--debug" in sys.argv)) from None
