"""Does what the comparison with equal validation access found hold with new seeds?

    python -m paper.confirmation TASK [--jobs N] [--store FOLDER]

Two claims: the recipe of paper/equal_access.py, and label smoothing with the calibrator that cross-fitting chooses,
which stood out in its tables, have a lower NLL and a lower ECE than cross-entropy with a temperature and than AdaFocal.
What records/equal-access-TASK.csv says was chosen is trained with ten seeds that had no part in that; nothing is chosen
again but the calibrator of each run, on its validation rows. Rows go to records/confirmation-TASK.csv after every seed;
rows that are there are kept, so that the same command goes on where it was.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path

from focalcal.lab.studies.tuning.candidates import TuneCandidate, candidate
from paper.equal_access import Choice, measured_rows, problem_of, tasks, write
from paper.trials import Trials, seeds_of

SEEDS = range(10, 20)
USED = {
    ("cross-entropy", "with T"),
    ("cross-entropy", "calibrated"),
    ("AdaFocal", "as it is"),
    ("AdaFocal", "with T"),
    ("AdaFocal", "calibrated"),
    ("label smoothing", "calibrated"),
    ("recipe", "calibrated"),
}


def recorded_choices(task: str) -> list[Choice]:
    """What each method chose with the first seed, from the record of that comparison."""
    trials = Trials.read(f"equal-access-{task}")
    by_seed = seeds_of(trials)
    twins = {key for key, values in by_seed.items() if values == by_seed["recipe", "calibrated"]}
    averaged = any(method.startswith("averaged") for method, _ in twins)  # the recipe is one of the other methods
    rows = trials.where(lambda row: (row["method"], row["used"]) in USED).rows
    found = {(row["method"], row["used"]): (row["choice"], row["lr"]) for row in rows}
    return [
        Choice(method, use, option(choice, lr), averaged and method == "recipe")
        for (method, use), (choice, lr) in found.items()
    ]


def option(name: str, lr: float) -> TuneCandidate:
    """The objective and options of `fcl(gamma=3, lam=9.71)`, at a learning rate."""
    options = {key: float(value) for key, value in re.findall(r"(\w+)=([^,)]+)", name)}
    return replace(candidate(name.partition("(")[0], **options), lr=lr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=list(tasks()))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--store", type=Path)
    asked = parser.parse_args()
    name = f"confirmation-{asked.task}"
    chosen, rows = recorded_choices(asked.task), list(Trials.read(name).rows)
    with problem_of(tasks()[asked.task], asked.jobs, asked.store) as problem:
        for seed in SEEDS:
            there = {(row["method"], row["used"]) for row in rows if row["seed"] == seed}
            missing = [choice for choice in chosen if (choice.method, choice.use) not in there]
            rows += measured_rows(problem, asked.task, missing, seed)
            where = write(name, sorted(rows, key=lambda row: row["seed"]))
    print(where)


if __name__ == "__main__":
    main()
