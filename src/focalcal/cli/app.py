"""The sub-commands, put together."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from focalcal import __version__
from focalcal.cli import USAGE, audit, theory
from focalcal.cli.output import tracebacks
from focalcal.core.extras import install_command


class _Focalcal(TyperGroup):
    """Takes --debug behind the sub-command, too, where one adds it to a command that failed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put --debug first, where it belongs."""
        debug = "--debug" in args
        return super().parse_args(ctx, ["--debug"] * debug + [word for word in args if word != "--debug"])


app = typer.Typer(
    cls=_Focalcal,
    epilog="Example: focalcal study digits",
    name="focalcal",
    help="Train, measure and fix the calibration of classifiers, around Focal Calibration Loss.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(audit.audit)
app.command()(audit.calibrate)
app.add_typer(theory.app, name="theory")


def _add_installed() -> None:
    """Commands that installed packages offer as entry points of `focalcal.commands`, the laboratory's among them."""
    for entry in sorted(entry_points(group="focalcal.commands"), key=lambda entry: entry.name):
        try:
            command = entry.load()
        except ModuleNotFoundError as error:  # an extra that is not installed
            command = _says_what_is_missing(str(error.name))
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=entry.name)
        else:
            app.command(entry.name)(command)


def _says_what_is_missing(package: str) -> Callable[[], None]:
    def command() -> None:
        """Needs a package that is not installed; the command says how to install it.

        Example: focalcal --help
        """
        typer.echo(f"focalcal: this command needs the package {package}: {install_command(package)}", err=True)
        raise typer.Exit(USAGE)

    return command


_add_installed()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"focalcal {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error arose, in place of one line.")
    ] = False,
) -> None:
    """What holds for every sub-command."""
    token = tracebacks.set(debug)
    context.call_on_close(lambda: tracebacks.reset(token))
