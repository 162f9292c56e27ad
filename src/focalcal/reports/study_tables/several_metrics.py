"""Metrics side by side, a row a setting and objective: the overview, the common split with AdaFocal, sweeps of lam;
and transformers, with networks side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from focalcal.reports.evidence import Evidence, RunEvidence
from focalcal.reports.metric_names import HIGHER_IS_BETTER, SINGLE_LABEL, mean, titled
from focalcal.reports.study_tables.captioned import CaptionedTable, best
from focalcal.reports.tables import Mean, Rounded, Table

TRANSFORMERS = ("deit_", "vit_", "swin_")
FOUR = ("error", "ece", "nll", "brier")
_OVERVIEW = (*SINGLE_LABEL, "auroc", "posterior_distance")
_BEST = (
    "Test split, no temperature; mean ± standard deviation (n - 1) over seeds; best per setting in bold, ties as "
    "printed included."
)

Rows = Mapping[str, Mapping[str, list[RunEvidence]]]  # by setting and objective


def overview(evidence: Evidence) -> CaptionedTable | None:
    """Every setting and objective with every metric; None if no run was measured on the test split."""
    rows = {setting: _of_setting(evidence, setting) for setting in evidence.settings}
    seeds = [len(runs) for group in rows.values() for runs in group.values()]
    table = _side_by_side(rows, _OVERVIEW, before={"seeds": seeds})
    note = f"{_BEST} The best mean is not a test: see the comparisons."
    return CaptionedTable("Overview", table, note) if table.bold else None


def common_split(evidence: Evidence) -> CaptionedTable | None:
    """AdaFocal beside the others, none of which saw the validation examples that it learns from."""
    if "adafocal" not in evidence.objectives or evidence.fitted_on != "validation":
        return None
    rows = {setting: _of_setting(evidence, setting) for setting in evidence.settings}
    temperatures = [_fitted(runs) for group in rows.values() for runs in group.values()]
    return CaptionedTable(
        "Common split with AdaFocal",
        _side_by_side(rows, FOUR, after={"T": temperatures}),
        "Everyone trains without the validation examples, from which AdaFocal alone learns; T is fitted on them, and "
        f"changes none of the other numbers here. {_BEST} Not comparable with runs on the whole training set.",
    )


def transformers(evidence: Evidence) -> CaptionedTable | None:
    """A row an objective; error and ECE of each network, the best of each column in bold."""
    settings = [one for one in evidence.settings if one.partition("/")[2].startswith(TRANSFORMERS)]
    if not settings:
        return None
    objectives = [name for name in evidence.objectives if any(evidence.of(one, name) for one in settings)]
    columns: dict[str, list[Any]] = {"objective": objectives}
    bold, headings, groups = {}, {}, {}
    for setting in settings:
        for metric in ("error", "ece"):
            values = evidence.values(setting, metric)
            name = f"{setting} {metric}"
            columns[name] = [mean(metric, values.get(one, {}).values()) for one in objectives]
            bold[name] = best(columns[name])
            headings[name] = f"{setting} {titled(metric)}"
        groups[setting] = [f"{setting} error", f"{setting} ece"]
    runs = [run for run in evidence.runs if run.setting in settings]
    tuned = sorted({"fine-tuned" if run.spec["training"].get("initial_weights") else "from scratch" for run in runs})
    note = "Test split, no temperature; mean ± standard deviation (n - 1) over seeds; best per column in bold."
    caption = f"Transformers, {' and '.join(tuned)}"
    return CaptionedTable(caption, Table(columns, headings=headings, bold=bold), note, groups)


def lam_sweep(evidence: Evidence) -> CaptionedTable | None:
    """FCL at several lam of one gamma, with the other objectives for reference; None without a sweep.

    Grids over gamma and lam are surfaces, which are drawn.
    """
    rows: dict[str, dict[str, list[RunEvidence]]] = {}
    lams: list[Rounded | None] = []
    for setting in evidence.settings:
        cells = _of_setting(evidence, setting)
        points = {name: runs[0].options for name, runs in cells.items() if "lam" in runs[0].options}
        if len({one["lam"] for one in points.values()}) < 2 or len({one.get("gamma") for one in points.values()}) > 1:
            continue
        others = [name for name in cells if name not in points]
        swept = sorted(points, key=lambda name: points[name]["lam"])
        rows[setting] = {name: cells[name] for name in (*others, *swept)}
        lams += [None] * len(others) + [Rounded(points[name]["lam"], "g") for name in swept]
    if not rows:
        return None
    table = _side_by_side(rows, (*FOUR, "mce", "auroc"), before={"lam": lams})
    note = f"{_BEST} Looked at on test data: it describes, and must not choose lam."
    return CaptionedTable("Sweep of lam", table, note)


def _of_setting(evidence: Evidence, setting: str) -> dict[str, list[RunEvidence]]:
    return {name: runs for name in evidence.objectives if (runs := evidence.of(setting, name))}


def _side_by_side(
    rows: Rows,
    metrics: Sequence[str],
    *,
    before: Mapping[str, list[Any]] | None = None,
    after: Mapping[str, list[Any]] | None = None,
) -> Table:
    """The metrics that some run has, the best of each setting in bold; `before` and `after` are columns beside them."""
    columns: dict[str, list[Any]] = {
        "setting": [setting for setting, group in rows.items() for _ in group],
        "objective": [name for group in rows.values() for name in group],
        **(before or {}),
    }
    bold: dict[str, list[bool]] = {}
    for metric in metrics:
        groups = [[_mean_over(runs, metric) for runs in group.values()] for group in rows.values()]
        if any(cell is not None for cells in groups for cell in cells):
            higher = metric in HIGHER_IS_BETTER
            columns[metric] = [cell for cells in groups for cell in cells]
            bold[metric] = [mark for cells in groups for mark in best(cells, higher=higher)]
    return Table(columns | dict(after or {}), headings={name: titled(name) for name in bold}, bold=bold)


def _mean_over(runs: Sequence[RunEvidence], metric: str) -> Mean | None:
    return mean(metric, [run.metrics["test"][metric] for run in runs if metric in run.metrics.get("test", {})])


def _fitted(runs: Sequence[RunEvidence]) -> Mean | None:
    found = [run.scaled.temperature for run in runs if run.scaled is not None]
    return Mean(found, decimals=3) if found else None
