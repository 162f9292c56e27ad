"""The sub-commands, put together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from focalcal import __version__
from focalcal.cli import audit, calibrate, monitor, theory
from focalcal.cli.output import plain_failures, tracebacks

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class _Focalcal(TyperGroup):
    """The library's commands, and those that installed packages offer as entry points of `focalcal.commands`.

    The latter, the laboratory's among them, are imported when they are called or listed: an audit waits for none.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put --debug first, where it belongs, also if it is given behind the sub-command."""
        debug = "--debug" in args
        return super().parse_args(ctx, ["--debug"] * debug + [word for word in args if word != "--debug"])

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return [*super().list_commands(ctx), *sorted(_offered(), key=lambda name: [*_PANELS, name].index(name))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        own = super().get_command(ctx, cmd_name)
        return own if own is not None or cmd_name not in _offered() else _loaded(cmd_name)


app = typer.Typer(
    cls=_Focalcal,
    epilog="Example: focalcal study digits",
    name="focalcal",
    help="Train, measure and fix the calibration of classifiers, around Focal Calibration Loss.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command(rich_help_panel="Predictions")(audit.audit)
app.command(rich_help_panel="Predictions")(calibrate.calibrate)
app.add_typer(monitor.app, name="monitor", rich_help_panel="Predictions")
app.add_typer(theory.app, name="theory", rich_help_panel="Theory")
_PANELS = {  # of what other packages offer, under whose heading of --help
    **dict.fromkeys(("data", "evaluate", "train", "tune"), "Training"),
    **dict.fromkeys(("compare", "report", "runs", "study", "watch"), "Studies"),
}


@cache
def _offered() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # an audit need not wait for it

    return {entry.name: entry for entry in entry_points(group="focalcal.commands")}


@cache
def _loaded(name: str) -> Any:
    try:
        command = _offered()[name].load()
    except ModuleNotFoundError as error:  # an extra that is not installed
        command = _says_what_is_missing(error)
    holder, panel = typer.Typer(), _PANELS.get(name, "Other packages")
    if isinstance(command, typer.Typer):
        holder.add_typer(command, name=name, rich_help_panel=panel)
    else:
        holder.command(name, rich_help_panel=panel)(command)
    return typer.main.get_group(holder).commands[name]


def _says_what_is_missing(error: ModuleNotFoundError) -> Callable[[], None]:
    @plain_failures()
    def command() -> None:
        """Needs a package that is not installed; the command says how to install it.

        Example: focalcal --help
        """
        raise error

    return command


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
