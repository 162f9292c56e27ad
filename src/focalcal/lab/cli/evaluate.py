"""`focalcal evaluate`: evaluate the networks of stored runs on more, without training them again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json
from focalcal.lab.cli.options import DataDir, Device, StoredRuns, Threads, check_device, open_store

if TYPE_CHECKING:
    from focalcal.lab.store import Evaluations, Run
    from focalcal.lab.store import Store as RunStore
    from focalcal.lab.studies.evaluate import Evaluated

REFUSED = 1  # exit code where a run could not be evaluated


@plain_failures(resumable=True)
def evaluate(
    keys: Annotated[list[str] | None, typer.Argument(help="The runs' keys, or how they begin.")] = None,
    study: Annotated[
        str | None,
        typer.Option(
            help="The stored runs of this study, a shipped one or a .toml file; without --shift, --saliency and "
            "--test-set the study's own evaluations are made."
        ),
    ] = None,
    shift: Annotated[
        list[str] | None, typer.Option(help="A shifted test set: svhn or cifar10c; may be repeated.")
    ] = None,
    severity: Annotated[
        list[int] | None, typer.Option(help="A severity of cifar10c, from 1 to 5; may be repeated; default: 5.")
    ] = None,
    saliency: Annotated[int, typer.Option(help="Make Grad-CAM maps of so many test images.", min=0, metavar="N")] = 0,
    test_set: Annotated[
        list[Path] | None,
        typer.Option(help="Another test set: an .npz file with the arrays inputs and labels; may be repeated."),
    ] = None,
    store: StoredRuns = None,
    device: Device = "cpu",
    threads: Threads = 1,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Add evaluations to stored runs whose weights were kept; what they have already is left as it is.

    Example: focalcal evaluate --study vision --shift svhn
    """
    from focalcal.lab.store import Evaluations

    opened = open_store(store)
    try:
        asked = Evaluations(shifts=tuple(shift or ()), severities=tuple(severity or (5,)), saliency=saliency)
    except TypeError as error:  # of a value that was typed in, so not a bug
        raise ValueError(str(error)) from None
    runs, of_study = _choose_runs(opened, keys or [], study, data_dir)
    if not asked.names and not test_set:
        asked = of_study
    if not asked.names and not test_set:
        raise ValueError("no evaluation is named; give --shift, --saliency, --test-set or a --study that has some")
    done = _evaluate(
        runs, opened, asked, test_sets=test_set or (), device=check_device(device), threads=threads, data_dir=data_dir
    )
    if as_json:
        print_json([{"key": result.run.key, "added": result.added, "refused": result.refused} for result in done])
    else:
        for result in done:
            typer.echo(result, err=result.refused is not None)
    if any(result.refused is not None for result in done):
        raise typer.Exit(REFUSED)


def _choose_runs(
    store: RunStore, keys: list[str], study: str | None, data_dir: Path | None
) -> tuple[list[Run], Evaluations]:
    """The runs that are named, and the evaluations of the study."""
    from focalcal.lab.store.spec import NOTHING_MORE

    runs = {run.key: run for run in map(store.run, keys)}
    asked = NOTHING_MORE
    if study is not None:
        from focalcal.lab.studies import load_study

        chosen = load_study(study, data_dir=data_dir)
        asked, stored = chosen.evaluations(), {run.key: run for run in store.runs()}
        runs |= {spec.key: stored[spec.key] for spec in chosen.specs() if spec.key in stored}
    if not runs:
        named = f"none of {study} is stored in {store.path}" if study is not None else "none is named"
        raise ValueError(f"there must be runs to evaluate, and {named}; give keys (`focalcal runs list`) or --study")
    return list(runs.values()), asked


def _evaluate(runs: list[Run], store: RunStore, asked: Evaluations, **options: object) -> list[Evaluated]:
    from focalcal.lab.cli.progress import bar
    from focalcal.lab.studies import evaluate_runs

    places = {run.key: at for at, run in enumerate(runs)}
    with bar(f"{len(runs)} runs") as show:
        return evaluate_runs(
            runs,
            store,
            asked,
            report=lambda progress: show(places[progress.key] + progress.done / progress.of, len(runs)),
            **options,
        )
