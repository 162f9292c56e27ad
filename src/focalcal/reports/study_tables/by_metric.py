"""One metric: a row a setting, a column an objective, the best of each row in bold; and who is best how often."""

from __future__ import annotations

from typing import Any

from focalcal.reports.evidence import Evidence
from focalcal.reports.metric_names import HIGHER_IS_BETTER, SINGLE_LABEL, mean, title, titled
from focalcal.reports.study_tables.captioned import CaptionedTable, best
from focalcal.reports.tables import Mean, Table

WIDEST = 12  # objectives; more of them are rows
_SPREAD = "Mean ± standard deviation (n - 1) over seeds; a single seed has no spread"


def metric_table(evidence: Evidence, metric: str, *, split: str = "test") -> CaptionedTable | None:
    """None if no run has the metric. Means that tie as printed are all bold."""
    cells = metric_cells(evidence, metric, split=split)
    if not cells:
        return None
    higher = metric in HIGHER_IS_BETTER
    objectives = [name for name in evidence.objectives if any(name in row for row in cells.values())]
    rows = {setting: [row.get(name) for name in objectives] for setting, row in cells.items()}
    masks = {setting: best(row, higher=higher) for setting, row in rows.items()}
    note = f"{_SPREAD}. Best per setting in bold, ties as printed included; {_uneven(cells)}".rstrip("; ") + "."
    caption = f"{titled(metric)} on the {split} split, {'more' if higher else 'less'} is better"
    if len(objectives) > WIDEST:
        columns: dict[str, list[Any]] = {"objective": objectives, **rows}
        return CaptionedTable(caption, Table(columns, bold=masks), note)
    columns = {"setting": list(rows)} | {name: [row[at] for row in rows.values()] for at, name in enumerate(objectives)}
    bold = {name: [mask[at] for mask in masks.values()] for at, name in enumerate(objectives)}
    return CaptionedTable(caption, Table(columns, bold=bold), note)


def metric_cells(evidence: Evidence, metric: str, *, split: str = "test") -> dict[str, dict[str, Mean]]:
    """By setting and objective, those that have a value."""
    found: dict[str, dict[str, Mean]] = {}
    for setting in evidence.settings:
        for objective, values in evidence.values(setting, metric, split=split).items():
            cell = mean(metric, values.values())
            if cell is not None:
                found.setdefault(setting, {})[objective] = cell
    return found


def best_counts(evidence: Evidence) -> CaptionedTable | None:
    """In how many settings each objective has the best mean of each metric; ties as printed count for all."""
    metrics = [metric for metric in SINGLE_LABEL if metric_cells(evidence, metric)]
    if not metrics or len(evidence.objectives) < 2 or len(evidence.objectives) > WIDEST:
        return None
    wins: dict[str, list[int]] = {}
    for metric in metrics:
        won = dict.fromkeys(evidence.objectives, 0)
        for row in metric_cells(evidence, metric).values():
            for name, first in zip(row, best(list(row.values())), strict=True):
                won[name] += first
        wins[metric] = list(won.values())
    settings = len(evidence.settings)
    columns: dict[str, Any] = {"objective": list(evidence.objectives), **wins}
    columns["all"] = [sum(column[at] for column in wins.values()) for at in range(len(evidence.objectives))]
    bold = {name: best(values, higher=True) for name, values in wins.items()}
    return CaptionedTable(
        "How often each objective has the best mean",
        Table(columns, headings={metric: title(metric) for metric in metrics}, bold=bold),
        f"Of {settings} setting{'s' * (settings != 1)}, test split, mean over seeds. Ties as printed count for each. "
        "A count of best means is not a test: see the comparisons.",
    )


def _uneven(cells: dict[str, dict[str, Mean]]) -> str:
    counts = {cell.n for row in cells.values() for cell in row.values()}
    if len(counts) == 1:
        return f"n = {counts.pop()}"
    return f"n from {min(counts)} to {max(counts)}: not every cell has every seed"
