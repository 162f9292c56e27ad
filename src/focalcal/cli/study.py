"""`focalcal study`: train what is missing of a grid of objectives, and show its results."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from focalcal.cli import INTERRUPTED
from focalcal.cli.execution import DataDir, Device, Store, TensorBoard, Threads, checked_device, to_go_on
from focalcal.cli.failures import plain_failures
from focalcal.cli.plain_json import Json, print_json

if TYPE_CHECKING:
    from focalcal.experiments.cost import PlannedCell
    from focalcal.experiments.grid import Outcome
    from focalcal.experiments.study import Study
    from focalcal.results import Evaluations, Spec
    from focalcal.results import Store as RunStore

INCOMPLETE = 1  # exit code


class Engine(StrEnum):
    """What runs the cells."""

    local = "local"
    ray = "ray"


def study(
    name: Annotated[str, typer.Argument(help="A shipped study (see --list), or a .toml file.")] = "digits",
    store: Store = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Cells at a time; 0: one a core.", min=0)] = 0,
    smoke: Annotated[bool, typer.Option("--smoke", help="The study's smallest size, to see that it runs.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the cells, what is done, and the cost.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the shipped studies.")] = False,
    executor: Annotated[Engine, typer.Option(help="Processes here, or a Ray cluster.")] = Engine.local,
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster; default: a new one here.", show_default=False)
    ] = None,
    cpus_per_cell: Annotated[float, typer.Option(help="For Ray.", min=0)] = 1.0,
    gpus_per_cell: Annotated[float, typer.Option(help="For Ray.", min=0)] = 0.0,
    device: Device = "cpu",
    threads: Threads = 1,
    data_dir: DataDir = None,
    tensorboard: TensorBoard = None,
    report: Annotated[bool, typer.Option(help="Write the report: page, tables and figures.")] = True,
    as_json: Json = False,
) -> None:
    """Train and evaluate the cells of a study that are not stored yet, and print its results.

    Stopped at any moment, the same command goes on where it was; a finished study is only read.
    """
    with plain_failures(resumable=True):
        from focalcal.experiments.shipped import shipped_studies

        if list_all:
            _print_studies(shipped_studies(), as_json=as_json)
            return
        from focalcal.experiments.study import load_study
        from focalcal.results import Store as RunStore
        from focalcal.results.layout import store_folder
        from focalcal.training.determinism import possible_threads

        chosen = load_study(name)
        specs, evaluations = chosen.specs(smoke=smoke), chosen.evaluations(smoke=smoke)
        folder = store_folder(store)
        device, threads = checked_device(device), possible_threads(threads)
        if dry_run:
            from focalcal.experiments.cost import planned

            there = RunStore(folder, create=False) if folder.exists() else None
            plan = planned(specs, there, evaluations, device=device, threads=threads)
            _print_plan(plan, device=device, jobs=_jobs(jobs), as_json=as_json)
            return
        runs = RunStore(folder)
        options = {
            "device": device,
            "threads": threads,
            "data_dir": data_dir,
            "tensorboard": tensorboard,
        }
        if executor is Engine.local:
            from focalcal.experiments.executors.local import LocalExecutor

            outcome = _run(specs, evaluations, runs, LocalExecutor(_jobs(jobs), options=options))
        else:
            from focalcal.experiments.executors.ray import RayExecutor

            cluster = RayExecutor(address, cpus_per_cell=cpus_per_cell, gpus_per_cell=gpus_per_cell, options=options)
            outcome = _run(specs, evaluations, runs, cluster)
        _print_results(chosen, specs, runs, as_json=as_json)
        if report and not as_json and not outcome.interrupted:
            _write_report(chosen, specs, runs, named=name, smoke=smoke)
        _explain(outcome, specs, evaluations, runs)


def _jobs(asked: int) -> int:
    import os

    if asked:
        return asked
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(specs: list[Spec], evaluations: Evaluations, store: RunStore, executor: Any) -> Outcome:
    from focalcal.analysis.labels import cell_names
    from focalcal.cli.grid_display import grid_display
    from focalcal.experiments.grid import run_grid

    with grid_display(cell_names(specs), cells=len(store.missing(specs, evaluations))) as display:
        return run_grid(specs, store, executor=executor, evaluations=evaluations, on_event=display)


def _print_studies(titles: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json(titles)
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        typer.echo(f"{name:{width}}  {title}")


def _print_plan(plan: list[PlannedCell], *, device: str, jobs: int, as_json: bool) -> None:
    from focalcal.analysis.labels import cell_names
    from focalcal.cli.progress import duration
    from focalcal.reports.tables import Table

    if as_json:
        print_json(
            [
                {
                    "key": one.spec.key,
                    "name": one.spec.name,
                    "done": one.state == "done",
                    "state": one.state,
                    "seconds": one.seconds,
                }
                for one in plan
            ]
        )
        return
    left = [one for one in plan if one.state.startswith("to ")]
    columns: dict[str, list[Any]] = {
        "key": [one.spec.key[:10] for one in plan],
        "cell": list(cell_names([one.spec for one in plan]).values()),
        "state": [one.state for one in plan],
        "about": [
            "-" if one not in left else "not known" if one.seconds is None else duration(one.seconds) for one in plan
        ],
    }
    typer.echo(Table(columns).text(), nl=False)
    counts = [f"{number} {state}" for state in _STATES if (number := sum(one.state == state for one in plan))]
    typer.echo(f"{len(plan)} cells, {', '.join(counts) or '0 to train'}{_total(left, jobs, device)}")


_STATES = ("to train", "to evaluate", "without weights")


def _total(left: list[PlannedCell], jobs: int, device: str) -> str:
    """About how long all of it takes, as far as stored runs tell."""
    from focalcal.cli.progress import duration

    known = [one.seconds for one in left if one.seconds is not None]
    unknown = len(left) - len(known)
    told = f"; about {duration(sum(known) / min(jobs, len(known)))} with {jobs} at a time on {device}" if known else ""
    if not unknown:
        return told
    others = (
        f"; how long {f'{unknown} of them take' if known else 'they take'} is not known: no stored run is like them"
    )
    return told + others


def _print_results(study: Study, specs: list[Spec], store: RunStore, *, as_json: bool) -> None:
    absent = set(store.missing(specs))
    runs = [store.run(spec.key) for spec in specs if spec not in absent]
    if as_json:
        print_json([{"key": run.key, **run.spec.as_dict(), **run.record} for run in runs])
        return
    from focalcal.analysis.evidence import measured
    from focalcal.reports.study_tables.several_metrics import overview

    shown = overview(measured(runs, title=study.title, known=specs))
    if shown is not None:
        titled = replace(shown, title=f"\n{study.title}: {len(runs)} of {len(specs)} cells")
        typer.echo(titled.text(), nl=False)


def _write_report(study: Study, specs: list[Spec], store: RunStore, *, named: str, smoke: bool) -> None:
    """The smallest size has a folder of its own: it must not take the place of the study's.

    Where it cannot be written, in a store that may only be read say, a sentence says so: the table has been printed.
    """
    import shlex
    from tempfile import TemporaryFile

    from focalcal.reports.study_report import FOLDER, write_report
    from focalcal.training.recipes import operating_points

    out = store.path / FOLDER / (f"{study.name}-smoke" if smoke else study.name)
    try:
        out.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=out).close()  # drawing takes longer than finding out
        typer.echo("focalcal: writing the report", err=True)
        made = write_report(
            store,
            specs=specs,
            title=f"{study.title} (smallest size)" if smoke else study.title,
            temperature=study.temperature,
            out=out,
            operating_points=operating_points(),
        )
    except OSError as error:
        elsewhere = shlex.join(["focalcal", "report", str(store.path), "--study", named, "--out"])
        remedy = "" if smoke else f"; write it elsewhere with: {elsewhere} FOLDER"
        typer.echo(f"focalcal: the report cannot be written to {out}: {error.strerror or error}{remedy}", err=True)
        return
    typer.echo(f"\nreport: {made.page}")


def _explain(outcome: Outcome, specs: list[Spec], evaluations: Evaluations, store: RunStore) -> None:
    """What is missing, why, and what to do about it; the exit code says that something is."""
    from focalcal.analysis.labels import cell_names
    from focalcal.experiments.completeness import gaps

    missing = gaps(specs, store, evaluations)
    stored = f"{len(specs) - len(store.missing(specs, evaluations))} of {len(specs)} cells are stored in {store.path}"
    if not missing:
        typer.echo(f"focalcal: {stored}", err=True)
        return
    names = cell_names(specs)
    why = {failure["key"]: f"{failure['kind']}: {failure['message']}" for failure in store.failures()}
    if not outcome.interrupted:
        for gap in missing:
            typer.echo(f"focalcal: {names[gap.key]}: {why.get(gap.key, gap.what)}", err=True)
    typer.echo(f"focalcal: {'interrupted; ' if outcome.interrupted else ''}{stored}; {to_go_on()}", err=True)
    raise typer.Exit(INTERRUPTED if outcome.interrupted else INCOMPLETE)
