"""Our numbers beside the paper's, cell by cell, and how the runs behind them differ."""

from __future__ import annotations

import math
from typing import Any

from focalcal.reports.evidence import Evidence, RunEvidence
from focalcal.reports.metric_names import title
from focalcal.reports.paper_numbers import PaperNumber, Protocol, paper_number
from focalcal.reports.study_tables.captioned import CaptionedTable
from focalcal.reports.tables import Mean, Rounded, Table

_METRICS = ("error", "ece", "nll", "brier", "auroc", "mce")
_TRANSFORMERS = ("deit_small", "vit_small", "swin_tiny")
_EPOCHS = {  # of the recipes that the paper says it follows
    "cifar10": 350,
    "cifar100": 350,
    "tiny_imagenet": 100,
    "newsgroups_19997": 50,
    "ag_news": 20,
    "finsen": 20,
    "chestxray14": 100,
}


def against_paper(evidence: Evidence) -> CaptionedTable | None:
    """A row a setting, objective and metric that the paper prints a number for; None if there is none."""
    rows: list[dict[str, Any]] = []
    compared: list[RunEvidence] = []
    for setting in evidence.settings:
        for objective in evidence.objectives:
            runs = evidence.of(setting, objective)
            for metric in _METRICS:
                theirs = _theirs(runs, metric)
                ours = _ours(runs, metric, theirs) if theirs is not None else None
                if theirs is not None and ours is not None:
                    rows.append(_row(runs[0], metric, ours, theirs))
                    compared += runs
    if not rows:
        return None
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    headings = {"value": "this study", "paper": "the paper's", "paper_std": "its std", "source": "in the paper"}
    note = "The paper's numbers are copied from it and come from other runs. Differences of protocol: "
    return CaptionedTable(
        "Beside the paper's numbers",
        Table(columns, headings=headings),
        note + "; ".join(protocol_differences(compared)) + "." + _points(compared),
    )


def protocol_differences(runs: list[RunEvidence]) -> list[str]:
    """How these runs differ from the paper's, as far as their specs say; the machine and the seeds always do."""
    told = ["other seeds, software and machines"]
    seeds = {(run.setting, run.objective): 0 for run in runs}
    for run in {run.key: run for run in runs}.values():
        seeds[run.setting, run.objective] += 1
    if set(seeds.values()) != {3}:
        counted = sorted(set(seeds.values()))
        told.append(f"{_range(counted)} seed{'s' * (counted != [1])} a cell instead of three")
    for setting in dict.fromkeys(run.setting for run in runs):
        there = [run for run in runs if run.setting == setting]
        found = list(dict.fromkeys(sentence for run in there for sentence in _differences(run)))
        if found:
            told.append(f"{setting}: {', '.join(found)}")
    return told


def _points(runs: list[RunEvidence]) -> str:
    """Which gamma and lam these runs of FCL have; the paper's are in its supplement and not known here."""
    settings: dict[str, list[str]] = {}
    for run in runs:
        if "lam" in run.options:
            point = ", ".join(f"{name} = {run.options[name]:g}" for name in ("gamma", "lam") if name in run.options)
            settings.setdefault(point, []).append(run.setting)
    told = [f"{point} ({', '.join(dict.fromkeys(there))})" for point, there in settings.items()]
    return f" FCL here has {'; '.join(told)}; the paper's points are in its supplement." if told else ""


def _theirs(runs: list[RunEvidence], metric: str) -> PaperNumber | None:
    if not runs or "#" in runs[0].objective:
        return None
    run = runs[0]
    protocol = _protocol(run)
    return None if protocol is None else paper_number(run.setting, run.objective, metric, protocol=protocol)


def _protocol(run: RunEvidence) -> Protocol | None:
    """Which of the paper's protocols a run follows in kind; None for transformers from scratch, in its supplement."""
    training = run.spec["training"]
    if run.setting.partition("/")[2] in _TRANSFORMERS:
        return "fine-tuned" if training.get("initial_weights") else None
    held_out = (training.get("data_options") or {}).get("validation")
    return "common split" if run.setting.startswith("cifar") and held_out else "main"


def _differences(run: RunEvidence) -> list[str]:
    training, protocol = run.spec["training"], run.spec["protocol"]
    data_set = run.setting.partition("/")[0]
    told = []
    for name, what in (("train_examples", "training"), ("test_examples", "test")):
        if protocol.get(name):
            told.append(f"a subset of {protocol[name]} {what} examples")
    if protocol.get("imbalance"):
        told.append(f"a long-tailed training set ({protocol['imbalance']:g})")
    if protocol.get("allow_partial"):
        told.append("a data set of which files may be missing")
    usual = _EPOCHS.get(data_set)
    if usual and _protocol(run) != "fine-tuned" and training.get("epochs") != usual:
        told.append(f"a lite recipe of {training.get('epochs')} epochs instead of {usual}")
    if data_set in ("newsgroups_19997", "ag_news", "finsen") and not training.get("word_vectors"):
        told.append("random word vectors instead of GloVe's")
    if data_set == "chestxray14" and not training.get("initial_weights"):
        told.append("random weights instead of ImageNet's")
    return told


def _ours(runs: list[RunEvidence], metric: str, theirs: PaperNumber) -> Mean | None:
    """In the paper's unit and with its digits."""
    values = [run.metrics.get("test", {}).get(metric, math.nan) * (100 if theirs.percent else 1) for run in runs]
    there = [value for value in values if not math.isnan(value)]
    return Mean(there, decimals=_decimals(theirs)) if there else None


def _decimals(theirs: PaperNumber) -> int:
    return len(theirs.value.text.partition(".")[2])


def _row(run: RunEvidence, metric: str, ours: Mean, theirs: PaperNumber) -> dict[str, Any]:
    return {
        "setting": run.setting,
        "objective": run.objective,
        "metric": title(metric) + " %" * theirs.percent,
        "value": ours,
        "paper": theirs.value,
        "paper_std": theirs.deviation,
        "difference": Rounded(float(ours) - float(theirs.value), f"+.{_decimals(theirs)}f"),
        "source": theirs.source,
    }


def _range(counted: list[int]) -> str:
    return str(counted[0]) if len(counted) == 1 else f"{counted[0]} to {counted[-1]}"
