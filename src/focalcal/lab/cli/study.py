"""`focalcal study`: train what is missing of a grid of objectives, and show its results."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from focalcal.cli import INTERRUPTED
from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json, to_go_on
from focalcal.core.processors import available_processors
from focalcal.lab.cli.options import (
    Address,
    CpusPerCell,
    DataDir,
    Device,
    Engine,
    Executors,
    GpusPerCell,
    Jobs,
    Seeds,
    Store,
    TensorBoard,
    Threads,
    check_device,
    chosen_executor,
    open_store,
    report_options,
)
from focalcal.lab.cli.watch import StudyActivity, live_page

if TYPE_CHECKING:
    from focalcal.lab.evidence.labels import Labels
    from focalcal.lab.studies import StudyResult
    from focalcal.lab.studies.planning import PlannedCell

INCOMPLETE = 1  # exit code
_LEFT = ("to train", "to evaluate", "without weights")  # states of cells that are not done


@plain_failures(resumable=True)
def study(
    name: Annotated[
        str | None, typer.Argument(help="A shipped study, or a .toml file. Without a name the studies are listed.")
    ] = None,
    store: Store = None,
    jobs: Jobs = 0,
    seeds: Seeds = None,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Run the study's smallest size, to see that it works.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="List the cells, which of them are done, and about how long the others take; train nothing. Code of "
            "your own is called once, and a store that cannot be written to is refused.",
        ),
    ] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the shipped studies.")] = False,
    executor: Executors = Engine.local,
    address: Address = None,
    cpus_per_cell: CpusPerCell = 1.0,
    gpus_per_cell: GpusPerCell = 0.0,
    device: Device = "cpu",
    threads: Threads = 1,
    data_dir: DataDir = None,
    tensorboard: TensorBoard = None,
    report: Annotated[bool, typer.Option(help="Write the report: page, tables and figures.")] = True,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Serve the page on this machine while cells are being run, at the address that is printed."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Train and evaluate the cells of a study that are not stored yet, and print its results.

    Stopped at any moment, the same command goes on where it was; a finished study is only read.

    Example: focalcal study digits --jobs 2
    """
    if list_all or name is None:
        _print_studies(as_json=as_json)
        return
    from focalcal.lab.cli.progress import grid_display
    from focalcal.lab.evidence.labels import cell_names
    from focalcal.lab.store.layout import store_folder
    from focalcal.lab.studies import load_study, plan_study, run_study
    from focalcal.lab.training.determinism import possible_threads

    chosen, folder = load_study(name, seeds=seeds, data_dir=data_dir), store_folder(store)
    device, threads, jobs = check_device(device), possible_threads(threads), jobs or available_processors()
    options = {"device": device, "threads": threads, "data_dir": data_dir, "tensorboard": tensorboard}
    where = chosen_executor(executor, jobs, address, cpus_per_cell, gpus_per_cell, **options)
    if dry_run:
        plan = plan_study(chosen, folder, smoke=smoke, data_dir=data_dir, device=device, threads=threads)
        _print_plan(plan, chosen.labels(smoke), device=device, jobs=jobs, as_json=as_json)
        return
    activity = StudyActivity()
    page = live_page([open_store(folder, create=True)], chosen, smoke=smoke, activity=activity) if watch else None
    with page or nullcontext() as server:
        with grid_display(cell_names(chosen.specs(smoke), chosen.labels(smoke))) as activity.display:
            result = run_study(chosen, folder, where, smoke=smoke, on_event=activity.display)
        activity.interrupted = result.outcome.interrupted
        print_results(result, as_json=as_json)
        if report and not as_json and not result.outcome.interrupted:
            write_study_report(result, named=name)
        if server is not None and not result.outcome.interrupted:
            server.wait_for_pages()
    print_gaps(result)


def _print_studies(*, as_json: bool) -> None:
    from focalcal.lab.studies.shipped import shipped_studies

    titles = shipped_studies()
    if as_json:
        print_json(titles)
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        typer.echo(f"{name:{width}}  {title}")


