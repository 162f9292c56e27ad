"""How well the confidence tells shifted inputs from clean ones."""

from __future__ import annotations

from typing import Any

from focalcal.analysis.cell_means import shift_aurocs, shifts_of
from focalcal.analysis.contenders import may_be_best
from focalcal.analysis.evidence import Evidence
from focalcal.analysis.numbers import Mean, best
from focalcal.reports.study_tables.captioned import CaptionedTable
from focalcal.reports.study_tables.flags import RULE, flag_note
from focalcal.reports.tables import Table


def shift_auroc(evidence: Evidence) -> CaptionedTable | None:
    """One row per setting and shift; a shift of several sets (cifar10c/fog/5, ...) is the mean over them."""
    shifts = list(dict.fromkeys(name for run in evidence.runs for name in shifts_of(run)))
    rows: dict[tuple[str, str], list[Mean | None]] = {}
    for setting in evidence.settings:
        for shift in shifts:
            cells = shift_aurocs(evidence, setting, shift)
            if cells:
                rows[setting, shift] = [cells.get(name) for name in evidence.objectives]
    if not rows:
        return None
    masks = [
        best(cells, higher=True, among=may_be_best(evidence, setting, evidence.objectives))
        for (setting, _), cells in rows.items()
    ]
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
        "averaged; mean ± standard deviation (n - 1) over seeds; best per row in bold, ties as printed included; "
        f"{RULE}.{flag_note(evidence)}",
    )
