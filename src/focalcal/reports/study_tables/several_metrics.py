"""A few metrics side by side: the common split with AdaFocal, transformers, and sweeps of lam."""

from __future__ import annotations

from typing import Any

from focalcal.reports.evidence import Evidence, RunEvidence
from focalcal.reports.metric_names import HIGHER_IS_BETTER, mean, titled
from focalcal.reports.study_tables.captioned import CaptionedTable, best
from focalcal.reports.tables import Table

TRANSFORMERS = ("deit_", "vit_", "swin_")
FOUR = ("error", "ece", "nll", "brier")


def common_split(evidence: Evidence) -> CaptionedTable | None:
    """AdaFocal beside the others, none of which saw the validation examples that it learns from."""
    if "adafocal" not in evidence.objectives or evidence.fitted_on != "validation":
        return None
    columns: dict[str, list[Any]] = {"setting": [], "objective": []}
    bold: dict[str, list[bool]] = {}
    for setting in evidence.settings:
        there = [name for name in evidence.objectives if evidence.of(setting, name)]
        columns["setting"] += [setting] * len(there)
        columns["objective"] += there
        _add(columns, bold, {name: evidence.of(setting, name) for name in there}, FOUR)
    return CaptionedTable(
        "Common split with AdaFocal",
        Table(columns, headings={name: titled(name) for name in FOUR}, bold=bold),
        "Everyone trains without the validation examples, from which AdaFocal alone learns; temperatures, where shown, "
        "are fitted on them. Test split, no temperature; mean ± standard deviation (n - 1) over seeds; best per "
        "setting in bold. Not comparable with runs on the whole training set.",
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
    columns: dict[str, list[Any]] = {}
    bold: dict[str, list[bool]] = {}
    metrics = [one for one in (*FOUR, "mce", "auroc") if any(evidence.values(s, one) for s in evidence.settings)]
    for setting in evidence.settings:
        points = {
            name: runs[0].options
            for name in evidence.objectives
            if (runs := evidence.of(setting, name)) and "lam" in runs[0].options
        }
        if len({one["lam"] for one in points.values()}) < 2 or len({one.get("gamma") for one in points.values()}) > 1:
            continue
        others = [name for name in evidence.objectives if name not in points and evidence.of(setting, name)]
        rows = others + sorted(points, key=lambda name: points[name]["lam"])
        columns.setdefault("setting", []).extend([setting] * len(rows))
        columns.setdefault("objective", []).extend(rows)
        columns.setdefault("lam", []).extend(points[name]["lam"] if name in points else None for name in rows)
        _add(columns, bold, {name: evidence.of(setting, name) for name in rows}, metrics)
    if not columns:
        return None
    return CaptionedTable(
        "Sweep of lam",
        Table(columns, headings={name: titled(name) for name in metrics}, bold=bold),
        "Test split, no temperature; best per setting in bold. Looked at on test data: it describes, and must not "
        "choose lam.",
    )


def _add(
    columns: dict[str, list[Any]], bold: dict[str, list[bool]], cells: dict[str, list[RunEvidence]], metrics: Any
) -> None:
    """Append a setting's rows."""
    for metric in metrics:
        values = [
            mean(metric, [run.metrics["test"][metric] for run in runs if metric in run.metrics.get("test", {})])
            for runs in cells.values()
        ]
        columns.setdefault(metric, []).extend(values)
        bold.setdefault(metric, []).extend(best(values, higher=metric in HIGHER_IS_BETTER))