def _print_plan(plan: list[PlannedCell], labels: Labels, *, device: str, jobs: int, as_json: bool) -> None:
    from focalcal.lab.cli.progress import duration
    from focalcal.lab.evidence.labels import cell_names
    from focalcal.pages.tables import Table

    if as_json:
        print_json(
            [
                {
                    "key": cell.spec.key,
                    "name": cell.spec.name,
                    "done": cell.state == "done",
                    "state": cell.state,
                    "seconds": cell.seconds,
                }
                for cell in plan
            ]
        )
        return
    left = [cell for cell in plan if cell.state.startswith("to ")]
    columns: dict[str, list[Any]] = {
        "key": [cell.spec.key[:10] for cell in plan],
        "cell": list(cell_names([cell.spec for cell in plan], labels).values()),
        "state": [cell.state for cell in plan],
        "about": [
            "-" if cell not in left else "not known" if cell.seconds is None else duration(cell.seconds)
            for cell in plan
        ],
    }
    typer.echo(Table(columns).text(), nl=False)
    counts = [f"{number} {state}" for state in _LEFT if (number := sum(cell.state == state for cell in plan))]
    typer.echo(f"{len(plan)} cells, {', '.join(counts) or '0 to train'}{_total(left, jobs, device)}")


def _total(left: list[PlannedCell], jobs: int, device: str) -> str:
    """About how long all of it takes, as far as stored runs tell."""
    from focalcal.lab.cli.progress import duration

    known = [cell.seconds for cell in left if cell.seconds is not None]
    unknown = len(left) - len(known)
    told = f"; about {duration(sum(known) / min(jobs, len(known)))} with {jobs} at a time on {device}" if known else ""
    if not unknown:
        return told
    others = (
        f"; how long {f'{unknown} of them take' if known else 'they take'} is not known: no stored run is like them"
    )
    return told + others


def print_results(result: StudyResult, *, as_json: bool) -> None:
    """The table of its runs."""
    if as_json:
        print_json([{"key": run.key, **run.spec.as_dict(), **run.record} for run in result.runs])
        return
    from focalcal.lab.evidence.evidence import gather_metrics
    from focalcal.lab.report.study_tables.several_metrics import overview

    title, specs, labels = result.study.title, result.specs, result.study.labels(result.smoke)
    shown = overview(gather_metrics(result.runs, title=title, known=specs, labels=labels))
    if shown is not None:
        titled = replace(shown, title=f"\n{title}: {len(result.runs)} of {len(specs)} cells")
        typer.echo(titled.text(), nl=False)


def write_study_report(result: StudyResult, *, named: str) -> None:
    """Where it cannot be written, in a store that may only be read say, a sentence says so: the table was printed."""
    import shlex
    from tempfile import TemporaryFile

    from focalcal.lab.report.report_folder import FOLDER, write_report

    out = result.store.path / FOLDER / result.name
    try:
        out.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=out).close()  # drawing takes longer than finding out
        typer.echo("focalcal: writing the report", err=True)
        written = write_report(
            result.store,
            out=out,
            **report_options(result.study, smoke=result.smoke),
        )
    except OSError as error:
        elsewhere = shlex.join(["focalcal", "report", "--store", str(result.store.path), "--study", named, "--out"])
        remedy = "" if result.smoke else f"; write it elsewhere with: {elsewhere} FOLDER"
        typer.echo(f"focalcal: the report cannot be written to {out}: {error.strerror or error}{remedy}", err=True)
        return
    typer.echo(f"\nreport: {written.page}")


def print_gaps(result: StudyResult) -> None:
    """What is missing, why, and what to do about it; the exit code says that something is."""
    from focalcal.lab.evidence.labels import cell_names

    stored = f"{result.complete} of {len(result.specs)} cells are stored in {result.store.path}"
    if not result.gaps:
        typer.echo(f"focalcal: {stored}", err=True)
        return
    interrupted = result.outcome.interrupted
    if not interrupted:
        names = cell_names(result.specs, result.study.labels(result.smoke))
        for gap in result.gaps:
            typer.echo(f"focalcal: {names[gap.key]}: {gap}", err=True)
    typer.echo(f"focalcal: {'interrupted; ' if interrupted else ''}{stored}; {to_go_on()}", err=True)
    raise typer.Exit(INTERRUPTED if interrupted else INCOMPLETE)
