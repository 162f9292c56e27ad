"""`focalcal train`: one run, from flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from focalcal.cli.options import Json, given, name_values
from focalcal.cli.output import plain_failures, print_json
from focalcal.lab.cli.options import (
    Classes,
    DataDir,
    DataOption,
    DataSet,
    Device,
    Epochs,
    Mean,
    Model,
    Std,
    Store,
    TensorBoard,
    Threads,
    check_device,
    chosen_recipe,
    normalisation,
    open_store,
)

if TYPE_CHECKING:
    from focalcal.lab.training import Recipe


@plain_failures(resumable=True)
def train(
    recipe: Annotated[
        str, typer.Argument(help="A recipe by name (see --list), or a .toml file.")
    ] = "digits_small_cnn_lite",
    objective: Annotated[
        str, typer.Option("--objective", "-o", help="The loss, by name or as package.module:Name.")
    ] = "fcl",
    gamma: Annotated[float | None, typer.Option(help="Gamma of the focal losses and FCL.")] = None,
    lam: Annotated[float | None, typer.Option(help="Lambda of FCL and MMCE.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Another option of the loss, e.g. epsilon=0.1; may be repeated.")
    ] = None,
    data_set: DataSet = None,
    data_option: DataOption = None,
    classes: Classes = None,
    model: Model = None,
    mean: Mean = None,
    std: Std = None,
    model_option: Annotated[
        list[str] | None, typer.Option(help="An option of the network, NAME=VALUE; may be repeated.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the weights, the order of the examples, the augmentation and drop-out.", min=0, metavar="N"
        ),
    ] = 0,
    epochs: Epochs = None,
    imbalance: Annotated[float | None, typer.Option(help="Make the training split long-tailed by this factor.")] = None,
    allow_partial: Annotated[bool, typer.Option("--allow-partial", help="Accept a part of the data set.")] = False,
    keep_weights: Annotated[
        bool | None,
        typer.Option("--keep-weights/--no-keep-weights", help="Store the final weights; default: up to 50 MB."),
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--list", help="List the recipes: data set, network and epochs of each.")
    ] = False,
    sources: Annotated[
        bool,
        typer.Option(
            "--sources", help="Print the recipe's settings and who states each: the paper, published code, or nobody."
        ),
    ] = False,
    store: Store = None,
    device: Device = "cpu",
    threads: Threads = 1,
    data_dir: DataDir = None,
    tensorboard: TensorBoard = None,
    as_json: Json = False,
) -> None:
    """Train one network, or go on with a run that was stopped; a run that is stored is only shown.

    Example: focalcal train digits_mlp_lite --objective fcl --gamma 3 --lam 1
    """
    from focalcal.lab.training import recipe_text

    if list_all:
        _print_recipes(as_json=as_json)
        return
    if sources:
        typer.echo(recipe_text(recipe), nl=False)
        return
    from focalcal.lab.store import Evaluations, Protocol
    from focalcal.lab.studies import spec_of
    from focalcal.lab.training import is_first_process
    from focalcal.lab.training.determinism import possible_threads

    protocol = Protocol(imbalance=imbalance, allow_partial=allow_partial)
    fields = {"data_set": data_set, "classes": classes, "model": model, "epochs": epochs}
    chosen = chosen_recipe(recipe, data_option, model_option, **fields, **normalisation(mean, std))
    try:
        values = {**given(gamma=gamma, lam=lam), **name_values("--option", option)}
        spec = spec_of(chosen, objective, values, seed=seed, protocol=protocol, data_dir=data_dir)
    except TypeError as error:  # of a value that was typed in, so not a bug
        raise ValueError(str(error)) from None
    options = {
        "evaluations": Evaluations(keep_weights=keep_weights),
        "device": check_device(device),
        "threads": possible_threads(threads),
        "data_dir": data_dir,
    }
    opened = open_store(store, create=True)
    run = _run(spec, opened, tensorboard=tensorboard, **options)
    if not is_first_process():
        return  # of those that torchrun started
    if keep_weights and "weights.pt" not in run.files:
        again = f"remove it with `focalcal runs rm {run.key[:12]}` to train it again"
        typer.echo(f"focalcal: the run was stored before, without its weights; {again}", err=True)
    if as_json:
        print_json({"key": run.key, **run.spec.as_dict(), **run.record})
        return
    from focalcal.lab.evidence.evidence import gather_metrics
    from focalcal.lab.report.study_tables.several_metrics import overview

    typer.echo(f"{run.spec.name}, stored as {run.key[:10]} in {opened.path}\n")
    if (shown := overview(gather_metrics([run], title=run.spec.name))) is not None:
        typer.echo(shown.table.text(), nl=False)


def _print_recipes(*, as_json: bool) -> None:
    from focalcal.lab.training import RECIPES
    from focalcal.pages.tables import Table

    if as_json:
        print_json({name: recipe.as_dict() for name, recipe in RECIPES.items()})
        return
    columns: dict[str, list[Any]] = {
        "recipe": list(RECIPES),
        "data set": [recipe.data_set for recipe in RECIPES.values()],
        "network": [recipe.model for recipe in RECIPES.values()],
        "epochs": [recipe.epochs for recipe in RECIPES.values()],
        "for": ["a CPU" if name.endswith("_lite") else "paper" for name in RECIPES],
        "starts from": [_start(recipe) for recipe in RECIPES.values()],
    }
    typer.echo(Table(columns).text(), nl=False)


def _start(recipe: Recipe) -> str:
    if recipe.initial_weights is not None:
        return "published weights"
    return "word vectors" if recipe.word_vectors is not None else "random weights"


def _run(spec: Any, store: Any, **options: Any) -> Any:
    from focalcal.lab.cli.progress import bar
    from focalcal.lab.studies import run_spec
    from focalcal.lab.training.distributed import joined_processes

    if joined_processes(options["device"]).from_first(store.has(spec)):  # to show it needs no more than reading
        return store.run(spec.key)
    store.check_writable()
    with bar(spec.name) as show:
        return run_spec(spec, store, report=lambda progress: show(progress.done, progress.of), **options)
