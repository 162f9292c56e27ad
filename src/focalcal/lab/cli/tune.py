"""`focalcal tune`: which objective, gamma and lam a recipe should be trained with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from focalcal.cli import INTERRUPTED
from focalcal.cli.options import Json
from focalcal.cli.output import json_text, plain_failures, print_json, to_go_on
from focalcal.lab.cli.options import (
    Classes,
    DataDir,
    DataOption,
    DataSet,
    Device,
    Epochs,
    Jobs,
    Model,
    Store,
    check_device,
    chosen_recipe,
    open_store,
)

if TYPE_CHECKING:
    from focalcal.lab.studies.tuning import TuneResult


@plain_failures(resumable=True)
def tune(
    recipe: Annotated[str, typer.Argument(help="A recipe by name (see `focalcal train --list`).")],
    objective: Annotated[
        list[str] | None,
        typer.Option(
            "--objective",
            "-o",
            help="A loss to try, by name or as package.module:Name; may be repeated. By default fcl, focal, brier, ls "
            "and dual_focal. Cross-entropy is always tried.",
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option(help="How many candidates are trained with the first seed.", min=1, metavar="N")
    ] = 16,
    seeds: Annotated[int, typer.Option(help="How many seeds each finalist is trained with.", min=1, metavar="N")] = 3,
    finalists: Annotated[
        int, typer.Option(help="How many candidates are repeated over seeds.", min=1, metavar="N")
    ] = 3,
    sampler: Annotated[str, typer.Option(help="How candidates are chosen: tpe (Optuna's) or grid.")] = "tpe",
    select: Annotated[
        list[str] | None,
        typer.Option(
            help="What to select by: nll (the default) or brier; twice for a pair, whose second may be error."
        ),
    ] = None,
    learning_rate: Annotated[bool, typer.Option("--lr", help="Search the learning rate as well.")] = False,
    weight_decay: Annotated[bool, typer.Option("--weight-decay", help="Search the weight decay as well.")] = False,
    epochs: Epochs = None,
    data_set: DataSet = None,
    data_option: DataOption = None,
    classes: Classes = None,
    model: Model = None,
    storage: Annotated[
        str | None, typer.Option(help="An Optuna storage URL, for a search by several machines.")
    ] = None,
    store: Store = None,
    jobs: Jobs = 2,
    device: Device = "cpu",
    data_dir: DataDir = None,
    out: Annotated[Path | None, typer.Option(help="Write tune.html and tune.json into this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Search the objective, gamma and lam of a recipe on its validation rows, and say what to train with.

    Every trial is a run of the store. Stopped at any moment, the same command goes on where it was.

    Example: focalcal tune digits_small_cnn_lite --trials 12 --out tuned
    """
    from focalcal.lab.cli.progress import grid_display
    from focalcal.lab.studies import LocalExecutor
    from focalcal.lab.studies.tuning import tune as search
    from focalcal.lab.studies.tuning.tuner import OBJECTIVES

    chosen = chosen_recipe(recipe, data_option, None, epochs=epochs, data_set=data_set, classes=classes, model=model)
    with grid_display() as display:
        result = search(
            chosen,
            open_store(store, create=True),
            objectives=objective or OBJECTIVES,
            trials=trials,
            seeds=seeds,
            finalists=finalists,
            sampler=sampler,  # type: ignore[arg-type]  # checked there
            select=select or "nll",
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            executor=LocalExecutor(jobs, options={"device": check_device(device), "data_dir": data_dir}),
            jobs=jobs,
            data_dir=data_dir,
            storage=storage,
            on_event=display,
        )
    if out is not None:
        _write(result, out, f"Which objective for {recipe}?")
    if as_json:
        print_json(result.record())
    else:
        typer.echo(result)
        if out is not None:
            typer.echo(out / "tune.html")
    if result.interrupted:
        typer.echo(to_go_on(), err=True)
        raise typer.Exit(INTERRUPTED)


def _write(result: TuneResult, folder: Path, title: str) -> None:
    from focalcal.core.atomic import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    result.html(folder / "tune.html", title=title)
    write_atomically(folder / "tune.json", json_text(result.record()).encode())
