"""One metric, one column per objective, the best of each row in bold: by setting, by shift; who is best how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from focalcal.lab.evidence.cell_means import metric_cells, shift_aurocs, shifts_of
from focalcal.lab.evidence.contenders import best_objectives
from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.metric_names import HIGHER_IS_BETTER, MEANINGS, SINGLE_LABEL, UNDIRECTED, title, titled
from focalcal.lab.report.study_tables.flags import RULE, flag_note
from focalcal.pages.numbers import Mean, best
from focalcal.pages.tables import CaptionedTable, Table

WIDEST = 12  # objectives; more of them are rows
Rows = Mapping[tuple[str, ...], Mapping[str, Mean]]
_SPREAD = "Mean ± standard deviation (n - 1) over seeds; a single seed has no spread"


def metric_means(evidence: Evidence, metric: str) -> CaptionedTable | None:
    """None if no run has the metric. Means that tie as printed are all bold; nothing is, if neither way is better."""
    cells = metric_cells(evidence, metric)
    if not cells:
        return None
    higher, directed = metric in HIGHER_IS_BETTER, metric not in UNDIRECTED
    objectives = [name for name in evidence.objectives if any(name in row for row in cells.values())]
    marked = f"Best per setting in bold, ties as printed included; {RULE}; " * directed
    counts = {cell.n for row in cells.values() for cell in row.values()}
    if len(counts) == 1:
        seeds = f"n = {counts.pop()}"
    else:
        seeds = f"n from {min(counts)} to {max(counts)}: not every cell has every seed"
    meaning = MEANINGS.get(metric, f"{'more' if higher else 'less'} is better")
    rows: Rows = {(setting,): row for setting, row in cells.items()}
    table = _by_objective(evidence, ("setting",), rows, objectives, higher=higher, directed=directed)
    if len(objectives) > WIDEST:
        table = _transposed(table, "objective")
    caption = f"{titled(metric)} on the test split, {meaning}"
    return CaptionedTable(caption, table, f"{_SPREAD}. {marked}{seeds}.{flag_note(evidence)}")


def shift_auroc(evidence: Evidence) -> CaptionedTable | None:
    """How well the confidence tells shifted inputs from clean ones: one row per setting and shift.

    A shift of several sets (cifar10c/fog/5, ...) is the mean over them.
    """
    shifts = dict.fromkeys(name for run in evidence.runs for name in shifts_of(run))
    rows: dict[tuple[str, ...], dict[str, Mean]] = {
        (setting, shift): row
        for setting in evidence.settings
        for shift in shifts
        if (row := shift_aurocs(evidence, setting, shift))
    }
    if not rows:
        return None
    return CaptionedTable(
        "Shift detection, AUROC, more is better",
        _by_objective(evidence, ("setting", "shift"), rows, evidence.objectives, higher=True),
        "Of the largest probability, clean test examples against shifted ones, no temperature; sets of corruptions are "
        "averaged; mean ± standard deviation (n - 1) over seeds; best per row in bold, ties as printed included; "
        f"{RULE}.{flag_note(evidence)}",
    )


def best_counts(evidence: Evidence) -> CaptionedTable | None:
    """In how many settings each objective has the best mean of each metric; ties as printed count for all."""
    rows = {metric: cells for metric in SINGLE_LABEL if (cells := metric_cells(evidence, metric))}
    if not rows or not 2 <= len(evidence.objectives) <= WIDEST:
        return None
    wins: dict[str, list[int]] = {}
    for metric, cells in rows.items():
        marks = [best_objectives(evidence, setting, row) for setting, row in cells.items()]
        wins[metric] = [sum(mark.get(name, False) for mark in marks) for name in evidence.objectives]
    settings = len(evidence.settings)
    columns: dict[str, Any] = {"objective": list(evidence.objectives), **wins}
    columns["all"] = [sum(counts) for counts in zip(*wins.values(), strict=True)]
    bold = {name: best(values, higher=True, among=[count > 0 for count in values]) for name, values in wins.items()}
    return CaptionedTable(
        "How often each objective has the best mean",
        Table(columns, headings={metric: title(metric) for metric in rows}, bold=bold),
        f"Of {settings} setting{'s' * (settings != 1)}, test split, mean over seeds. Ties as printed count for each; "
        f"{RULE}. A count of best means is not a test: see the comparisons.{flag_note(evidence)}",
    )


def _by_objective(
    evidence: Evidence,
    headings: Sequence[str],
    rows: Rows,
    objectives: Sequence[str],
    *,
    higher: bool,
    directed: bool = True,
) -> Table:
    """`rows` by their first cells, of which the first is the setting; `headings` stand above these."""
    cells = {place: {name: row.get(name) for name in objectives} for place, row in rows.items()}
    columns: dict[str, list[Any]] = {heading: [place[at] for place in cells] for at, heading in enumerate(headings)}
    columns |= {name: [row[name] for row in cells.values()] for name in objectives}
    marks = [best_objectives(evidence, place[0], row, higher=higher) for place, row in cells.items()]
    return Table(columns, bold={name: [mark[name] for mark in marks] for name in objectives} if directed else {})


def _transposed(table: Table, heading: str) -> Table:
    """With the first column as the headings of the others."""
    first, *names = table.columns
    columns: dict[str, list[Any]] = {heading: names}
    bold: dict[str, list[bool]] = {}
    for at, name in enumerate(table.columns[first]):
        columns[name] = [table.columns[column][at] for column in names]
        bold[name] = [table.bold[column][at] for column in names] if table.bold else [False] * len(names)
    return Table(columns, bold=bold)
