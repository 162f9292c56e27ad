"""Which stored runs stand for the paper's: by setting, objective and protocol, whatever else a store holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from focalcal.lab.evidence.comparisons import Family, comparisons
from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from paper.claims.printed_numbers import OBJECTIVES, TEN_SEED_SETTINGS, TRANSFORMERS, Protocol

_ASKED_AFTERWARDS = ("shifts", "severities", "saliency", "keep_weights", "evaluate_every")  # of a trained network
_EPOCHS = {  # of the recipes that the paper says it follows
    "cifar10": 350,
    "cifar100": 350,
    "tiny_imagenet": 100,
    "newsgroups_19997": 50,
    "ag_news": 20,
    "finsen": 20,
    "chestxray14": 100,
}


class PaperRuns:
    """The evidence as the paper's tables see it: one cell per setting and objective of each protocol.

    operating_points  (gamma, lam) by setting: of several points of FCL, the one that its cell is
    """

    def __init__(self, evidence: Evidence, operating_points: Mapping[str, tuple[float, float]] | None = None) -> None:
        runs = (replace(run, setting=f"{run.spec['data_set']}/{run.spec['model']}") for run in evidence.runs)
        self.evidence = replace(evidence, runs=tuple(runs))  # of several trainings one is chosen
        self._points = dict(operating_points or {})
        self._grids: dict[Protocol, Evidence] = {}

    def grid(self, protocol: Protocol = "main") -> Evidence:
        """Runs of that protocol, under the objectives' plain names.

        Of an objective with several points the operating point is taken, else the point with most runs; none if
        several have as many. Of several trainings at that point, the one that is nearest to the paper's.
        """
        if protocol not in self._grids:
            own = [run for run in self.evidence.runs if protocol_of(run) == protocol]
            chosen = [
                replace(run, objective=run.spec["objective"])
                for cell in _grouped(own, lambda run: [run.setting, run.spec["objective"]])
                for run in _one_training(_one_point(cell, self._points.get(cell[0].setting)))
            ]
            self._grids[protocol] = replace(self.evidence, runs=tuple(chosen))
        return self._grids[protocol]

    def at(
        self, setting: str, objective: str, *, protocol: Protocol = "main", gamma: float | None = None, lam: float
    ) -> list[RunEvidence]:
        """The runs of one point of a sweep or surface; of any gamma if none is given."""
        own = [
            run
            for run in self.evidence.runs
            if (run.setting, run.spec["objective"], protocol_of(run)) == (setting, objective, protocol)
            and run.options.get("lam") == lam
            and gamma in (None, run.options.get("gamma"))
        ]
        return _one_training(_one_point(own, None))

    @cached_property
    def families(self) -> list[Family]:
        """FCL against the seven baselines on the settings with ten seeds, where enough of them were run to tell."""
        grid = self.grid("main")
        runs = tuple(run for run in grid.runs if run.setting in TEN_SEED_SETTINGS)
        baselines = [name for name in OBJECTIVES if name != "fcl" and any(run.objective == name for run in runs)]
        families = comparisons(replace(grid, runs=runs), "fcl", baselines)
        return [family for family in families if family.comparisons and all(t.reachable for t in family.comparisons)]


def protocol_of(run: RunEvidence) -> Protocol:
    """Which of the paper's protocols a run follows in kind."""
    training = run.spec["training"]
    if f"cifar100/{run.spec['model']}" in TRANSFORMERS:
        return "fine-tuned" if training.get("initial_weights") else "from scratch"
    held_out = (training.get("data_options") or {}).get("validation")
    return "common split" if run.spec["data_set"].startswith("cifar") and held_out else "main"


def spec_differences(run: RunEvidence) -> list[str]:
    """How a run's training differs from the paper's, as far as its spec says."""
    training, protocol = run.spec["training"], run.spec["protocol"]
    data_set = run.spec["data_set"]
    changes = []
    for name, what in (("train_examples", "training"), ("test_examples", "test")):
        if protocol.get(name):
            changes.append(f"a subset of {protocol[name]} {what} examples")
    if protocol.get("imbalance"):
        changes.append(f"a long-tailed training set ({protocol['imbalance']:g})")
    if protocol.get("allow_partial"):
        changes.append("a data set of which files may be missing")
    usual = 300 if protocol_of(run) == "from scratch" else _EPOCHS.get(data_set)
    if usual and protocol_of(run) != "fine-tuned" and training.get("epochs") != usual:
        changes.append(f"a lite recipe of {training.get('epochs')} epochs instead of {usual}")
    if data_set in ("newsgroups_19997", "ag_news", "finsen") and not training.get("word_vectors"):
        changes.append("random word vectors instead of GloVe's")
    if data_set == "chestxray14" and not training.get("initial_weights"):
        changes.append("random weights instead of ImageNet's")
    return changes


def _one_point(runs: Sequence[RunEvidence], point: tuple[float, float] | None) -> list[RunEvidence]:
    """The runs with one set of options."""
    groups = _grouped(runs, lambda run: run.options)
    at = [group for group in groups if (group[0].options.get("gamma"), group[0].options.get("lam")) == point]
    ordered = sorted(at or groups, key=len, reverse=True)
    clear = len(ordered) == 1 or (len(ordered) > 1 and len(ordered[0]) > len(ordered[1]))
    return ordered[0] if clear else []


def _one_training(runs: Sequence[RunEvidence]) -> list[RunEvidence]:
    """One run per seed, of one training; of equal ones the run that was asked for most."""

    def training(run: RunEvidence) -> list[Any]:
        protocol = {name: value for name, value in run.spec["protocol"].items() if name not in _ASKED_AFTERWARDS}
        return [run.spec["training"], protocol]

    groups = _grouped(runs, training)
    if not groups:
        return []
    nearest = min(groups, key=lambda group: (len(spec_differences(group[0])), -len({run.seed for run in group})))
    seeds: dict[int, RunEvidence] = {}
    for run in sorted(nearest, key=lambda run: (run.seed, len(run.metrics))):
        seeds[run.seed] = run
    return list(seeds.values())


def _grouped(runs: Iterable[RunEvidence], by: Callable[[RunEvidence], Any]) -> list[list[RunEvidence]]:
    groups: dict[str, list[RunEvidence]] = {}
    for run in runs:
        groups.setdefault(json.dumps(by(run), sort_keys=True), []).append(run)
    return list(groups.values())
