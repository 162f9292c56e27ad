"""The command `focalcal`: one file a sub-command, each of which parses, calls the library and prints the result."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install."""
    try:
        from focalcal.cli.app import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        print("focalcal: the command line needs the package typer: pip install 'focalcal[study]'", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # while modules are still being loaded
        raise SystemExit(130) from None
    app()
