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
_NAMED = 5  # keys of runs that are refused for one reason


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
        typer.Option(
            "--data",
            "--test-set",
            help="Another test set: an .npz file with the arrays inputs and labels, or of a run on a table or texts of "
            "your own a file like it (.csv, .tsv, .parquet); may be repeated.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Print a metric of the stored predictions, without weights: nll, debiased_ece, headroom, ...; may be "
            "repeated."
        ),
    ] = None,
    calibrator: Annotated[
        str | None, typer.Option(help="Calibrate by the validation rows before --metric: temperature, ensemble, ...")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="Take the epoch for --metric that this rule keeps: last, nll, error, refined.")
    ] = None,
    split: Annotated[str, typer.Option(help="The split of --metric.")] = "test",
    store: StoredRuns = None,
    device: Device = "cpu",
    threads: Threads = 1,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Add evaluations to stored runs whose weights were kept; what they have already is left as it is.

    With --metric, measure what they have predicted, and store nothing.

    Example: focalcal evaluate --study vision --shift svhn
    """
    from focalcal.lab.store import Evaluations

    opened = open_store(store)
    try:
        asked = Evaluations(shifts=tuple(shift or ()), severities=tuple(severity or (5,)), saliency=saliency)
    except TypeError as error:  # of a value that was typed in, so not a bug
        raise ValueError(str(error)) from None
    if metric or calibrator or keep:
        _measure(opened, keys or [], study, data_dir, metric or ["nll"], split, calibrator, keep, as_json=as_json)
        return
    runs, of_study = _choose_runs(opened, keys or [], study, data_dir)
    if not asked.names and not test_set:
        asked = of_study
    if not asked.names and not test_set:
        raise ValueError(
            "no evaluation is named; give --shift, --saliency, --data, --metric or a --study that has some"
        )
    done = _evaluate(
        runs, opened, asked, test_sets=test_set or (), device=check_device(device), threads=threads, data_dir=data_dir
    )
    if as_json:
        print_json([{"key": result.run.key, "added": result.added, "refused": result.refused} for result in done])
    else:
        for result in done:
            if result.refused is None:
                typer.echo(result)
        for reason in dict.fromkeys(result.reason for result in done if result.refused is not None):
            refused = [result.run for result in done if result.reason == reason]
            which = ", ".join(run.key[:12] for run in refused[:_NAMED]) + (", ..." if len(refused) > _NAMED else "")
            many = "run" if len(refused) == 1 else f"{len(refused)} of {len(done)} runs,"
            typer.echo(f"focalcal: {many} {which}: {reason}", err=True)
    if any(result.refused is not None for result in done):
        raise typer.Exit(REFUSED)


def _measure(
    store: RunStore,
    keys: list[str],
    study: str | None,
    data_dir: Path | None,
    metrics: list[str],
    split: str,
    calibrator: str | None,
    keep: str | None,
    *,
    as_json: bool,
) -> None:
    from focalcal.lab.studies.stored_metrics import stored_metrics
    from focalcal.pages.tables import Table

    if keys or study is not None:
        runs, _ = _choose_runs(store, keys, study, data_dir)
    else:
        runs = store.runs()
    if not runs:
        raise ValueError(f"{store.path} must hold runs to measure, got none; name another with --store")
    rows = [stored_metrics(run, metrics, split=split, calibrator=calibrator, keep=keep) for run in runs]
    if as_json:
        print_json([{"key": run.key, **row} for run, row in zip(runs, rows, strict=True)])
        return
    columns = {"key": [run.key[:12] for run in runs], "run": [run.spec.name for run in runs]}
    typer.echo(Table(columns | {name: [row[name] for row in rows] for name in metrics}, digits=4).text(), nl=False)


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
