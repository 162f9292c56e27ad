"""Means over seeds, cell by cell: of a metric, of each label of several, of each shift; and whose is the lowest."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from focalcal.lab.evidence.contenders import contenders
from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.evidence.metric_names import mean_shown
from focalcal.pages.numbers import Mean

HEADLINE = ("error", "ece", "adaptive_ece", "nll", "brier")  # of each of them less is better


@dataclass(frozen=True)
class Leader:
    """The objective with the lowest mean of a metric in one setting, and the next one, among those that may lead.

    Several lead if their means tie as they are printed; there is no next one if all do.
    """

    setting: str
    metric: str
    objectives: tuple[str, ...]
    mean: Mean
    runner_up: str | None = None
    runner_up_mean: Mean | None = None


def metric_cells(evidence: Evidence, metric: str) -> dict[str, dict[str, Mean]]:
    """By setting and objective, those that have a value on the test split."""
    rows = {setting: _means(metric, evidence.values(setting, metric)) for setting in evidence.settings}
    return {setting: cells for setting, cells in rows.items() if cells}


def label_means(evidence: Evidence, setting: str, metric: str) -> dict[str, dict[str, Mean]]:
    """By objective and label, of finite values."""
    means: dict[str, dict[str, Mean]] = {}
    for objective in evidence.objectives:
        values: dict[str, list[float]] = {}
        for run in evidence.of(setting, objective):
            for name, value in run.metrics.get("test", {}).items():
                kind, _, label = name.partition("/")
                if kind == metric and label and math.isfinite(value):
                    values.setdefault(label, []).append(value)
        if values:
            means[objective] = {label: Mean(seeds, decimals=4) for label, seeds in values.items()}
    return means


def shift_aurocs(evidence: Evidence, setting: str, shift: str) -> dict[str, Mean]:
    """By objective, those that saw the shift."""
    values = {
        name: {run.seed: shifts_of(run).get(shift, math.nan) for run in evidence.of(setting, name)}
        for name in evidence.objectives
    }
    return _means("auroc", values)


def shifts_of(run: RunEvidence) -> dict[str, float]:
    """AUROC by shift."""
    sets: dict[str, list[float]] = {}
    for split, metrics in run.metrics.items():
        if split not in ("train", "val", "test") and "auroc" in metrics:
            sets.setdefault(split.partition("/")[0], []).append(metrics["auroc"])
    return {name: statistics.fmean(values) for name, values in sets.items() if all(map(math.isfinite, values))}


def leaders(evidence: Evidence) -> list[Leader]:
    """By setting and metric, of the test split.

    An objective without a finite mean cannot lead, nor one whose error is too far above the lowest (`contenders`); a
    metric with fewer than two finite means has no leader.
    """
    leading = []
    for setting in evidence.settings:
        allowed = contenders(evidence, setting)
        for metric in HEADLINE:
            cells = _means(metric, evidence.values(setting, metric))
            means = {name: cell for name, cell in cells.items() if math.isfinite(cell)}
            ordered = sorted((name for name in means if name in allowed), key=lambda name: float(means[name]))
            if len(means) < 2 or not ordered:
                continue
            lowest = means[ordered[0]]
            first = tuple(name for name in ordered if means[name].printed == lowest.printed)
            second = next(iter(ordered[len(first) :]), None)
            leading.append(Leader(setting, metric, first, lowest, second, means[second] if second else None))
    return leading


def _means(metric: str, values: dict[str, dict[int, float]]) -> dict[str, Mean]:
    """By objective, of values by objective and seed; those that have one."""
    means = {objective: mean_shown(metric, seeds.values()) for objective, seeds in values.items()}
    return {objective: cell for objective, cell in means.items() if cell is not None}
