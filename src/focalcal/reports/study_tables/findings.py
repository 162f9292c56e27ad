"""Several labels: AUROC, ECE and MCE of each finding, who is better on how many, beside what others reported."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from focalcal.analysis.cell_means import label_means
from focalcal.analysis.contenders import best_objectives
from focalcal.analysis.evidence import Evidence
from focalcal.analysis.numbers import HIGHER_IS_BETTER, TITLES, Mean
from focalcal.analysis.paper_numbers import LITERATURE, literature_auroc
from focalcal.reports.study_tables.flags import RULE
from focalcal.reports.tables import CaptionedTable, Table

METRICS = ("auroc", "ece", "mce")
MEAN = "mean"
WINS = "best on"


def findings(evidence: Evidence, setting: str) -> CaptionedTable | None:
    """One row per finding, the mean over them and the count of wins; None if the setting has one label.

    Not in percent, as the literature has it. A win is the best mean over seeds as printed, ties counting for all.
    """
    values = {metric: label_means(evidence, setting, metric) for metric in METRICS}
    labels = list(dict.fromkeys(label for cells in values.values() for means in cells.values() for label in means))
    if not labels:
        return None
    columns: dict[str, list[Any]] = {"finding": [*labels, MEAN, WINS]}
    bold: dict[str, list[bool]] = {}
    headings: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for metric, cells in values.items():
        rows: list[dict[str, Mean | None]] = [{name: cells[name].get(label) for name in cells} for label in labels]
        rows.append({name: _over_labels(evidence, setting, metric, name) for name in cells})
        marks = [best_objectives(evidence, setting, row, higher=metric in HIGHER_IS_BETTER) for row in rows]
        for name in cells:
            column = f"{metric} {name}"
            columns[column] = [*(row[name] for row in rows), sum(mark[name] for mark in marks[:-1])]
            bold[column] = [*(mark[name] for mark in marks), False]
            headings[column] = f"{TITLES[metric]} {name}"
            groups.setdefault(TITLES[metric], []).append(column)
    note = (
        f"Test split; mean ± standard deviation (n - 1) over seeds; best in bold; {RULE}. {WINS}: of {len(labels)} "
        "findings, ties as printed counting for each."
    )
    reported = {author: [literature_auroc(label).get(author) for label in labels] for author in LITERATURE}
    if any(value is not None for printed in reported.values() for value in printed):
        for author, printed in reported.items():
            columns[author] = [*printed, None, None]
            headings[author] = f"{author} (literature)"
        groups["AUROC in the literature"] = list(reported)
        note += (
            " Columns of the literature are as printed there, on other splits of the data: context, not a comparison."
        )
    return CaptionedTable(f"{setting}: each finding", Table(columns, headings=headings, bold=bold), note, groups)


def _over_labels(evidence: Evidence, setting: str, metric: str, objective: str) -> Mean | None:
    """The stored mean over labels, or, where there is none, that of the labels there are."""
    values = [_one_mean(run.metrics.get("test", {}), metric) for run in evidence.of(setting, objective)]
    finite = [value for value in values if math.isfinite(value)]
    return Mean(finite, decimals=4) if finite else None


def _one_mean(metrics: dict[str, float], metric: str) -> float:
    each: Sequence[float] = [value for name, value in metrics.items() if name.startswith(f"{metric}/")]
    return metrics.get(metric, statistics.fmean(each) if each else math.nan)
