"""Metrics side by side, one row per setting and objective: the overview, the common split with AdaFocal, sweeps of lam;
and transformers, with networks side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from focalcal.analysis.contenders import may_be_best
from focalcal.analysis.evidence import Evidence, RunEvidence
from focalcal.analysis.metric_names import HIGHER_IS_BETTER, UNDIRECTED, mean, titled
from focalcal.analysis.numbers import Mean, Rounded, best
from focalcal.reports.study_tables.captioned import CaptionedTable
from focalcal.reports.study_tables.flags import RULE, flag_column, flag_note
from focalcal.reports.study_tables.temperature import at_bound_note, fitted_mean
from focalcal.reports.tables import Table

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

Rows = Mapping[str, Mapping[str, list[RunEvidence]]]  # by setting and objective


def overview(evidence: Evidence) -> CaptionedTable | None:
    """Every setting and objective with every metric; None if no run was measured on the test split."""
    rows = {setting: _of_setting(evidence, setting) for setting in evidence.settings}
    seeds = [len(runs) for group in rows.values() for runs in group.values()]
    flags = flag_column(evidence, [(setting, name) for setting, group in rows.items() for name in group])
    table = _side_by_side(evidence, rows, _OVERVIEW, before={"seeds": seeds, **flags})
    note = f"{_BEST}{_GAP * ('confidence_gap' in table.columns)} The best mean is not a test: see the comparisons."
    return CaptionedTable("Overview", table, note + flag_note(evidence)) if table.bold else None


def common_split(evidence: Evidence) -> CaptionedTable | None:
    """AdaFocal beside the others, none of which saw the validation examples that it learns from."""
    if "adafocal" not in evidence.objectives or evidence.fitted_on != "validation":
        return None
    rows = {setting: _of_setting(evidence, setting) for setting in evidence.settings}
    temperatures = [fitted_mean(runs) for group in rows.values() for runs in group.values()]
    return CaptionedTable(
        "Common split with AdaFocal",
        _side_by_side(evidence, rows, FOUR, after={"T": temperatures}),
        "Everyone trains without the validation examples, from which AdaFocal alone learns; T is fitted on them, and "
        f"changes none of the other numbers here. {_BEST} Not comparable with runs on the whole training set."
        + flag_note(evidence)
        + at_bound_note(run for group in rows.values() for runs in group.values() for run in runs),
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
            bold[name] = best(columns[name], among=may_be_best(evidence, setting, objectives))
            headings[name] = f"{setting} {titled(metric)}"
        groups[setting] = [f"{setting} error", f"{setting} ece"]
    runs = [run for run in evidence.runs if run.setting in settings]
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
    rows: dict[str, dict[str, list[RunEvidence]]] = {}
    lams: list[Rounded | None] = []
    for setting in evidence.settings:
        cells = _of_setting(evidence, setting)
        families: dict[str, list[str]] = {}
        for name, runs in cells.items():
            families.setdefault(runs[0].spec["objective"], []).append(name)
        sweeps = [swept for names in families.values() if (swept := _swept(cells, names))]
        if sweeps:
            swept = [name for sweep in sweeps for name in sweep]
            others = [name for names in families.values() if _one_point(cells, names) for name in names]
            rows[setting] = {name: cells[name] for name in (*others, *swept)}
            lams += [None] * len(others) + [Rounded(cells[name][0].options["lam"], "g") for name in swept]
    if not rows:
        return None
    table = _side_by_side(evidence, rows, (*FOUR, "mce", "auroc"), before={"lam": lams})
    note = f"{_BEST} Looked at on test data: it describes, and must not choose lam.{flag_note(evidence, rows)}"
    return CaptionedTable("Sweep of lam", table, note)


def _swept(cells: Mapping[str, list[RunEvidence]], names: Sequence[str]) -> list[str]:
    """These cells of one objective by lam; none if they differ in another option, or have fewer than two lam."""
    options = {name: cells[name][0].options for name in names}
    if not all("lam" in one for one in options.values()) or len({one["lam"] for one in options.values()}) < 2:
        return []
    rests = [{option: value for option, value in one.items() if option != "lam"} for one in options.values()]
    return sorted(names, key=lambda name: options[name]["lam"]) if all(one == rests[0] for one in rests) else []


def _one_point(cells: Mapping[str, list[RunEvidence]], names: Sequence[str]) -> bool:
    return all(cells[name][0].options == cells[names[0]][0].options for name in names)


def _of_setting(evidence: Evidence, setting: str) -> dict[str, list[RunEvidence]]:
    return {name: runs for name in evidence.objectives if (runs := evidence.of(setting, name))}


def _side_by_side(
    evidence: Evidence,
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
    headings: dict[str, str] = {}
    allowed = [may_be_best(evidence, setting, list(group)) for setting, group in rows.items()]
    for metric in metrics:
        groups = [[_mean_over(runs, metric) for runs in group.values()] for group in rows.values()]
        if any(cell is not None for cells in groups for cell in cells):
            columns[metric] = [cell for cells in groups for cell in cells]
            headings[metric] = titled(metric)
            if metric not in UNDIRECTED:
                higher = metric in HIGHER_IS_BETTER
                bold[metric] = [
                    mark
                    for cells, among in zip(groups, allowed, strict=True)
                    for mark in best(cells, higher=higher, among=among)
                ]
    return Table(columns | dict(after or {}), headings=headings, bold=bold)


def _mean_over(runs: Sequence[RunEvidence], metric: str) -> Mean | None:
    return mean(metric, [run.metrics["test"][metric] for run in runs if metric in run.metrics.get("test", {})])
