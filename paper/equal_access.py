"""Every method with the same validation rows: which one has the lowest test NLL and ECE?

    python -m paper.equal_access TASK [--seeds N] [--jobs N] [--store FOLDER]

A method is a menu of runs with the first seed. It is used as it is, with a temperature, or calibrated by one of four
calibrators, and for each use validation NLL chooses from the menu; a temperature and calibrators are cross-fitted over
five folds for that. The choices are then trained with every seed, calibrators are chosen and fitted on its validation
rows, and test rows are read once. Rows go to records/equal-access-TASK.csv. Every run is in the store, so that the same
command goes on where it was.

cross-entropy    four learning rates
AdaFocal         four learning rates
FCL              gamma = 3, matched, lam predicted by cross-entropy's validation rows, four learning rates
label smoothing  four amounts, at cross-entropy's learning rate
tune             what `focalcal.tune` chooses with sixteen trials, the learning rate among what it searches
averaged ...     what the method of that name chose, and three times its learning rate, with averaged weights
recipe           the calibrated choice of these, AdaFocal and tune apart, that has the lowest validation NLL
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from focalcal.auditing.fixes import compare_fixes
from focalcal.core.numerics import softmax
from focalcal.lab.cli.progress import grid_display
from focalcal.lab.store import Protocol, Run, Store
from focalcal.lab.store.layout import store_folder
from focalcal.lab.studies import LocalExecutor
from focalcal.lab.studies.spec_builder import override_recipe
from focalcal.lab.studies.tuning import tune
from focalcal.lab.studies.tuning.candidates import TuneCandidate, candidate
from focalcal.lab.studies.tuning.judgement import scores_as_logits
from focalcal.lab.studies.tuning.search import Problem
from focalcal.lab.training import Recipe, recipe
from focalcal.posthoc import CALIBRATORS, operating_point
from focalcal.posthoc import CalibratorCandidate as Calibrated
from paper.record import RECORDS, origin, published_metrics, write_table

RATES = {"sgd": (0.03, 0.1, 0.3, 1.0), "adam": (0.3, 1.0, 3.0, 10.0)}  # times the recipe's
AMOUNTS = (0.05, 0.1, 0.2, 0.3)
AVERAGING = 0.2  # of the steps
FASTER = (1.0, 3.0)  # times the learning rate without averaging
CALIBRATED_BY = ("temperature", "ensemble", "vector", "beta")


@dataclass(frozen=True)
class Task:
    """A recipe, and which of its examples are used. Without `complete`, averaged weights and tune are left out."""

    recipe: Recipe
    protocol: Protocol
    seeds: int
    complete: bool = True


def tasks() -> dict[str, Task]:
    """By name; a run takes less than half a minute on one core, one of CIFAR-10 a minute and a half."""
    once = Protocol(allow_partial=True, evaluate_every=10_000)
    return {
        "digits": Task(recipe("teacher_overfit_mlp_lite"), Protocol(), 10),
        "ag-news": Task(_averaged_words("ag_news_gp_cnn", epochs=4, length=64, validation=2_000), once, 10),
        "newsgroups": Task(_averaged_words("newsgroups_gp_cnn", epochs=6, length=128), once, 10),
        "finsen": Task(
            _averaged_words("finsen_gp_cnn", epochs=20, length=64, validation=2_000, strip_tags=True), once, 10
        ),
        "cifar10": Task(
            override_recipe(recipe("cifar10_resnet8_lite"), {"epochs": 8}),
            replace(once, train_examples=4_000),
            7,
            complete=False,
        ),
    }


def _averaged_words(name: str, *, epochs: int, **data_options: Any) -> Recipe:
    """The recipe of a text CNN with the network that trains in seconds, its word vectors trained as well."""
    network = {"model": "dan", "model_options": {"train_embedding": True, "dropout": 0.3}}
    return override_recipe(recipe(name), {"epochs": epochs, "data_options": data_options, **network})


@dataclass(frozen=True)
class Choice:
    """What a method trains with every seed for one use."""

    method: str
    use: str
    option: TuneCandidate
    averaged: bool = False


@contextmanager
def problem_of(task: Task, jobs: int, store: Path | None) -> Iterator[Problem]:
    """Its runs in the store, and a display of those that are trained."""
    with grid_display() as display:
        yield Problem(
            recipe=task.recipe,
            objectives=(),
            optimizer={},
            criteria=("nll",),
            protocol=task.protocol,
            store=Store(store_folder(store)),
            executor=LocalExecutor(jobs),
            on_event=display,
        )


def trained(problem: Problem, options: Iterable[TuneCandidate], seed: int = 0) -> dict[TuneCandidate, Run]:
    """The runs of the options that could be trained."""
    runs, interrupted = problem.train(options, seed)
    if interrupted:
        raise SystemExit("interrupted; the same command goes on")
    return runs


def averaged(problem: Problem) -> Problem:
    """The same with averaged weights."""
    return replace(problem, recipe=replace(problem.recipe, averaging=AVERAGING))


def choices(problem: Problem, jobs: int, *, complete: bool) -> list[Choice]:
    """What each method chooses."""
    optimizer = problem.recipe.optimizer
    rates = [factor * optimizer.lr for factor in RATES[optimizer.name]]
    losses: dict[Choice, float] = {}
    for name, objective in (("cross-entropy", "ce"), ("AdaFocal", "adafocal")):
        losses |= best_of(problem, name, [replace(candidate(objective), lr=rate) for rate in rates])
    plain = next(choice.option for choice in losses if (choice.method, choice.use) == ("cross-entropy", "with T"))
    lam = predicted_lam(problem, plain)
    losses |= best_of(problem, "FCL", [replace(candidate("fcl", gamma=3.0, lam=lam), lr=rate) for rate in rates])
    smoothed = [replace(candidate("ls", epsilon=amount), lr=plain.lr) for amount in AMOUNTS]
    losses |= best_of(problem, "label smoothing", smoothed)
    for name in ("cross-entropy", "FCL", "label smoothing") if complete else ():
        chosen = dict.fromkeys(choice.option for choice in losses if choice.method == name)
        menu = {replace(option, lr=factor * (option.lr or 0)): None for option in chosen for factor in FASTER}
        losses |= best_of(problem, name, list(menu), mean=True)
    calibrated = [choice for choice in losses if choice.use == "calibrated" and choice.method != "AdaFocal"]
    recipe = replace(min(calibrated, key=lambda choice: losses[choice]), method="recipe")
    return [*losses, *([tuned(problem, jobs)] if complete else []), recipe]


def best_of(problem: Problem, method: str, menu: list[TuneCandidate], *, mean: bool = False) -> dict[Choice, float]:
    """For each use, the option of the menu with the lowest validation NLL in the first seed, and that NLL."""
    runs = trained(averaged(problem) if mean else problem, menu)
    losses: dict[str, dict[TuneCandidate, float]] = {}
    for option, run in runs.items():
        if all(map(math.isfinite, run.metrics("val").values())):
            judgement = problem.judgement(run)
            if method in ("AdaFocal", "FCL") and not mean:  # which are meant to be used so
                losses.setdefault("as it is", {})[option] = judgement.mean("nll", scaled=False)
            losses.setdefault("with T", {})[option] = judgement.mean("nll", scaled=True)
            losses.setdefault("calibrated", {})[option] = calibration(run).nll
    name = f"averaged {method}" if mean else method
    return {
        Choice(name, use, best := min(found, key=found.__getitem__), mean): found[best] for use, found in losses.items()
    }


def predicted_lam(problem: Problem, option: TuneCandidate) -> float:
    """By cross-entropy's validation rows; 0 where even that distorts too little."""
    point = operating_point(trained(problem, [option])[option].predictions("val"), gamma=3.0)
    return float(f"{max(point.lam, 0.0):.3g}") if math.isfinite(point.lam) else 8.0


