"""Every method with the same validation rows: which one has the lowest test NLL and ECE?

    python results/equal_access.py TASK [--seeds N] [--jobs N] [--store FOLDER]

A method is a menu of runs. Validation NLL of the first seed chooses from the menu: as it is, for use without a
temperature, and cross-fitted over five folds, for use with one. The choices are then trained with every seed, a
temperature is fitted on all validation rows, and test rows are read once. Rows go to records/equal-access-TASK.csv.
Every run is in the store, so that the same command goes on where it was.

cross-entropy    four learning rates
AdaFocal         four learning rates
FCL              gamma = 3, matched, lam predicted by cross-entropy's validation rows, four learning rates
label smoothing  four amounts, at cross-entropy's learning rate
smoothed FCL     four amounts of label smoothing, at FCL's learning rate
tune             what `focalcal.tune` chooses with sixteen trials, the learning rate among what it searches
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from record import RECORDS, measured

from focalcal.cli.progress import grid_display
from focalcal.core.atomic import write_atomically
from focalcal.experiments import LocalExecutor
from focalcal.experiments.operating_point_trial import scores_as_logits
from focalcal.experiments.spec_builder import override_recipe
from focalcal.posthoc import operating_point
from focalcal.reports.tables import Table
from focalcal.results import Protocol, Run, Store
from focalcal.results.layout import store_folder
from focalcal.training import Recipe, recipe
from focalcal.tuning import tune
from focalcal.tuning.candidates import Candidate, candidate
from focalcal.tuning.search import Problem

RATES = (0.03, 0.1, 0.3, 1.0)  # times the recipe's
AMOUNTS = (0.05, 0.1, 0.2, 0.3)


@dataclass(frozen=True)
class Task:
    """A recipe, and which of its examples are used."""

    recipe: Recipe
    protocol: Protocol
    seeds: int


def tasks() -> dict[str, Task]:
    """By name; a run of each takes a minute or less on one core."""
    texts = {"length": 48, "validation": 2_000}
    some = Protocol(train_examples=4_000, allow_partial=True, evaluate_every=10_000)
    return {
        "digits": Task(recipe("teacher_overfit_mlp_lite"), Protocol(), 10),
        "ag-news": Task(override_recipe(recipe("ag_news_gp_cnn"), {"epochs": 4, "data_options": texts}), some, 10),
        "newsgroups": Task(
            override_recipe(recipe("newsgroups_gp_cnn"), {"epochs": 5, "data_options": {"length": 64}}), some, 5
        ),
        "cifar10": Task(override_recipe(recipe("cifar10_resnet8_lite"), {"epochs": 10}), some, 5),
    }


def trained(problem: Problem, options: Iterable[Candidate], seed: int = 0) -> dict[Candidate, Run]:
    """The runs of the options that could be trained."""
    runs, interrupted = problem.train(options, seed)
    if interrupted:
        raise SystemExit("interrupted; the same command goes on")
    return runs


def choices(problem: Problem, jobs: int) -> dict[str, dict[bool, Candidate]]:
    """What each method chooses, for use with and without a temperature."""
    rates = [factor * problem.recipe.optimizer.lr for factor in RATES]
    chosen = {
        name: best(problem, [replace(candidate(objective), lr=rate) for rate in rates])
        for name, objective in (("cross-entropy", "ce"), ("AdaFocal", "adafocal"))
    }
    plain = chosen["cross-entropy"][True]
    matched = {"gamma": 3.0, "lam": predicted_lam(problem, plain)}
    chosen["FCL"] = best(problem, [replace(candidate("fcl", **matched), lr=rate) for rate in rates])
    smoothed = [replace(candidate("ls", epsilon=amount), lr=plain.lr) for amount in AMOUNTS]
    chosen["label smoothing"] = best(problem, smoothed)
    rate = chosen["FCL"][True].lr
    both = [replace(candidate("fcl", **matched, label_smoothing=amount), lr=rate) for amount in AMOUNTS]
    chosen["smoothed FCL"] = best(problem, both)
    chosen["tune"] = tuned(problem, jobs)
    return chosen


def best(problem: Problem, menu: list[Candidate]) -> dict[bool, Candidate]:
    """With and without a temperature, by validation NLL of the first seed."""
    judged = {
        option: problem.judgement(run)
        for option, run in trained(problem, menu).items()
        if all(map(math.isfinite, run.metrics("val").values()))
    }
    return {
        scaled: min(judged, key=lambda option: judged[option].mean("nll", scaled=scaled)) for scaled in (False, True)
    }


def predicted_lam(problem: Problem, option: Candidate) -> float:
    """By cross-entropy's validation rows; 0 where even that distorts too little."""
    point = operating_point(trained(problem, [option])[option].predictions("val"), gamma=3.0)
    return float(f"{max(point.lam, 0.0):.3g}") if math.isfinite(point.lam) else 8.0


def tuned(problem: Problem, jobs: int) -> dict[bool, Candidate]:
    """What `tune` chooses."""
    result = tune(
        problem.recipe,
        problem.store,
        protocol=problem.protocol,
        trials=16,
        seeds=1,
        learning_rate=True,
        executor=problem.executor,
        jobs=jobs,
        on_event=problem.on_event,
    )
    if result.interrupted:
        raise SystemExit("interrupted; the same command goes on")
    return {result.winner.scaled: result.winner.candidate}


def test_rows(problem: Problem, run: Run, *, scaled: bool) -> dict[str, float | None]:
    """What is measured on test rows, with the temperature of the validation rows or without."""
    test = run.predictions("test")
    temperature = problem.judgement(run).temperature if scaled else 1.0
    probs = (scores_as_logits(test) / (temperature if math.isfinite(temperature) else 1.0)).softmax(1)
    return {"temperature": temperature, **measured(probs, test)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=list(tasks()))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--store", type=Path)
    asked = parser.parse_args()
    task = tasks()[asked.task]
    with grid_display() as display:
        problem = Problem(
            recipe=task.recipe,
            objectives=(),
            optimizer={},
            criteria=("nll",),
            protocol=task.protocol,
            store=Store(store_folder(asked.store)),
            executor=LocalExecutor(asked.jobs),
            on_event=display,
        )
        chosen = choices(problem, asked.jobs)
        options = {option for by_use in chosen.values() for option in by_use.values()}
        seeds = [trained(problem, options, seed) for seed in range(asked.seeds or task.seeds)]
    rows = [
        {
            "task": asked.task,
            "method": method,
            "used": "with T" if scaled else "as it is",
            "seed": seed,
            "choice": replace(option, lr=None).name,
            "lr": option.lr or task.recipe.optimizer.lr,
            **test_rows(problem, runs[option], scaled=scaled),
        }
        for method, by_use in chosen.items()
        for scaled, option in by_use.items()
        for seed, runs in enumerate(seeds)
        if option in runs
    ]
    path = RECORDS / f"equal-access-{asked.task}.csv"
    write_atomically(path, Table({name: [row[name] for row in rows] for name in rows[0]}).csv().encode())
    print(f"{path}: {len(rows)} rows")


if __name__ == "__main__":
    main()
