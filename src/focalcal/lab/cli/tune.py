"""`focalcal tune`: which objective, gamma and lam a recipe should be trained with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from focalcal.cli import INTERRUPTED
from focalcal.cli.options import Json
from focalcal.cli.output import json_text, plain_failures, print_json, to_go_on
from focalcal.lab.cli.options import (
    Address,
    Classes,
    CpusPerCell,
    DataDir,
    DataOption,
    DataSet,
    Device,
    Engine,
    Epochs,
    Executors,
    GpusPerCell,
    Jobs,
    Mean,
    Model,
    Std,
    Store,
    Threads,
    check_device,
    chosen_executor,
    chosen_recipe,
    normalisation,
    open_store,
)

if TYPE_CHECKING:
    from focalcal.lab.store import Store as RunStore
    from focalcal.lab.studies.grid import Executor
    from focalcal.lab.studies.study_file import Study
    from focalcal.lab.studies.tuning import TuneResult


@plain_failures(resumable=True)
def tune(
    recipe: Annotated[
        str, typer.Argument(help="A recipe by name (see `focalcal train --list`), or a study file with [tune].")
    ],
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
        int | None,
        typer.Option(
            help="How many candidates are trained with the first seed, of a study for each objective; default: 16, or "
            "what the study says.",
            min=1,
            metavar="N",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="How many seeds each finalist is trained with; default: 3, or what the study says.",
            min=1,
            metavar="N",
        ),
    ] = None,
    finalists: Annotated[
        int, typer.Option(help="How many candidates are repeated over seeds.", min=1, metavar="N")
    ] = 3,
    sampler: Annotated[
        str, typer.Option(help="Which candidates are tried: of a halton sequence, or every point of a grid.")
    ] = "halton",
    select: Annotated[str, typer.Option(help="What to select by: nll or brier.")] = "nll",
    learning_rate: Annotated[bool, typer.Option("--lr", help="Search the learning rate as well.")] = False,
    weight_decay: Annotated[bool, typer.Option("--weight-decay", help="Search the weight decay as well.")] = False,
    epochs: Epochs = None,
    data_set: DataSet = None,
    data_option: DataOption = None,
    classes: Classes = None,
    model: Model = None,
    mean: Mean = None,
    std: Std = None,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Search a study at its smallest size, to see that it works.")
    ] = False,
    store: Store = None,
    jobs: Jobs = 2,
    executor: Executors = Engine.local,
    address: Address = None,
    cpus_per_cell: CpusPerCell = 1.0,
    gpus_per_cell: GpusPerCell = 0.0,
    device: Device = "cpu",
    threads: Threads = 1,
    data_dir: DataDir = None,
    out: Annotated[Path | None, typer.Option(help="Write tune.html and tune.json into this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Search the objective, gamma and lam of a recipe on its validation rows, and say what to train with.

    Of a study file with [tune], search every objective with the same number of trials, then train the seeds of what
    was chosen and report them. Every trial is a run of the store. Stopped at any moment, the same command goes on.

    Example: focalcal tune digits_small_cnn_lite --trials 12 --out tuned
    """
    from focalcal.lab.cli.progress import grid_display
    from focalcal.lab.studies import load_study
    from focalcal.lab.studies.tuning import tune as search
    from focalcal.lab.studies.tuning.tuner import OBJECTIVES
    from focalcal.lab.training.determinism import possible_threads

    options = {"device": check_device(device), "threads": possible_threads(threads), "data_dir": data_dir}
    where = chosen_executor(executor, jobs, address, cpus_per_cell, gpus_per_cell, **options)
    if _is_study(recipe):
        of_recipes = {
            "--objective": objective,
            "--select": select != "nll",
            "--sampler": sampler != "halton",
            "--finalists": finalists != 3,
            "--epochs": epochs,
            "--data-set": data_set,
            "--mean": mean,
            "--data-option": data_option,
            "--classes": classes,
            "--model": model,
            "--std": std,
            "--lr": learning_rate,
            "--weight-decay": weight_decay,
            "--out": out,
        }
        if given := [flag for flag, value in of_recipes.items() if value]:
            raise ValueError(f"{given[0]} is for the search of a recipe; of a study its file says it")
        study = load_study(recipe, seeds=seeds, data_dir=data_dir)
        _tune_study(study, trials, open_store(store, create=True), where, smoke=smoke, as_json=as_json)
        return
    if smoke:
        raise ValueError("--smoke is for a study; give a study file with [tune], or lower --epochs and --trials")
    fields = {"epochs": epochs, "data_set": data_set, "classes": classes, "model": model}
    chosen = chosen_recipe(recipe, data_option, None, **fields, **normalisation(mean, std))
    with grid_display() as display:
        result = search(
            chosen,
            open_store(store, create=True),
            objectives=objective or OBJECTIVES,
            trials=16 if trials is None else trials,
            seeds=3 if seeds is None else seeds,
            finalists=finalists,
            sampler=sampler,  # type: ignore[arg-type]  # checked there
            select=select,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            executor=where,
            data_dir=data_dir,
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


def _is_study(name: str) -> bool:
    """Whether it is a file with settings, as a recipe's has none."""
    path = Path(name)
    if path.suffix != ".toml" or not path.is_file():
        return False
    text = path.read_text("utf-8", errors="replace")
    return any(line.strip() in ("[tune]", "[[settings]]") for line in text.splitlines())


def _tune_study(
    study: Study, trials: int | None, store: RunStore, executor: Executor, *, smoke: bool, as_json: bool
) -> None:
    from dataclasses import replace

    from focalcal.lab.cli.progress import grid_display
    from focalcal.lab.cli.study import print_gaps, print_results, write_study_report
    from focalcal.lab.studies.tuning import tune_study

    if study.tune is not None and trials is not None:
        study._set(tune=replace(study.tune, trials=trials))
    with grid_display() as display:
        tuned = tune_study(study, store, executor, smoke=smoke, on_event=display)
    if as_json:
        print_json(tuned.record())
    else:
        if tuned.chosen:
            typer.echo(tuned.table().text(), nl=False)
        for note in tuned.notes:
            typer.echo(note)
    if tuned.result is not None and not as_json:
        print_results(tuned.result, as_json=False)
        typer.echo(f"\nchosen: {tuned.file}")
        if not tuned.interrupted:
            write_study_report(tuned.result, named=str(tuned.file))
    if tuned.result is not None:
        print_gaps(tuned.result)
    elif tuned.interrupted:
        typer.echo(to_go_on(), err=True)
        raise typer.Exit(INTERRUPTED)


def _write(result: TuneResult, folder: Path, title: str) -> None:
    from focalcal.core.atomic import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    result.html(folder / "tune.html", title=title)
    write_atomically(folder / "tune.json", json_text(result.record()).encode())
