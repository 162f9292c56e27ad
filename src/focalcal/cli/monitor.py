"""`focalcal monitor`: does it still hold, looked at as often as one likes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from focalcal.cli.options import FILE_FLAGS, Json, RowOptions, given, takes
from focalcal.cli.output import plain_failures, print_json

if TYPE_CHECKING:
    from focalcal.auditing import Monitor, MonitorVerdict

ALARM = 1  # exit code of a stream that does not hold


class _Monitor(TyperGroup):
    """`monitor state.json new.parquet` is `monitor update state.json new.parquet`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the command that is meant."""
        if args and args[0] not in (*self.commands, "--help"):
            args = ["update", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Monitor,
    help="Say whether probabilities still hold, with a bounded probability of ever raising a false alarm.",
    epilog="Example: focalcal monitor update state.json new.parquet",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command()
@plain_failures(flags=FILE_FLAGS)
@takes(table=RowOptions)
def update(
    table: RowOptions,
    state: Annotated[Path, typer.Argument(help="The monitor's state, a JSON file; made by the first call.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Partitions: .csv, .parquet, .npz or .npy files, or folders of parts of one partition."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Predictions that say what 'still' means; without, it means calibrated.")
    ] = None,
    within: Annotated[
        float | None, typer.Option(help="How far outcomes may be from the scores, 0.02 for 2 points.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="The probability of ever raising an alarm although all holds; 0.05.")
    ] = None,
    period: Annotated[
        str | None, typer.Option(help="hour, day, week, month, quarter or year; partition if there are no times.")
    ] = None,
    at: Annotated[str | None, typer.Option(help="The period of rows that have no times, such as 2026-03-01.")] = None,
    mature: Annotated[
        str | None, typer.Option(help="How long outcomes take to be known, such as 90d: younger periods wait.")
    ] = None,
    as_of: Annotated[str | None, typer.Option(help="The date that --mature is judged at; by default now.")] = None,
    unlabelled: Annotated[
        bool, typer.Option("--unlabelled", help="The files have no outcomes yet: say what is to be expected.")
    ] = False,
    outcomes: Annotated[
        Path | None, typer.Option(help="A table of ids and labels that came later, for the rows of the files.")
    ] = None,
    corrected: Annotated[
        Path | None,
        typer.Option(help="With --unlabelled and --baseline: write probabilities corrected for the label shift."),
    ] = None,
    add_only: Annotated[
        bool, typer.Option("--add-only", help="Count the rows without a test, as workers do before a merge.")
    ] = False,
    run_length: Annotated[
        float | None, typer.Option(help="How many periods pass between wrong hints at a break, on average; 1000.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The name of the model; a state of another name is refused.")
    ] = None,
    event: Annotated[
        str | None, typer.Option(help="The class whose probability is followed; by default the predicted class.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the page to this .html file, or as monitor.html into this folder.")
    ] = None,
    prometheus: Annotated[
        Path | None, typer.Option(help="Write gauges for node_exporter's textfile collector.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write a JUnit file for CI systems.")] = None,
    as_json: Json = False,
) -> None:
    """Count new rows, and say whether the probabilities still hold; the word update may be left out.

    Exit codes: 0 if all holds, 1 after an alarm, 2 for input that cannot be used, 3 for any other error.

    Example: focalcal monitor update state.json new.parquet --times when --baseline val.parquet
    """
    from focalcal.auditing.monitor_files import baseline_from_files, update_from_files
    from focalcal.auditing.monitoring import Monitor
    from focalcal.core.checks import rounding_collected, warn_of_rounding

    columns = table.reading()
    if out is not None and (out.is_dir() or not out.suffix):
        out.mkdir(parents=True, exist_ok=True)
        out = out / "monitor.html"
    for path in (out, prometheus, junit, corrected, state):  # before anything is counted
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(f"the folder of {str(path)!r} must exist; create it first")
    if unlabelled and outcomes is not None:
        raise ValueError("--unlabelled and --outcomes contradict each other; give one")
    chosen = given(alpha=alpha, within=within, period=period, run_length=run_length, model=model, event=event)
    if state.exists():
        monitor = Monitor.load(state)
        monitor.check(**chosen)
    elif not files and baseline is None:  # a scheduled job with a wrong name would look at nothing for ever
        raise ValueError(f"the state {str(state)!r} must exist where no rows are given; check its name, or give rows")
    else:
        monitor = Monitor(**chosen)
    if baseline is not None:
        baseline_from_files(monitor, baseline, columns)
    options = given(at=at, mature=None if mature is None else _duration(mature), as_of=as_of)
    if corrected is not None and len(files or ()) != 1:
        raise ValueError(f"--corrected is for one file at a time, got {len(files or ())}; call the command for each")
    if unlabelled:
        options |= {"source": baseline if table.confidence is None else None, "corrected": corrected}
    for file in files or ():
        with rounding_collected() as misses:
            done = update_from_files(monitor, file, columns, unlabelled=unlabelled, outcomes=outcomes, **options)
        for name, miss in misses.items():
            warn_of_rounding(
                name, miss, used="used as they are" if table.normalize is None else "divided by their sums"
            )
        for note in _notes(file, done):
            typer.echo(f"focalcal: note: {note}", err=True)
    if not monitor.pieces or add_only:
        monitor.save(state)
        typer.echo(_without_test(monitor))
        return
    verdict = monitor.look()
    monitor.save(state)
    _report(verdict, out, prometheus, junit, as_json)


@app.command()
@plain_failures()
def merge(
    state: Annotated[Path, typer.Argument(help="The state that goes on; its looks count.")],
    others: Annotated[list[Path], typer.Argument(help="States of the same model, by other processes.")],
) -> None:
    """Count the partitions of other states in this one, each content once. The next update tests them.

    Example: focalcal monitor merge state.json worker-1.json worker-2.json
    """
    from focalcal.auditing.monitoring import Monitor

    monitor = Monitor.load(state)
    added = monitor.merge(*map(Monitor.load, others))
    monitor.save(state)
    typer.echo(f"{added:,} rows were added to {state}; 'focalcal monitor {state}' tests them.")


def _report(
    verdict: MonitorVerdict, out: Path | None, prometheus: Path | None, junit: Path | None, as_json: bool
) -> None:
    from focalcal.core.atomic import write_atomically

    if out is not None:
        verdict.html(out)
    if prometheus is not None:
        write_atomically(prometheus, verdict.prometheus().encode())
    if junit is not None:
        write_atomically(junit, verdict.junit())
    if as_json:
        print_json(verdict.record())
    else:
        typer.echo(verdict.sentence)
        for forecast in verdict.forecasts[-3:]:
            typer.echo(forecast.sentence)
        if out is not None:
            typer.echo(out)
    if verdict.alarm:
        raise typer.Exit(ALARM)


def _without_test(monitor: Monitor) -> str:
    from focalcal.auditing.monitor_forecast import forecasts_of

    said = [forecast.sentence for forecast in forecasts_of(monitor)[-3:]]
    rows = sum(piece.rows for piece in monitor.pieces)
    return "\n".join([f"{rows:,} rows with outcomes are counted; nothing was tested.", *said])


def _notes(file: Path, done: Any) -> list[str]:
    notes = []
    if done.repeated:
        notes.append(f"{file} was counted before in {_listed(done.repeated)}, and is not counted again.")
    if done.waiting:
        notes.append(
            f"{done.rows_waiting:,} rows of {file} wait for their outcomes to mature: {_listed(done.waiting)}."
        )
    return notes


def _listed(periods: tuple[str, ...]) -> str:
    names = ", ".join(periods[:3])
    return f"{'partition ' if periods[0].isdecimal() else ''}{names}{', ...' if len(periods) > 3 else ''}"


def _duration(text: str) -> Any:
    import numpy as np

    match = re.fullmatch(r"(\d{1,6})\s*([hdw])", text.strip())
    if match is None:
        raise ValueError(f"--mature must be a number of hours, days or weeks, got {text!r}; for example 90d")
    return np.timedelta64(int(match[1]) * {"h": 1, "d": 24, "w": 168}[match[2]], "h")
