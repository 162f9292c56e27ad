"""How well the confidence tells shifted inputs from clean ones."""

from __future__ import annotations

import math
import statistics
from typing import Any

from focalcal.reports.evidence import Evidence, RunEvidence
from focalcal.reports.metric_names import mean
from focalcal.reports.study_tables.captioned import CaptionedTable, best
from focalcal.reports.tables import Mean, Table


def shift_auroc(evidence: Evidence) -> CaptionedTable | None:
    """A row a setting and shift; a shift of several sets (cifar10c/fog/5, ...) is the mean over them."""
    shifts = list(dict.fromkeys(name for run in evidence.runs for name in _shifts(run)))
    rows: dict[tuple[str, str], list[Mean | None]] = {}
    for setting in evidence.settings:
        for shift in shifts:
            cells = [
                mean("auroc", [_shifts(run)[shift] for run in evidence.of(setting, name) if shift in _shifts(run)])
                for name in evidence.objectives
            ]
            if any(cell is not None for cell in cells):
                rows[setting, shift] = cells
    if not rows:
        return None
    masks = [best(cells, higher=True) for cells in rows.values()]
    columns: dict[str, list[Any]] = {
        "setting": [setting for setting, _ in rows],
        "shift": [shift for _, shift in rows],
    }
    columns |= {name: [cells[at] for cells in rows.values()] for at, name in enumerate(evidence.objectives)}
    bold = {name: [mask[at] for mask in masks] for at, name in enumerate(evidence.objectives)}
    return CaptionedTable(
        "Shift detection, AUROC, more is better",
        Table(columns, bold=bold),
        "Of the largest probability, clean test examples against shifted ones, no temperature; sets of corruptions are "
        "averaged; mean ± standard deviation (n - 1) over seeds; best per row in bold, ties as printed included.",
    )


def _shifts(run: RunEvidence) -> dict[str, float]:
    """AUROC by shift."""
    several: dict[str, list[float]] = {}
    for split, metrics in run.metrics.items():
        if split not in ("train", "val", "test") and "auroc" in metrics:
            several.setdefault(split.partition("/")[0], []).append(metrics["auroc"])
    return {name: statistics.fmean(values) for name, values in several.items() if all(map(math.isfinite, values))}
