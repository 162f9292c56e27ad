"""The results of a study in one table: a row a setting and objective, each metric as mean and spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from focalcal.reports.labels import objective_labels
from focalcal.reports.metric_names import SINGLE_LABEL, mean, titled
from focalcal.reports.tables import Table
from focalcal.results import Run

_SHOWN = (*SINGLE_LABEL, "auroc")


def results_table(runs: Iterable[Run], *, split: str = "test", metrics: Sequence[str] = _SHOWN) -> Table:
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
        cells = [
            mean(metric, [run.metrics(split).get(metric, math.nan) for run in group]) for group in grouped.values()
        ]
        if any(cell is not None for cell in cells):
            columns[metric] = cells
    return Table(columns, headings={name: titled(name) for name in columns if name in metrics})
