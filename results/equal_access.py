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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from focalcal.cli.progress import grid_display
from focalcal.core.atomic import write_atomically
from focalcal.experiments import LocalExecutor
from focalcal.experiments.completeness import examine_cells
from focalcal.experiments.grid import run_grid
from focalcal.experiments.operating_point_trial import scores_as_logits
from focalcal.experiments.spec_builder import override_recipe, spec_of
from focalcal.metrics import METRICS
from focalcal.posthoc import operating_point
from focalcal.reports.tables import Table
from focalcal.results import Protocol, Run, Spec, Store
from focalcal.results.layout import store_folder
from focalcal.training import Recipe, recipe
from focalcal.tuning import tune
from focalcal.tuning.judgement import Judgement, judge

RECORDS = Path(__file__).parent / "records"
RATES = (0.03, 0.1, 0.3, 1.0)  # times the recipe's
AMOUNTS = (0.05, 0.1, 0.2, 0.3)
MEASURED = ("nll", "brier", "ece", "adaptive_ece", "error")
Option = tuple[str, dict[str, Any], float]  # objective, its options, learning rate


@dataclass(frozen=True)
class Task:
    """A recipe, and which of its examples are used."""

    recipe: Recipe
    protocol: Protocol
    seeds: int


def tasks() -> dict[str, Task]:
    """By name; a run of each takes a minute or less on one core."""
    short = {"length": 64, "validation": 2_000}
    return {
        "digits": Task(recipe("teacher_overfit_mlp_lite"), Protocol(), 10),
        "ag-news": Task(
            override_recipe(recipe("ag_news_gp_cnn"), {"epochs": 4, "data_options": short}),
            Protocol(train_examples=4_000),
            10,
        ),
        "newsgroups": Task(
            override_recipe(recipe("newsgroups_gp_cnn"), {"epochs": 8, "data_options": {"length": 96}}),
            Protocol(train_examples=4_000, allow_partial=True),
            5,
        ),
        "cifar10": Task(
            override_recipe(recipe("cifar10_resnet8_lite"), {"epochs": 10}),
            Protocol(train_examples=4_000, allow_partial=True),
            5,
        ),
    }


class Bench:
    """Trains what is asked for, once."""

    def __init__(self, task: Task, store: Store, jobs: int) -> None:
        self.task, self.store, self.jobs = task, store, jobs

    def spec(self, option: Option, seed: int) -> Spec:
        """The run of an option."""
        objective, options, rate = option
        chosen = override_recipe(self.task.recipe, {"optimizer": {"lr": rate}})
        return spec_of(chosen, objective, options, seed=seed, protocol=self.task.protocol)

    def runs(self, options: Iterable[Option], seeds: Iterable[int] = (0,)) -> dict[tuple[str, int], Run]:
        """By key of the option's first run and seed."""
        wanted = {(self.spec(option, 0).key, seed): self.spec(option, seed) for option in options for seed in seeds}
        with grid_display() as display:
            outcome = run_grid(wanted.values(), self.store, executor=LocalExecutor(self.jobs), on_event=display)
        if outcome.interrupted:
            raise SystemExit("interrupted; the same command goes on")
        stored = examine_cells(wanted.values(), self.store)
        return {place: run for place, spec in wanted.items() if isinstance(run := stored.get(spec.key), Run)}

    def choose(self, menu: list[Option]) -> dict[bool, Option]:
        """With and without a temperature, by validation NLL of the first seed."""
        judged: list[tuple[Option, Judgement]] = []
        runs = self.runs(menu)
        for option in menu:
            run = runs.get((self.spec(option, 0).key, 0))
            if run is not None and all(map(math.isfinite, run.metrics("val").values())):
                judged.append((option, judge(run.predictions("val"))))
        return {scaled: min(judged, key=lambda pair: pair[1].mean("nll", scaled=scaled))[0] for scaled in (False, True)}

    def menus(self) -> dict[str, dict[bool, Option]]:
        """What each method chooses."""
        rates = [factor * self.task.recipe.optimizer.lr for factor in RATES]
        chosen = {
            "cross-entropy": self.choose([("ce", {}, rate) for rate in rates]),
            "AdaFocal": self.choose([("adafocal", {}, rate) for rate in rates]),
        }
        plain = chosen["cross-entropy"][True]
        lam = self._predicted_lam(plain)
        matched = {"gamma": 3.0, "lam": lam, "scale": "matched"}
        chosen["FCL"] = self.choose([("fcl", matched, rate) for rate in rates])
        chosen["label smoothing"] = self.choose([("ls", {"epsilon": amount}, plain[2]) for amount in AMOUNTS])
        rate = chosen["FCL"][True][2]
        smoothed = [("fcl", matched | {"label_smoothing": amount}, rate) for amount in AMOUNTS]
        chosen["smoothed FCL"] = self.choose(smoothed)
        chosen["tune"] = self._tuned()
        return chosen

    def _predicted_lam(self, option: Option) -> float:
        """By cross-entropy's validation rows; 0 where even that distorts too little."""
        run = self.runs([option])[self.spec(option, 0).key, 0]
        point = operating_point(run.predictions("val"), gamma=3.0)
        return float(f"{max(point.lam, 0.0):.3g}") if math.isfinite(point.lam) else 8.0

    def _tuned(self) -> dict[bool, Option]:
        result = tune(
            self.task.recipe,
            self.store,
            protocol=self.task.protocol,
            trials=16,
            seeds=1,
            learning_rate=True,
            jobs=self.jobs,
        )
        winner = result.winner
        rate = winner.candidate.lr or self.task.recipe.optimizer.lr
        return {winner.scaled: (winner.candidate.objective, dict(winner.candidate.options), rate)}


def measured(run: Run, *, scaled: bool) -> dict[str, float]:
    """On test rows, with the temperature of the validation rows or without."""
    test = run.predictions("test")
    temperature = judge(run.predictions("val")).temperature if scaled else 1.0
    probs = (scores_as_logits(test) / (temperature if math.isfinite(temperature) else 1.0)).softmax(1)
    values = {name: float(METRICS[name](probs, test.labels)) for name in MEASURED}
    if test.posterior is not None:
        values["posterior_distance"] = float((probs - test.posterior.double()).abs().sum(1).mean() / 2)
    return {"temperature": temperature, **values}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=list(tasks()))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--store", type=Path)
    asked = parser.parse_args()
    task = tasks()[asked.task]
    bench = Bench(task, Store(store_folder(asked.store), create=True), asked.jobs)
    chosen = bench.menus()
    options = [option for choices in chosen.values() for option in choices.values()]
    runs = bench.runs(options, range(asked.seeds or task.seeds))
    rows = []
    for method, choices in chosen.items():
        for scaled, option in choices.items():
            for (key, seed), run in runs.items():
                if key == bench.spec(option, 0).key:
                    what = {
                        "task": asked.task,
                        "method": method,
                        "used": "with T" if scaled else "as it is",
                        "seed": seed,
                    }
                    choice = {"choice": run.spec.name.split(" ", 1)[1].rpartition(" seed")[0], "lr": option[2]}
                    rows.append(what | choice | measured(run, scaled=scaled))
    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    RECORDS.mkdir(exist_ok=True)
    path = RECORDS / f"equal-access-{asked.task}.csv"
    write_atomically(path, Table(columns).csv().encode())
    print(f"{path}: {len(rows)} rows")


if __name__ == "__main__":
    main()
