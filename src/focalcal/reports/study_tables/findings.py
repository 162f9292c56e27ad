"""Several labels: AUROC, ECE and MCE of each finding, who is better on how many, beside what others reported."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from focalcal.analysis.cell_means import label_means
from focalcal.analysis.contenders import may_be_best
from focalcal.analysis.evidence import Evidence
from focalcal.analysis.metric_names import HIGHER_IS_BETTER, TITLES
from focalcal.analysis.numbers import Mean, best
from focalcal.analysis.paper_numbers import LITERATURE, literature_auroc
from focalcal.reports.study_tables.captioned import CaptionedTable
from focalcal.reports.study_tables.flags import RULE
from focalcal.reports.tables import Table

METRICS = ("auroc", "ece", "mce")
MEAN = "mean"
WINS = "best on"


def findings(evidence: Evidence, setting: str) -> CaptionedTable | None:
    """A row a finding, the mean over them and the count of wins; None if the setting has one label.

    Not in percent, as the literature has it. A win is the best mean over seeds as printed, ties counting for all.
    """
    values = {metric: label_means(evidence, setting, metric) for metric in METRICS}
    labels = list(dict.fromkeys(label for cells in values.values() for one in cells.values() for label in one))
    if not labels:
        return None
    columns: dict[str, list[Any]] = {"finding": [*labels, MEAN, WINS]}
    bold: dict[str, list[bool]] = {}
    headings: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for metric, cells in values.items():
        objectives = list(cells)
        rows = [[cells[name].get(label) for name in objectives] for label in labels]
        rows.append([_over_labels(evidence, setting, metric, name) for name in objectives])
        among = may_be_best(evidence, setting, objectives)
        masks = [best(row, higher=metric in HIGHER_IS_BETTER, among=among) for row in rows]
        for at, name in enumerate(objectives):
            column = f"{metric} {name}"
            won = sum(mask[at] for mask in masks[:-1])
            columns[column] = [*(row[at] for row in rows), won]
            bold[column] = [*(mask[at] for mask in masks), False]
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
