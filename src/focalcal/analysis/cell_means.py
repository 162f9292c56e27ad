"""Means over seeds, cell by cell: of a metric, of each label of several, of each shift."""

from __future__ import annotations

import math
import statistics

from focalcal.analysis.evidence import Evidence, RunEvidence
from focalcal.analysis.metric_names import mean
from focalcal.analysis.numbers import Mean


def metric_cells(evidence: Evidence, metric: str, *, split: str = "test") -> dict[str, dict[str, Mean]]:
    """By setting and objective, those that have a value."""
    found: dict[str, dict[str, Mean]] = {}
    for setting in evidence.settings:
        for objective, values in evidence.values(setting, metric, split=split).items():
            cell = mean(metric, values.values())
            if cell is not None:
                found.setdefault(setting, {})[objective] = cell
    return found


def label_means(evidence: Evidence, setting: str, metric: str) -> dict[str, dict[str, Mean]]:
    """By objective and label, of finite values."""
    found: dict[str, dict[str, Mean]] = {}
    for objective in evidence.objectives:
        several: dict[str, list[float]] = {}
        for run in evidence.of(setting, objective):
            for name, value in run.metrics.get("test", {}).items():
                kind, _, label = name.partition("/")
                if kind == metric and label and math.isfinite(value):
                    several.setdefault(label, []).append(value)
        if several:
            found[objective] = {label: Mean(values, decimals=4) for label, values in several.items()}
    return found


def shift_aurocs(evidence: Evidence, setting: str, shift: str) -> dict[str, Mean]:
    """By objective, those that saw the shift."""
    means = {
        name: mean("auroc", [shifts_of(run)[shift] for run in evidence.of(setting, name) if shift in shifts_of(run)])
        for name in evidence.objectives
    }
    return {name: one for name, one in means.items() if one is not None}


def shifts_of(run: RunEvidence) -> dict[str, float]:
    """AUROC by shift."""
    several: dict[str, list[float]] = {}
    for split, metrics in run.metrics.items():
        if split not in ("train", "val", "test") and "auroc" in metrics:
            several.setdefault(split.partition("/")[0], []).append(metrics["auroc"])
    return {name: statistics.fmean(values) for name, values in several.items() if all(map(math.isfinite, values))}