def tuned(problem: Problem, jobs: int) -> Choice:
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
    return Choice("tune", "with T" if result.winner.scaled else "as it is", result.winner.candidate)


def calibration(run: Run) -> Calibrated:
    """The calibrator with the lowest cross-fitted validation NLL."""
    fixes = compare_fixes(run.predictions("val"), names=CALIBRATED_BY)
    assert fixes is not None  # every task holds enough rows out
    return fixes.tried[0]


def on_test(problem: Problem, run: Run, use: str) -> dict[str, Any]:
    """What is measured on test rows."""
    test, held_out = run.predictions("test"), run.predictions("val")
    temperature, calibrator = 1.0, "none"
    if use == "calibrated":
        temperature, calibrator = math.nan, calibration(run).name
        fitted = CALIBRATORS[calibrator]().fit(scores_as_logits(held_out), held_out.labels)
        probs = fitted.predict_proba(scores_as_logits(test))
    else:
        if use == "with T":
            temperature, calibrator = problem.judgement(run).temperature, "temperature"
        probs = softmax(scores_as_logits(test) / (temperature if math.isfinite(temperature) else 1.0))
    return {
        "calibrator": calibrator,
        "temperature": temperature,
        **published_metrics(probs, test),
        "validation_temperature": problem.judgement(run).temperature,
        **origin(run),
    }


def measured_rows(problem: Problem, task: str, chosen: list[Choice], seed: int) -> list[dict[str, Any]]:
    """Train the choices with a seed: one row for each that could be trained."""
    runs = {
        mean: trained(averaged(problem) if mean else problem, options, seed)
        for mean in (False, True)
        if (options := {choice.option for choice in chosen if choice.averaged is mean})
    }
    return [
        {
            "task": task,
            "method": choice.method,
            "used": choice.use,
            "seed": seed,
            "choice": replace(choice.option, lr=None).name,
            "lr": choice.option.lr or problem.recipe.optimizer.lr,
            **on_test(problem, runs[choice.averaged][choice.option], choice.use),
        }
        for choice in chosen
        if choice.option in runs[choice.averaged]
    ]


def write(name: str, rows: list[dict[str, Any]]) -> str:
    """To paper/records; where they are, for a person."""
    path = RECORDS / f"{name}.csv"
    write_table(path, rows)
    return f"{path}: {len(rows)} rows"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=list(tasks()))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--store", type=Path)
    asked = parser.parse_args()
    task = tasks()[asked.task]
    with problem_of(task, asked.jobs, asked.store) as problem:
        chosen = choices(problem, asked.jobs, complete=task.complete)
        rows = []
        for seed in range(asked.seeds or task.seeds):
            rows += measured_rows(problem, asked.task, chosen, seed)
    print(write(f"equal-access-{asked.task}", rows))


if __name__ == "__main__":
    main()
