"""`focalcal runs`: the runs in a store, to list, look at, query, remove and take elsewhere."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from focalcal.cli.options import Json, given
from focalcal.cli.output import plain_failures, print_json
from focalcal.lab.cli.options import StoredRuns, open_store

if TYPE_CHECKING:
    from focalcal.lab.store import Run, Store, StoreProblem

app = typer.Typer(
    help="The runs in a store: list, look at, query, remove, export, and those that failed.",
    epilog="Example: focalcal runs list",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

FAULTY = 1  # exit code of `check` where something is wrong
_SHOWN = ("error", "nll", "ece", "brier")  # metrics of a list, of the test split
_SHORT = 12  # digits of a key

_Key = Annotated[str, typer.Argument(help="The run's key, or how it begins.")]
_Keys = Annotated[list[str], typer.Argument(help="The runs' keys, or how they begin.")]
_DataSet = Annotated[str | None, typer.Option(help="Only runs on this data set.")]
_Model = Annotated[str | None, typer.Option(help="Only runs of this network.")]
_Objective = Annotated[str | None, typer.Option(help="Only runs with this loss.")]
_Seed = Annotated[int | None, typer.Option(help="Only runs with this seed.")]


@app.command("list")
@plain_failures()
def list_runs(
    store: StoredRuns = None,
    data_set: _DataSet = None,
    model: _Model = None,
    objective: _Objective = None,
    seed: _Seed = None,
    as_json: Json = False,
) -> None:
    """What was run, and error, NLL, ECE and Brier score on the test split.

    Example: focalcal runs list --objective fcl --seed 0
    """
    opened = open_store(store)
    runs, problems = opened.survey()
    rows = rows_of(runs, **given(data_set=data_set, model=model, objective=objective, seed=seed))
    if as_json:
        print_json(rows)
    elif rows:
        typer.echo(list_text(rows), nl=False)
    else:
        what = f"none of {len(runs)} runs is such" if runs else "no runs"
        typer.echo(f"{opened.path}: {what}", err=True)
    _print_failures(opened)
    _print_problems(problems)


@app.command()
@plain_failures()
def show(key: _Key, store: StoredRuns = None, as_json: Json = False) -> None:
    """One run: what was run, the metrics of every split, and where it comes from.

    Example: focalcal runs show 2383
    """
    run = open_store(store).run(key)
    epochs = len(run.epochs())
    metrics = {split: run.metrics(split) for split in run.record["metrics"]}
    facts = {"key": run.key, "name": run.spec.name, "path": str(run.path), "spec": run.spec.as_dict()}
    rest = {name: value for name, value in run.record.items() if name != "metrics"}
    if as_json:
        print_json({**facts, "metrics": metrics, **rest, "predictions": run.splits, "stored_epochs": epochs})
        return
    typer.echo(f"{run.spec.name}\nkey       {run.key}\nfolder    {run.path}")
    typer.echo(f"time      {run.record['seconds']:.1f} s, {run.record['epochs']} epochs, {epochs} of them recorded")
    typer.echo(f"files     {', '.join(run.files)}")
    typer.echo(f"evaluated {', '.join(run.evaluations) or 'on its own splits alone'}\n")
    typer.echo(_metrics_table(metrics))
    for title, value in (("spec", facts["spec"]), ("provenance", run.record["provenance"])):
        typer.echo(f"{title}\n{json.dumps(value, indent=2)}")


@app.command()
@plain_failures()
def sql(
    query: Annotated[str, typer.Argument(help="The query, one statement.")],
    store: StoredRuns = None,
    as_json: Json = False,
) -> None:
    """Ask in SQL: test_metrics (one row per run, one column per test metric), runs, metrics and epochs.

    Table metrics has key, split, metric and value: choose a split. Nothing can be changed.

    Example: focalcal runs sql "select objective, avg(ece) from test_metrics group by all"
    """
    from focalcal.pages.tables import Table

    names, rows = _answer(open_store(store), query)
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif rows:
        columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
        typer.echo(Table(columns, digits=4).text(), nl=False)
    else:
        typer.echo(f"no rows; columns: {', '.join(names)}", err=True)


@app.command()
@plain_failures()
def rm(
    keys: _Keys, store: StoredRuns = None, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False
) -> None:
    """Delete runs for good. A damaged or foreign folder must be named in full.

    Example: focalcal runs rm 2383 9fb9
    """
    opened = open_store(store)
    in_runs = [problem for problem in opened.problems() if problem.path.parent.name == "runs"]
    unusable = {problem.path.name: problem.message for problem in in_runs}
    named = dict((key, unusable[key]) if key in unusable else _removable(opened, key) for key in keys)
    for name, what in named.items():
        typer.echo(f"{name}  {what}", err=True)
    many = "this run" if len(named) == 1 else f"these {len(named)} runs"
    if not yes and not typer.confirm(f"delete {many} for good?", err=True):
        typer.echo("nothing was deleted", err=True)
        raise typer.Exit(1)
    opened.remove(named)
    for name in named:
        typer.echo(opened.path / "runs" / name)


@app.command()
@plain_failures()
def export(
    path: Annotated[Path, typer.Argument(help="A .zip, .csv or .parquet file; replaced if it is there.")],
    keys: Annotated[list[str] | None, typer.Argument(help="Runs; default: all.")] = None,
    store: StoredRuns = None,
) -> None:
    """Take runs elsewhere: a .zip that unpacks to a store, or a table with one row per run and split.

    Example: focalcal runs export runs.zip
    """
    opened = open_store(store)
    typer.echo(opened.export(path, keys or None))
    if not keys:
        _print_problems(opened.problems())


@app.command("import")
@plain_failures()
def import_(
    sources: Annotated[list[Path], typer.Argument(help="Stores, or .zip files of `focalcal runs export`.")],
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            help="The folder that runs are taken into, made if it is not there; "
            "default: $FOCALCAL_STORE, else focalcal-runs.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Take the runs of other stores or archives into this one; ends with 1 if some disagree or cannot be read.

    Of runs that both have, evaluations are added; where metrics differ this store's stay.

    Example: focalcal runs import runs.zip colleague/focalcal-runs
    """
    from focalcal.lab.store.imports import import_runs

    opened = open_store(store, create=True)
    imported = {str(source): import_runs(opened, source) for source in sources}
    if as_json:
        print_json(
            {
                source: {name: list(map(str, value)) for name, value in vars(one).items()}
                for source, one in imported.items()
            }
        )
    for source, one in imported.items():
        if not as_json:
            more = f", evaluations of {len(one.evaluated)} added" if one.evaluated else ""
            typer.echo(f"{source}: {len(one.taken)} runs taken, {len(one.found)} were there{more}")
        for conflict in one.conflicts:
            typer.echo(f"conflict: {conflict}", err=True)
        _print_problems(one.problems)
    if any(one.conflicts or one.problems for one in imported.values()):
        raise typer.Exit(FAULTY)


