"""Do two jobs finish a grid nearly twice as fast as one, and what do process and store cost a cell?

    python benchmarks/grid.py [--rounds N] [--cells N] [--epochs N]

Cells of the study `digits`, really trained, in a new store each time, with one job and with two in turn. Wall-clock
seconds, medians, and the ratio of each round, since the rounds of a busy machine differ. Load from elsewhere takes
from the second job, so the load average is printed; the number means something only where it is near zero beforehand.

To reach: two jobs at least 1.7 times as fast as one; the store under 50 ms a cell; a finished grid starts nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from focalcal.lab.store import Spec
from focalcal.lab.store.store import Store
from focalcal.lab.studies import load_study
from focalcal.lab.studies.events import Event
from focalcal.lab.studies.executors.local import LocalExecutor
from focalcal.lab.studies.grid import Outcome, run_grid
from focalcal.lab.studies.spec_builder import recipe_of, spec_of


def grid(cells: int, epochs: int | None) -> list[Spec]:
    """The first cells of the study, by default trained for as long as it says."""
    specs = load_study("digits").specs()[:cells]
    if epochs is None:
        return specs
    return [
        spec_of(replace(recipe_of(one), epochs=epochs), one.objective, one.objective_options, seed=one.seed)
        for one in specs
    ]


def timed(specs: list[Spec], store: Store, jobs: int) -> tuple[float, Outcome, list[Event]]:
    events: list[Event] = []
    start = time.perf_counter()
    outcome = run_grid(specs, store, executor=LocalExecutor(jobs), on_event=events.append)
    return time.perf_counter() - start, outcome, events


def seconds_to_add(finished: Store, other: Store) -> list[float]:
    """What it takes to store each run, again and elsewhere."""
    times = []
    for run in finished.runs():
        predictions = [run.predictions(split) for split in run.splits]
        start = time.perf_counter()
        other.add(run.spec, record=run.record, epochs=run.path / "epochs.jsonl", predictions=predictions)
        times.append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="of one job and two jobs each (default 3)")
    parser.add_argument("--cells", type=int, default=6, help="an even number leaves no job idle (default 6)")
    parser.add_argument("--epochs", type=int, help="instead of the recipe's")
    arguments = parser.parse_args()
    specs = grid(arguments.cells, arguments.epochs)
    print(f"{len(specs)} cells of {recipe_of(specs[0]).epochs} epochs, {os.cpu_count()} cores")
    print(f"load average before: {os.getloadavg()[0]:.2f}")
    times: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        timed(grid(1, 1), Store(Path(folder) / "first"), 1)  # starts the server that cells are forked from
        for turn in range(arguments.rounds):
            for jobs in (1, 2):
                store = Store(Path(folder) / f"{turn}-{jobs}")
                seconds, outcome, _ = timed(specs, store, jobs)
                if len(outcome.done) != len(specs):
                    raise SystemExit(f"cells failed, so the times mean nothing: {store.failures()}")
                times[jobs].append(seconds)
        again, outcome, events = timed(specs, store, 2)
        adding = seconds_to_add(store, Store(Path(folder) / "other"))
    print(f"load average after: {os.getloadavg()[0]:.2f}\n\n| jobs | seconds, median | each |\n|---|---:|---|")
    for jobs, seconds_each in times.items():
        print(f"| {jobs} | {statistics.median(seconds_each):.1f} | {', '.join(f'{one:.1f}' for one in seconds_each)} |")
    ratios = [one / two for one, two in zip(times[1], times[2], strict=True)]
    print(f"\ntwo jobs against one: {statistics.median(times[1]) / statistics.median(times[2]):.2f} times as fast")
    print(f"round by round: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    print(f"store: {1000 * statistics.median(adding):.1f} ms a cell, at most {1000 * max(adding):.1f}")
    print(f"finished grid again: {again:.3f} s, {len(events)} events, {len(outcome.found)} cells found")


if __name__ == "__main__":
    main()
