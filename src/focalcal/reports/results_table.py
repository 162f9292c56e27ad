"""The results of a study in one table: a row a setting and objective, each metric as mean and spread over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from focalcal.reports.tables import Table
from focalcal.results import Run, Spec

PERCENT = ("error", "ece", "adaptive_ece", "classwise_ece", "smooth_ece")  # shown times 100, as the literature does
_SINGLE = ("error", "ece", "adaptive_ece", "classwise_ece", "smooth_ece", "nll", "brier")
_HEADINGS = {
    "error": "error %",
    "ece": "ECE %",
    "adaptive_ece": "AdaECE %",
    "classwise_ece": "cwECE %",
    "smooth_ece": "smECE %",
    "nll": "NLL",
    "brier": "Brier",
}


def results_table(runs: Iterable[Run], *, split: str = "test", metrics: Sequence[str] = _SINGLE) -> Table:
    """Mean +- standard deviation (n - 1) over the seeds there are; a single seed has no spread and shows none.

    Settings and objectives keep the order in which they first occur. A metric that no run has is left out.
    """
    grouped: dict[tuple[str, str], list[Run]] = {}
    found = list(runs)
    labels = objective_labels([run.spec for run in found])
    for run in found:
        if split in run.splits:
            setting = f"{run.spec.data_set}/{run.spec.model}"
            grouped.setdefault((setting, labels[run.key]), []).append(run)
    if not grouped:
        raise ValueError(f"runs must hold one at least with a split {split!r}, got none; run the study first")
    columns: dict[str, list[Any]] = {
        "setting": [setting for setting, _ in grouped],
        "objective": [label for _, label in grouped],
        "seeds": [len({run.spec.seed for run in group}) for group in grouped.values()],
    }
    for metric in metrics:
        cells = [_spread([run.metrics(split).get(metric) for run in group], metric) for group in grouped.values()]
        if any(cell is not None for cell in cells):
            columns[metric] = cells
    return Table(columns, headings={name: _HEADINGS[name] for name in columns if name in _HEADINGS})


def objective_labels(specs: Sequence[Spec]) -> dict[str, str]:
    """By key: the objective, with those of its options that differ among the runs of it in one setting.

    So `fcl` is one objective over data sets that each have a point of their own, and `fcl lam=0.5`, `fcl lam=1` are two
    of a sweep. Runs that differ in their training or protocol alone get these differences named by a number, #2, ...
    """
    cells: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for spec in specs:
        cells.setdefault((spec.data_set, spec.model, spec.objective), []).append(dict(spec.objective_options))
    labels: dict[str, str] = {}
    variants: dict[tuple[str, str, str], list[Any]] = {}
    for spec in specs:
        points = cells[spec.data_set, spec.model, spec.objective]
        shown = [
            f"{name}={_shown(value)}"
            for name, value in dict(spec.objective_options).items()
            if any(name not in point or point[name] != value for point in points)
        ]
        label = spec.objective + (f" {' '.join(shown)}" if shown else "")
        known = variants.setdefault((spec.data_set, spec.model, label), [])
        how = (spec.training, spec.protocol)
        if how not in known:
            known.append(how)
        number = known.index(how) + 1
        labels[spec.key] = label if number == 1 else f"{label} #{number}"
    return labels


def _shown(value: Any) -> str:
    """Short where that says it all: two points must not look alike."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def cell_names(specs: Sequence[Spec]) -> dict[str, str]:
    """By key, what tells a run from the others: `digits/small_cnn fcl seed 0`."""
    labels = objective_labels(specs)
    return {spec.key: f"{spec.data_set}/{spec.model} {labels[spec.key]} seed {spec.seed}" for spec in specs}


def _spread(values: Sequence[float | None], metric: str) -> str | None:
    there = [value * (100 if metric in PERCENT else 1) for value in values if value is not None]
    if not there:
        return None
    decimals = 2 if metric in PERCENT else 4
    mean = f"{statistics.fmean(there):.{decimals}f}"
    return f"{mean} ± {statistics.stdev(there):.{decimals}f}" if len(there) > 1 else mean
