"""The sub-commands, put together."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from focalcal import __version__
from focalcal.cli import (
    audit,
    compare,
    data,
    evaluate,
    operating_point_study,
    overhead,
    report,
    runs,
    study,
    theory,
    train,
    tune,
    watch,
)
from focalcal.cli.output import tracebacks


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
app.command()(study.study)
app.command()(train.train)
app.command()(tune.tune)
app.command()(evaluate.evaluate)
app.command()(report.report)
app.command()(watch.watch)
app.command()(compare.compare)
app.command()(overhead.overhead)
app.command()(operating_point_study.operating_point_study)
app.add_typer(runs.app, name="runs")
app.add_typer(data.app, name="data")
app.add_typer(theory.app, name="theory")


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
