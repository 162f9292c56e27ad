"""Temperature scaling: the fitted T, and metrics before and after on the same examples."""

from __future__ import annotations

import statistics
from typing import Any

from focalcal.reports.evidence import Evidence, RunEvidence
from focalcal.reports.metric_names import mean, title
from focalcal.reports.study_tables.captioned import CaptionedTable, best
from focalcal.reports.tables import Mean, Rounded, Table

NEAR_ONE = (0.9, 1.1)
_SHOWN = ("ece", "adaptive_ece", "nll", "brier")
_HOW = {
    "halves": "T minimises the NLL of one half of the test examples, drawn anew for each seed; before and after are of "
    "the other half, so not comparable with tables of the whole test split",
    "validation": "T minimises the NLL of the validation split; before and after are of the whole test split",
}


def temperature(evidence: Evidence) -> CaptionedTable | None:
    """A row a setting and objective; the best of each setting in bold. None if nothing was scaled."""
    cells = _cells(evidence)
    if not cells:
        return None
    columns: dict[str, Any] = {
        "setting": [setting for setting, _ in cells],
        "objective": [objective for _, objective in cells],
        "T": [Mean([_t(run) for run in runs], decimals=3) for runs in cells.values()],
    }
    headings, bold, groups = {}, {}, {}
    for metric in _SHOWN:
        names = {f"{metric}_{when}": when for when in ("before", "after")}
        for name, when in names.items():
            values = [[getattr(run.scaled, when)[metric] for run in runs] for runs in cells.values()]
            columns[name] = [mean(metric, one) for one in values]
            headings[name] = f"{title(metric)}{' %' * ('ece' in metric)} {when}"
            bold[name] = _best_of_setting(columns["setting"], columns[name])
        groups[title(metric)] = list(names)
    note = f"{_HOW[evidence.fitted_on]}. Mean ± standard deviation (n - 1) over seeds; best per setting in bold."
    note += _at_bound(cells)
    return CaptionedTable("Temperature scaling", Table(columns, headings=headings, bold=bold), note, groups)


def temperature_distance(evidence: Evidence) -> CaptionedTable | None:
    """A row an objective: how far T is from 1 over settings, each with the mean of its seeds, and over runs."""
    cells = _cells(evidence)
    if not cells:
        return None
    low, high = NEAR_ONE
    columns: dict[str, list[Any]] = {}
    for objective in dict.fromkeys(name for _, name in cells):
        single = [_t(run) for (_, name), runs in cells.items() if name == objective for run in runs]
        means = [statistics.fmean(map(_t, runs)) for (_, name), runs in cells.items() if name == objective]
        for name, value in {
            "objective": objective,
            "distance": statistics.fmean(abs(t - 1) for t in means),
            "settings_near": f"{sum(low <= t <= high for t in means)} of {len(means)}",
            "run_distance": statistics.fmean(abs(t - 1) for t in single),
            "runs_near": f"{sum(low <= t <= high for t in single)} of {len(single)}",
        }.items():
            columns.setdefault(name, []).append(value)
    span = f"[{low}, {high}]"
    headings = {
        "distance": "mean |T - 1|, settings",
        "settings_near": f"settings in {span}",
        "run_distance": "mean |T - 1|, runs",
        "runs_near": f"runs in {span}",
    }
    rounded = {name: [Rounded(value, ".3f") for value in columns[name]] for name in ("distance", "run_distance")}
    table = Table(columns | rounded, headings=headings, bold={name: best(one) for name, one in rounded.items()})
    return CaptionedTable(
        "How far the fitted temperatures are from 1",
        table,
        "The T of a setting is the mean over its seeds, as in the paper. T = 1 means that scaling has nothing to mend, "
        "not that the probabilities are right." + _at_bound(cells),
    )


def _cells(evidence: Evidence) -> dict[tuple[str, str], list[RunEvidence]]:
    found: dict[tuple[str, str], list[RunEvidence]] = {}
    for setting in evidence.settings:
        for objective in evidence.objectives:
            runs = [run for run in evidence.of(setting, objective) if run.scaled is not None]
            if runs:
                found[setting, objective] = runs
    return found


def _at_bound(cells: dict[tuple[str, str], list[RunEvidence]]) -> str:
    runs = [run.scaled for group in cells.values() for run in group if run.scaled is not None]
    bound = sum(run.at_bound for run in runs)
    if not bound:
        return ""
    return (
        f" In {bound} of {len(runs)} runs no T is best, as when every example that it is fitted on is predicted "
        "right, and a bound, 0.001 or 1000, is taken; single errors then cost without limit: too few "
        "examples, not a finding."
    )


def _t(run: RunEvidence) -> float:
    assert run.scaled is not None
    return run.scaled.temperature


def _best_of_setting(settings: list[str], cells: list[Any]) -> list[bool]:
    mask = [False] * len(cells)
    for setting in dict.fromkeys(settings):
        rows = [at for at, one in enumerate(settings) if one == setting]
        for at, first in zip(rows, best([cells[at] for at in rows]), strict=True):
            mask[at] = first
    return mask
