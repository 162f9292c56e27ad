"""Train and record the forty tasks of paper/plan.md.

    python -m paper.tasks [--only TASK ...] [--seeds N] [--jobs N] [--store FOLDER] [--records FILE]

A unit of work is a task, a length and a seed: cross-entropy first, then every objective, as the plan says; the first
seed also chooses learning rates. Units go seed by seed, cheap ones first, and each is written to the records when it
is done, so that the same command goes on where it was. Data come from `python -m paper.tasks.fetch`.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from pyarrow import parquet

from focalcal.lab.data import DataSetError, data_folder
from focalcal.lab.store import Run, Store
from focalcal.lab.store.layout import store_folder
from focalcal.lab.studies import run_spec
from focalcal.lab.training import NonFiniteLossError
from focalcal.posthoc import operating_point
from paper.record import RECORDS
from paper.tasks.cells import LENGTHS, OBJECTIVES, SEEDS, TASKS, Task, is_predicted
from paper.tasks.measure import measured
from paper.tasks.records import add_rows, read_rows

RULES = ("last", "nll", "error", "refined")
BY_RULE = ("cross-entropy", "label smoothing", "FCL")  # objectives whose kept epochs are compared
Unit = tuple[str, str, int]


def train(task: Task, name: str, length: str, seed: int, lr: float, lam: float | None, store: Store) -> Run | None:
    """The run; None if its loss was not finite."""
    data = data_folder()
    try:
        return run_spec(task.spec(name, length, seed, lr, table_rows(task, data), lam, data), store, data_dir=data)
    except NonFiniteLossError:
        return None


def table_rows(task: Task, data: Path) -> int:
    """Of a table's file; of what is none so many that batches are large, but for the digits."""
    if task.kind != "table":
        return 0 if task.features == 64 else 10**6
    return int(parquet.read_metadata(data / "tasks" / f"{task.name}.parquet").num_rows)


def chosen_rate(task: Task, name: str, length: str, lam: float | None, rule: str, store: Store) -> float:
    """That with the lowest cross-fitted validation NLL after a temperature, with seed 0."""
    losses = {}
    for lr in task.rates():
        run = train(task, name, length, 0, lr, lam, store)
        losses[lr] = math.inf if run is None else run.record["kept"][rule]["refined_nll"]
    return min(losses, key=lambda lr: losses[lr])


def predicted_lam(run: Run) -> float:
    """By the validation rows of cross-entropy; inf where the rule says to keep it, 0 where no lam distorts enough."""
    try:
        point = operating_point(run.predictions("val"), gamma=3.0, gammas=(3.0,), resamples=200)
    except ValueError:  # labels that are all predicted
        return math.inf
    return max(point.lam, 0.0) if point.helps else math.inf


def recorded_rates(records: Path, task: str, length: str) -> dict[str, float]:
    """By objective the rate that the first seed chose, from its rows; none before these are there."""
    rows = read_rows(records, task=task, length=length, seed=0)
    return {row["objective"]: float(f"{row['lr']:.4g}") for row in rows}  # which are kept in 32 bits


def first_rates(task: Task, length: str, store: Store) -> dict[str, float]:
    """The same from the runs of the first seed, which are trained for it."""
    plain = chosen_rate(task, "cross-entropy", length, None, "last", store)
    lam = lam_of(train(task, "cross-entropy", length, 0, plain, None, store))
    rates = {"cross-entropy": plain, "refined": chosen_rate(task, "cross-entropy", length, None, "refined", store)}
    for name in OBJECTIVES:
        kept = is_predicted(name) and math.isinf(lam)
        rates[name] = plain if kept else chosen_rate(task, name, length, _finite(lam), "last", store)
    return rates


def unit_rows(unit: Unit, store_path: Path, records: Path) -> list[dict[str, Any]]:
    """Train what the unit misses, and measure it."""
    store, (name, length, seed) = Store(store_path, create=True), unit
    task = TASKS[name]
    rates = recorded_rates(records, name, length) or first_rates(task, length, store)
    plain = train(task, "cross-entropy", length, seed, rates["cross-entropy"], None, store)
    lam = lam_of(plain)
    rows = []
    for objective, lr in rates.items():
        trained = objective if objective in OBJECTIVES else "cross-entropy"
        rules = RULES if objective in BY_RULE else RULES[:1] if objective in OBJECTIVES else RULES[-1:]
        if is_predicted(objective) and math.isinf(lam):
            trained, lr = "cross-entropy", rates["cross-entropy"]
        run = train(task, trained, length, seed, lr, _finite(lam), store)
        about = {"task": name, "length": length, "objective": objective, "seed": seed, "lr": lr}
        about["lam"] = lam if is_predicted(objective) else None
        for rule in rules:
            told = {"failed": True} if run is None else measured(name, run, rule, calibrated=rule == "last")
            rows.append({**about, "rule": rule, **told})
    return rows


def lam_of(run: Run | None) -> float:
    """inf of a run that failed."""
    return math.inf if run is None else predicted_lam(run)


def _finite(lam: float) -> float | None:
    return lam if math.isfinite(lam) else None


def units(names: list[str], seeds: int) -> Iterator[Unit]:
    """Seed by seed, what costs little first."""
    costs = {(name, length): size(TASKS[name]) * TASKS[name].epochs(length) for name in names for length in LENGTHS}
    for seed in range(seeds):
        yield from ((*cell, seed) for cell in sorted(costs, key=lambda cell: costs[cell]))


def size(task: Task) -> int:
    """About the training rows, more for large inputs and texts."""
    if task.kind == "table":
        return table_rows(task, data_folder()) * 6 // 10
    if task.kind == "drawn":
        return 2_000
    return (task.train_examples or 45_000) * (4 if task.kind == "text" else 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), metavar="TASK", help="these tasks alone")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--records", type=Path, default=RECORDS / "tasks.parquet")
    asked = parser.parse_args()
    done = {(row["task"], row["length"], row["seed"]) for row in read_rows(asked.records)}
    missing = [unit for unit in units(asked.only or list(TASKS), asked.seeds) if unit not in done]
    print(f"{len(missing)} units of a task, a length and a seed are missing", flush=True)
    work = partial(unit_rows, store_path=store_folder(asked.store), records=asked.records)
    if asked.jobs == 1:
        for unit in missing:
            finish(asked.records, unit, partial(work, unit))
        return
    with ProcessPoolExecutor(asked.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(work, unit): unit for unit in missing}
        for future in as_completed(waiting):
            finish(asked.records, waiting[future], future.result)


def finish(path: Path, unit: Unit, rows: Callable[[], list[dict[str, Any]]]) -> None:
    """Write what a unit says; one whose data are not there is left out."""
    try:
        add_rows(path, rows())
    except (DataSetError, FileNotFoundError) as error:
        print(*unit, f"is left out: {error}", flush=True)
    else:
        print(*unit, flush=True)


if __name__ == "__main__":
    main()