@app.command()
@plain_failures()
def failures(store: StoredRuns = None, as_json: Json = False) -> None:
    """The cells whose last attempt failed, and why; --json has tracebacks and what was printed, too.

    Example: focalcal runs failures --store my-runs
    """
    opened = open_store(store)
    failed = opened.failures()
    if as_json:
        print_json(failed)
        return
    for failure in failed:
        message = " ".join(failure["message"].split())
        name = _spec_text(failure["spec"])
        typer.echo(f"{failure['key'][:_SHORT]}  {name}  {failure['time']}\n    {failure['kind']}: {message}")
    if not failed:
        typer.echo(f"{opened.path}: no failures", err=True)


@app.command()
@plain_failures()
def check(store: StoredRuns = None) -> None:
    """Read every file of every run and compare its checksum; ends with 1 if something is wrong.

    Example: focalcal runs check --store my-runs
    """
    from focalcal.lab.store.layout import RECORD
    from focalcal.lab.store.run_folder import state_of

    runs, problems = open_store(store).survey(contents=True)
    typer.echo(f"{len(runs)} runs are whole")
    for run in runs:
        for name in sorted(state_of(str(run.path)).keys() - set(run.files)):
            if Path(name).name != RECORD:
                typer.echo(f"note: {run.path / name} has no checksum: it was not stored with the run", err=True)
    _print_problems(problems)
    if problems:
        raise typer.Exit(FAULTY)


