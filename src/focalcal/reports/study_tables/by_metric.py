"""One metric: one row per setting, one column per objective, the best of each row in bold; who is best how often."""

from __future__ import annotations

from typing import Any

from focalcal.analysis.cell_means import metric_cells
from focalcal.analysis.contenders import may_be_best
from focalcal.analysis.evidence import Evidence
from focalcal.analysis.metric_names import HIGHER_IS_BETTER, MEANINGS, SINGLE_LABEL, UNDIRECTED, title, titled
from focalcal.analysis.numbers import Mean, best
from focalcal.reports.study_tables.captioned import CaptionedTable
from focalcal.reports.study_tables.flags import RULE, flag_note
from focalcal.reports.tables import Table

WIDEST = 12  # objectives; more of them are rows
_SPREAD = "Mean ± standard deviation (n - 1) over seeds; a single seed has no spread"


def metric_table(evidence: Evidence, metric: str, *, split: str = "test") -> CaptionedTable | None:
    """None if no run has the metric. Means that tie as printed are all bold; nothing is, if neither way is better."""
    cells = metric_cells(evidence, metric, split=split)
    if not cells:
        return None
    higher, directed = metric in HIGHER_IS_BETTER, metric not in UNDIRECTED
    objectives = [name for name in evidence.objectives if any(name in row for row in cells.values())]
    rows = {setting: [row.get(name) for name in objectives] for setting, row in cells.items()}
    masks = {
        setting: best(row, higher=higher, among=may_be_best(evidence, setting, objectives))
        if directed
        else [False] * len(row)
        for setting, row in rows.items()
    }
    marked = f"Best per setting in bold, ties as printed included; {RULE}; " * directed
    note = f"{_SPREAD}. {marked}{_uneven(cells)}.{flag_note(evidence)}"
    meaning = MEANINGS.get(metric, f"{'more' if higher else 'less'} is better")
    caption = f"{titled(metric)} on the {split} split, {meaning}"
    if len(objectives) > WIDEST:
        columns: dict[str, list[Any]] = {"objective": objectives, **rows}
        return CaptionedTable(caption, Table(columns, bold=masks), note)
    columns = {"setting": list(rows)} | {name: [row[at] for row in rows.values()] for at, name in enumerate(objectives)}
    bold = {name: [mask[at] for mask in masks.values()] for at, name in enumerate(objectives)}
    return CaptionedTable(caption, Table(columns, bold=bold), note)


def best_counts(evidence: Evidence) -> CaptionedTable | None:
    """In how many settings each objective has the best mean of each metric; ties as printed count for all."""
    metrics = [metric for metric in SINGLE_LABEL if metric_cells(evidence, metric)]
    if not metrics or len(evidence.objectives) < 2 or len(evidence.objectives) > WIDEST:
        return None
    wins: dict[str, list[int]] = {}
    for metric in metrics:
        won = dict.fromkeys(evidence.objectives, 0)
        for setting, row in metric_cells(evidence, metric).items():
            among = may_be_best(evidence, setting, list(row))
            for name, first in zip(row, best(list(row.values()), among=among), strict=True):
                won[name] += first
        wins[metric] = list(won.values())
    settings = len(evidence.settings)
    columns: dict[str, Any] = {"objective": list(evidence.objectives), **wins}
    columns["all"] = [sum(column[at] for column in wins.values()) for at in range(len(evidence.objectives))]
    bold = {name: best(values, higher=True, among=[count > 0 for count in values]) for name, values in wins.items()}
    return CaptionedTable(
        "How often each objective has the best mean",
        Table(columns, headings={metric: title(metric) for metric in metrics}, bold=bold),
        f"Of {settings} setting{'s' * (settings != 1)}, test split, mean over seeds. Ties as printed count for each; "
        f"{RULE}. A count of best means is not a test: see the comparisons.{flag_note(evidence)}",
    )


def _uneven(cells: dict[str, dict[str, Mean]]) -> str:
    counts = {cell.n for row in cells.values() for cell in row.values()}
    if len(counts) == 1:
        return f"n = {counts.pop()}"
    return f"n from {min(counts)} to {max(counts)}: not every cell has every seed"
