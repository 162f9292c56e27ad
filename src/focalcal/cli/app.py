"""The sub-commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

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
)

app = typer.Typer(
    name="focalcal",
    help="Train, measure and fix the calibration of classifiers, around Focal Calibration Loss.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(audit.audit)
app.command()(audit.calibrate)
app.command()(study.study)
app.command()(train.train)
app.command()(tune.tune)
app.command()(evaluate.evaluate)
app.command()(report.report)
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
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """What holds for every sub-command."""
