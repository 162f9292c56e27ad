"""`focalcal theory operating-point`: the lam to train with next, from one network's held-out predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json

_FORMS = ("png", "pdf", "svg")


@plain_failures()
def operating_point_command(
    file: Annotated[
        Path,
        typer.Argument(
            help="Predictions on data that the network was not trained on, with labels: .npz, .parquet or .csv; an "
            ".npz file has the arrays logits (or probs) and labels."
        ),
    ],
    gamma: Annotated[float, typer.Option(help="The focusing of the loss to train with, >= 0.")] = 3.0,
    trained_with: Annotated[
        tuple[float, float],
        typer.Option(help="The gamma and lam of the loss that the network was trained with; 0 0 is cross-entropy."),
    ] = (0.0, 0.0),
    out: Annotated[
        Path | None, typer.Option(help="Draw the effective temperature over lam in this .png, .pdf or .svg file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the lam whose distortion cancels the network's overconfidence, and the loss to train with next.

    Where the network is not overconfident it says so: then cross-entropy is the better choice.

    Example: focalcal theory operating-point val.npz --gamma 3 --out operating-point.png
    """
    if out is not None and out.suffix.removeprefix(".").lower() not in _FORMS:
        raise ValueError(f"--out must end in one of .{', .'.join(_FORMS)}, got {str(out)!r}; rename it")
    from focalcal.posthoc import operating_point as find
    from focalcal.predictions import Predictions

    predictions = Predictions.load(file)
    if predictions.multilabel:
        raise ValueError(f"{file} has several labels per row: operating points are for one label per row")
    point = find(predictions, gamma=gamma, trained_with=trained_with)
    if out is not None:
        from focalcal.core.atomic import write_atomically
        from focalcal.pages.operating_point_figure import OperatingPointFigure, temperature_curves
        from focalcal.pages.style import rendered

        figure = OperatingPointFigure(temperature_curves(point)).plot()
        write_atomically(out, rendered(figure, out.suffix.removeprefix(".").lower()))
    if as_json:
        print_json(point.record())
        return
    typer.echo(point)
    if out is not None:
        typer.echo(out)
