"""What does `focalcal tune` lose against the full grid, and what does it cost?

    FOCALCAL_DATA=... python benchmarks/tuning.py --store FOLDER [--jobs N] [--setting NAME ...] [--json FILE]

Four settings: digits whose labels are drawn from a known posterior and a Gaussian mixture, on both of which the network
overfits, the digits as they are, and 1,000 items of AG News. In each, with the same three seeds and the same test rows:

oracle           the full grid is 7 gammas x 10 lams of FCL and the points of the other objectives, each trained with
                 the first seed; of the ten cells with the lowest test NLL, repeated over the seeds, the lowest. Nobody
                 can choose it without the test labels
grid             what `tune(sampler="grid")` chooses by validation rows
tune             what `tune` chooses with its defaults
operating point  cross-entropy, then FCL on the matched scale at the lam that its validation rows predict for gamma = 3,
                 0 where none suffices; cross-entropy where they say to keep it
cross-entropy    one run, with a temperature if validation rows say so, as all of them

Regret is the test NLL over that of the oracle, and over that of the grid's choice, minus 1. The interval is that of the
first, from the bootstrap of the test rows. Epochs are those of all the runs that a choice needs, over those of one run
per cell of the grid. The correlation is that of validation and test NLL over the cells of the grid, with one seed.
Every run is in the store: stopped at any moment, the same command goes on.

To reach: a regret of at most 1 % with at most a third of the grid's epochs.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from focalcal.lab.store import Protocol, Store
from focalcal.lab.studies import LocalExecutor
from focalcal.lab.studies.search_space import rounded
from focalcal.lab.studies.spec_builder import override_recipe
from focalcal.lab.studies.tuning import tune
from focalcal.lab.studies.tuning.result import Finalist
from focalcal.lab.studies.tuning.search import Search, TuneCandidate
from focalcal.lab.studies.tuning.tuner import methods_of, repeat
from focalcal.lab.training import recipe
from focalcal.posthoc import operating_point

Row = dict[str, Any]
SEEDS = 3
BEST_BY_TEST = 10


@dataclass(frozen=True)
class Setting:
    """A recipe by name, what is changed of it, and how many rows there are."""

    recipe: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)


SETTINGS = {
    "teacher": Setting("teacher_overfit_mlp_lite"),
    "mixture": Setting(
        "gaussian_mixture_mlp_lite",
        {"epochs": 30, "optimizer": {"weight_decay": 0.0}, "data_options": {"sizes": (2_000, 2_000, 10_000)}},
    ),
    "digits": Setting("digits_small_cnn_lite"),
    "ag_news": Setting(
        "ag_news_gp_cnn_lite",
        {
            "epochs": 10,
            "word_vectors": "glove.6B.100d",
            "data_options": {"validation": 2_000, "length": 32},
            "model_options": {"dimension": 100},
        },
        Protocol(train_examples=1_000, test_examples=4_000, allow_partial=True, evaluate_every=10),
    ),
}


def rows(name: str, store: Store, jobs: int) -> Iterator[Row]:
    setting = SETTINGS[name]
    trained = override_recipe(recipe(setting.recipe), setting.changes)
    search = Search(store, LocalExecutor(jobs), setting.protocol)
    asked = {"protocol": setting.protocol, "executor": search.executor, "jobs": jobs, "seeds": SEEDS}
    grid = tune(trained, store, sampler="grid", **asked)
    tuned = tune(trained, store, **asked)
    stop_if(grid.interrupted or tuned.interrupted)
    cross_entropy = grid.baseline.candidate
    baseline, predicted = finalists(search, [cross_entropy, operating_point_alone(search, cross_entropy)])
    cells = trained.epochs * len(grid.trials)
    once = finalists(search, [trial.candidate for trial in grid.trials], seeds=1)
    best = oracle(search, once)
    agreement = np.corrcoef([[cell.mean("nll", split) for cell in once] for split in ("validation", "test")])[0, 1]
    for way, chosen, epochs in (
        ("oracle", best, cells),
        ("grid", grid.winner, grid.epochs),
        ("tune", tuned.winner, tuned.epochs),
        ("operating point", predicted, 2 * trained.epochs),
        ("cross-entropy", baseline, trained.epochs),
    ):
        nll, lowest = chosen.mean("nll", "test"), best.mean("nll", "test")
        apart = chosen.differences(best, "nll", "test")
        yield {
            "setting": name,
            "way": way,
            "choice": chosen.name,
            "test NLL": nll,
            "regret %": 100 * (nll / lowest - 1),
            "low": 100 * apart.low / lowest,
            "high": 100 * apart.high / lowest,
            "over the grid's %": 100 * (nll / grid.winner.mean("nll", "test") - 1),
            "epochs": epochs,
            "of the grid's %": 100 * epochs / cells,
            "correlation": float(agreement),
        }


def oracle(search: Search, once: Sequence[Finalist]) -> Finalist:
    best = sorted(once, key=lambda cell: cell.mean("nll", "test"))[:BEST_BY_TEST]
    several = finalists(search, [cell.candidate for cell in best])
    return min(several, key=lambda cell: cell.mean("nll", "test"))


def operating_point_alone(search: Search, cross_entropy: TuneCandidate) -> TuneCandidate:
    runs, _ = search.train([cross_entropy], 0)
    try:
        point = operating_point(runs[cross_entropy].predictions("val"), resamples=200)
    except ValueError:  # no best temperature
        return cross_entropy
    fcl = methods_of(cross_entropy.recipe, ("fcl",))["fcl"]
    return fcl.candidate({"gamma": point.gamma, "lam": rounded(point.lam)}) if point.helps else cross_entropy


def finalists(search: Search, candidates: Sequence[TuneCandidate], seeds: int = SEEDS) -> list[Finalist]:
    repeated, interrupted = repeat(search, list(dict.fromkeys(candidates)), seeds)
    stop_if(interrupted)
    found = {finalist.candidate: finalist for finalist in repeated}
    return [found[chosen] for chosen in candidates if chosen in found]


def stop_if(interrupted: bool) -> None:
    if interrupted:
        raise SystemExit("interrupted; the same command goes on")


def show(table: Sequence[Row]) -> None:
    print("| " + " | ".join(table[0]) + " |\n|" + "---|" * len(table[0]))
    for row in table:
        cells = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values())
        print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--setting", choices=SETTINGS, action="append")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    store = Store(arguments.store)
    table = [row for name in arguments.setting or SETTINGS for row in rows(name, store, arguments.jobs)]
    show(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=2))


if __name__ == "__main__":
    main()
