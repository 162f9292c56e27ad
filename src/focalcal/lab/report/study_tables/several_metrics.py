"""Metrics side by side, one row per setting and objective: the overview, the common split with AdaFocal, sweeps of lam;
and with columns of their own, transformers and the findings of several labels."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from focalcal.lab.evidence.cell_means import label_means
from focalcal.lab.evidence.contenders import best_objectives, best_of_settings
from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.evidence.metric_names import HIGHER_IS_BETTER, TITLES, UNDIRECTED, mean_shown, titled
from focalcal.lab.report.study_tables.flags import RULE, flag_column, flag_note
from focalcal.lab.report.study_tables.scaled_metrics import at_bound_note, fitted_mean
from focalcal.pages.numbers import Mean, Rounded
from focalcal.pages.tables import CaptionedTable, Table

TRANSFORMERS = ("deit_", "vit_", "swin_")
FOUR = ("error", "ece", "nll", "brier")
_OVERVIEW = (
    *("error", "ece", "adaptive_ece", "classwise_ece", "smooth_ece", "confidence_gap", "nll", "brier"),
    *("auroc", "posterior_distance"),
)
_BEST = (
    "Test split, no temperature; mean ± standard deviation (n - 1) over seeds; best per setting in bold, ties as "
    f"printed included; {RULE}."
)
_GAP = " Confidence gap: mean confidence minus accuracy, above 0 is overconfident."

Cells = Mapping[tuple[str, str], list[RunEvidence]]  # by setting and objective


def overview(evidence: Evidence) -> CaptionedTable | None:
    """Every setting and objective with every metric; None if no run was measured on the test split."""
    before: dict[str, list[Any]] = {"seeds": [len(runs) for runs in evidence.cells.values()], **flag_column(evidence)}
    table = _side_by_side(evidence, evidence.cells, _OVERVIEW, before=before)
    note = f"{_BEST}{_GAP * ('confidence_gap' in table.columns)} The best mean is not a test: see the comparisons."
    return CaptionedTable("Overview", table, note + flag_note(evidence)) if table.bold else None


def common_split(evidence: Evidence) -> CaptionedTable | None:
    """AdaFocal beside the others, none of which saw the validation examples that it learns from."""
    if "adafocal" not in evidence.objectives or evidence.fitted_on != "validation":
        return None
    temperatures = [fitted_mean(runs) for runs in evidence.cells.values()]
    return CaptionedTable(
        "Common split with AdaFocal",
        _side_by_side(evidence, evidence.cells, FOUR, after={"T": temperatures}),
        "Everyone trains without the validation examples, from which AdaFocal alone learns; T is fitted on them, and "
        f"changes none of the other numbers here. {_BEST} Not comparable with runs on the whole training set."
        + flag_note(evidence)
        + at_bound_note(evidence.runs),
    )


def transformer_table(evidence: Evidence) -> CaptionedTable | None:
    """One row per objective; error and ECE of each network, the best of each column in bold."""
    settings = [
        setting for setting in evidence.settings if evidence.place(setting).partition("/")[2].startswith(TRANSFORMERS)
    ]
    if not settings:
        return None
    runs = [run for run in evidence.runs if run.setting in settings]
    trained = {run.objective for run in runs}
    objectives = [name for name in evidence.objectives if name in trained]
    columns: dict[str, list[Any]] = {"objective": objectives}
    bold, headings, groups = {}, {}, {}
    for setting in settings:
        for metric in ("error", "ece"):
            values = evidence.values(setting, metric)
            cells = {objective: mean_shown(metric, values.get(objective, {}).values()) for objective in objectives}
            column = f"{setting} {metric}"
            columns[column] = list(cells.values())
            bold[column] = list(best_objectives(evidence, setting, cells).values())
            headings[column] = f"{setting} {titled(metric)}"
        groups[setting] = [f"{setting} error", f"{setting} ece"]
    tuned = sorted({"fine-tuned" if run.spec["training"].get("initial_weights") else "from scratch" for run in runs})
    note = (
        "Test split, no temperature; mean ± standard deviation (n - 1) over seeds; best per column in bold; "
        f"{RULE}.{flag_note(evidence, settings)}"
    )
    caption = f"Transformers, {' and '.join(tuned)}"
    return CaptionedTable(caption, Table(columns, headings=headings, bold=bold), note, groups)


def lam_sweep(evidence: Evidence) -> CaptionedTable | None:
    """An objective at several lam, all else equal, with the other objectives for reference; None without a sweep.

    A sweep is of one objective's options: MMCE's lam is none of FCL's. Grids over gamma and lam are surfaces, which are
    drawn.
    """
    shown: dict[tuple[str, str], list[RunEvidence]] = {}
    lams: list[Rounded | None] = []
    for setting in evidence.settings:
        cells = {name: runs for (place, name), runs in evidence.cells.items() if place == setting}
        families: dict[str, list[str]] = {}
        for name, runs in cells.items():
            families.setdefault(runs[0].spec["objective"], []).append(name)
        sweeps = [swept for names in families.values() if (swept := _swept(cells, names))]
        if sweeps:
            swept = [name for sweep in sweeps for name in sweep]
            others = [name for names in families.values() if _one_point(cells, names) for name in names]
            shown |= {(setting, name): cells[name] for name in (*others, *swept)}
            lams += [None] * len(others) + [Rounded(cells[name][0].options["lam"], "g") for name in swept]
    if not shown:
        return None
    table = _side_by_side(evidence, shown, (*FOUR, "mce", "auroc"), before={"lam": lams})
    flagged = flag_note(evidence, {setting for setting, _ in shown})
    note = f"{_BEST} Looked at on test data: it describes, and must not choose lam.{flagged}"
    return CaptionedTable("Sweep of lam", table, note)


def finding_table(evidence: Evidence, setting: str) -> CaptionedTable | None:
    """One row per finding, the mean over them and the count of wins; None if the setting has one label.

    Not in percent, as the literature has it. A win is the best mean over seeds as printed, ties counting for all.
    """
    values = {metric: label_means(evidence, setting, metric) for metric in ("auroc", "ece", "mce")}
    labels = list(dict.fromkeys(label for cells in values.values() for means in cells.values() for label in means))
    if not labels:
        return None
    columns: dict[str, list[Any]] = {"finding": [*labels, "mean", "best on"]}
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
        f"Test split; mean ± standard deviation (n - 1) over seeds; best in bold; {RULE}. best on: of {len(labels)} "
        "findings, ties as printed counting for each."
    )
    return CaptionedTable(f"{setting}: each finding", Table(columns, headings=headings, bold=bold), note, groups)


def _swept(cells: Mapping[str, list[RunEvidence]], names: Sequence[str]) -> list[str]:
    """These cells of one objective by lam; none if they differ in another option, or have fewer than two lam."""
    options = {name: cells[name][0].options for name in names}
    if not all("lam" in point for point in options.values()) or len({p["lam"] for p in options.values()}) < 2:
        return []
    rests = [{option: value for option, value in point.items() if option != "lam"} for point in options.values()]
    return sorted(names, key=lambda name: options[name]["lam"]) if all(rest == rests[0] for rest in rests) else []


def _one_point(cells: Mapping[str, list[RunEvidence]], names: Sequence[str]) -> bool:
    return all(cells[name][0].options == cells[names[0]][0].options for name in names)


def _side_by_side(
    evidence: Evidence,
    cells: Cells,
    metrics: Sequence[str],
    *,
    before: Mapping[str, list[Any]] | None = None,
    after: Mapping[str, list[Any]] | None = None,
) -> Table:
    """The metrics that some run has, the best of each setting in bold; `before` and `after` are columns beside them."""
    columns: dict[str, list[Any]] = {
        "setting": [setting for setting, _ in cells],
        "objective": [objective for _, objective in cells],
        **(before or {}),
    }
    bold: dict[str, list[bool]] = {}
    headings: dict[str, str] = {}
    for metric in metrics:
        means = {
            cell: mean_shown(metric, [run.metrics.get("test", {}).get(metric, math.nan) for run in runs])
            for cell, runs in cells.items()
        }
        if any(value is not None for value in means.values()):
            columns[metric], headings[metric] = list(means.values()), titled(metric)
            if metric not in UNDIRECTED:
                bold[metric] = best_of_settings(evidence, means, higher=metric in HIGHER_IS_BETTER)
    return Table(columns | dict(after or {}), headings=headings, bold=bold)


def _over_labels(evidence: Evidence, setting: str, metric: str, objective: str) -> Mean | None:
    """The stored mean over labels, or, where there is none, that of the labels there are."""
    values = [_one_mean(run.metrics.get("test", {}), metric) for run in evidence.of(setting, objective)]
    finite = [value for value in values if math.isfinite(value)]
    return Mean(finite, decimals=4) if finite else None


def _one_mean(metrics: dict[str, float], metric: str) -> float:
    each = [value for name, value in metrics.items() if name.startswith(f"{metric}/")]
    return metrics.get(metric, statistics.fmean(each) if each else math.nan)