def rows_of(runs: Iterable[Run], **wanted: Any) -> list[dict[str, Any]]:
    """What a list shows of the runs that have these values, in its order."""
    rows = [{"key": run.key, **run.glance} for run in runs]
    chosen = [row for row in rows if all(row[name] == value for name, value in wanted.items())] if wanted else rows
    return sorted(chosen, key=_order)


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    names = (row["data_set"], row["model"], row["objective"], str(row["objective_options"]))
    return (*names, row["seed"], row["key"])


def list_text(rows: list[dict[str, Any]]) -> str:
    """One line per run, for the terminal; not a `Table`, which takes its time over thousands of rows."""
    titles = ("key", "data set", "model", "objective", "options", "seed", "seconds", *_SHOWN)
    lines = [titles, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    left = titles.index("seed")  # columns of words, before those of numbers
    form = "  ".join(f"{{:{'<' if at < left else '>'}{width}}}" for at, width in enumerate(widths))
    return "".join(f"{form.format(*line)}\n" for line in lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    options = _options_text(row["objective_options"])
    names = (row["key"][:_SHORT], row["data_set"], row["model"], row["objective"], options)
    test = row["test"]
    metrics = [f"{test[name]:.4f}" if name in test and not math.isnan(test[name]) else "-" for name in _SHOWN]
    return (*names, str(row["seed"]), f"{row['seconds']:.1f}", *metrics)


def _options_text(options: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items())


def _spec_text(spec: dict[str, Any]) -> str:
    """As `Spec.name`, which costs what torch costs."""
    what = f"{spec['data_set']}/{spec['model']} {spec['objective']} {_options_text(spec['objective_options'])}"
    return f"{what.rstrip()} seed {spec['seed']}"


def _metrics_table(metrics: dict[str, dict[str, float]]) -> str:
    from focalcal.pages.tables import Table

    names = dict.fromkeys(name for values in metrics.values() for name in values)
    columns: dict[str, list[Any]] = {"split": list(metrics)}
    columns |= {name: [values.get(name, math.nan) for values in metrics.values()] for name in names}
    return Table(columns, digits=4).text()


def _answer(store: Store, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows; errors that appear only while rows are made are errors of the query, too."""
    relation = store.sql(query)
    import duckdb

    from focalcal.lab.store.tables import query_error

    try:
        return relation.columns, relation.fetchall()
    except duckdb.Error as error:
        raise query_error(error) from error


def _removable(store: Store, key: str) -> tuple[str, str]:
    from focalcal.lab.store import RunProblem

    try:
        run = store.run(key)
    except RunProblem as error:
        if error.problem.path.name == key:
            return key, error.problem.message
        raise ValueError(f"{error}; to remove it, give the whole name") from error
    try:
        return run.key, run.spec.name
    except (TypeError, ValueError) as error:
        return run.key, f"its spec cannot be understood: {error}"


def _print_failures(store: Store) -> None:
    for failure in store.failures():
        message = " ".join(failure["message"].split())
        typer.echo(f"failed: {failure['key'][:_SHORT]} {failure['kind']}: {message}", err=True)


def _print_problems(problems: list[StoreProblem]) -> None:
    for problem in problems:
        typer.echo(f"problem: {problem}", err=True)
