"""`python -m paper.operating_point`: predict lam from cross-entropy runs, train FCL there, and see whether it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from focalcal.cli import INTERRUPTED
from focalcal.cli.options import Json
from focalcal.cli.output import plain_failures, print_json, to_go_on
from focalcal.lab.cli.options import DataDir, Device, Jobs, Seeds, Store, check_device, open_store
from paper import STUDIES

if TYPE_CHECKING:
    from focalcal.lab.store import Spec
    from focalcal.pages.tables import Table
    from paper.operating_point.trial import Trial, TrialVerdict

# of a trial: the title, factor and decimals of its mean
_SHOWN = {
    "lam": ("lam", 1, 2),
    "temperature": ("T", 1, 3),
    "miss": ("|log T|", 1, 3),
    "ece": ("ECE %", 100, 2),
    "nll": ("NLL", 1, 3),
    "scaled_nll": ("NLL with T", 1, 3),
    "error": ("error %", 100, 1),
}


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@plain_failures(resumable=True)
def operating_point_study(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Study files, whose cross-entropy cells the predictions are made from; by default "
            "paper/studies/operating-point.toml and operating-point-real.toml."
        ),
    ] = None,
    store: Store = None,
    jobs: Jobs = 2,
    seeds: Seeds = None,
    device: Device = "cpu",
    data_dir: DataDir = None,
    out: Annotated[Path | None, typer.Option(help="Write every cell to this .csv file.")] = None,
    as_json: Json = False,
) -> None:
    """Train cross-entropy, FCL at the lam that it predicts, and controls; print what temperature each then needs.

    Cells that are stored are not trained again. Stopped at any moment, the same command goes on where it was.

    Example: python -m paper.operating_point paper/studies/operating-point.toml --jobs 2 --out operating-point.csv
    """
    from focalcal.lab.cli.progress import grid_display
    from focalcal.lab.studies import LocalExecutor, load_study
    from paper.operating_point.study import run_operating_points
    from paper.operating_point.trial import verdict
    from paper.record import origin, write_table

    chosen = names or [str(STUDIES / f"{name}.toml") for name in ("operating-point", "operating-point-real")]
    studies = [load_study(name, seeds=seeds, data_dir=data_dir) for name in chosen]
    baselines = [spec for study in studies for spec in study.specs() if spec.objective == "ce"]
    kept = open_store(store, create=True)
    executor = LocalExecutor(jobs, options={"device": check_device(device), "data_dir": data_dir})
    with grid_display() as display:
        trials, interrupted = run_operating_points(baselines, kept, executor, on_event=display)
    rows = _rows(trials, baselines)
    if out is not None:
        runs = [kept.run(trial.key) for trial in trials]
        origins = [origin(run) for run in runs]
        write_table(out, [row | known for row, known in zip(rows, origins, strict=True)])
    counts = verdict(trials)
    if as_json:
        print_json({"trials": [trial.record() for trial in trials], "verdict": vars(counts)})
    else:
        typer.echo(_means(rows).text(), nl=False)
        typer.echo(f"\n{_verdict_text(counts)}")
    if interrupted:
        typer.echo(f"focalcal: interrupted; {len(trials)} cells are stored; {to_go_on()}", err=True)
        raise typer.Exit(INTERRUPTED)


def _verdict_text(counts: TrialVerdict) -> str:
    within, kept = f"{counts.within} of {counts.helped}", f"{counts.right} of {counts.kept}"
    return (
        f"|log T| <= {counts.tolerance:g} in {within} predicted cells where FCL is said to help\n"
        f"cross-entropy no farther from T = 1 than FCL(3, 1) in {kept} cells where it is said to be kept"
    )


def _rows(trials: list[Trial], baselines: list[Spec]) -> list[dict[str, Any]]:
    """One row per cell."""
    from focalcal.lab.evidence.labels import run_labels

    if not trials:
        raise ValueError("no cell of the studies is stored, so there is nothing to show; see what failed above")
    labels = run_labels(baselines)
    return [{"setting": labels[trial.baseline].setting, **trial.record()} for trial in trials]


def _means(rows: list[dict[str, Any]]) -> Table:
    """One row per setting, role and gamma: means over the seeds."""
    from focalcal.pages.numbers import Mean
    from focalcal.pages.tables import Table

    settings = list(dict.fromkeys(row["setting"] for row in rows))
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: settings.index(row["setting"])):
        groups.setdefault((row["setting"], row["role"], row["gamma"]), []).append(row)
    shown: dict[str, Any] = dict(zip(("setting", "role", "gamma"), map(list, zip(*groups, strict=True)), strict=True))
    for name, (title, factor, decimals) in _SHOWN.items():
        shown[title] = [Mean([factor * row[name] for row in group], decimals=decimals) for group in groups.values()]
    return Table(shown)


if __name__ == "__main__":
    app()
