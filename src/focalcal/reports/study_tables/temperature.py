"""Temperature scaling: the fitted T, and metrics before and after on the same examples."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

from focalcal.analysis.contenders import contenders
from focalcal.analysis.evidence import Evidence, RunEvidence
from focalcal.analysis.metric_names import mean, title
from focalcal.analysis.numbers import Mean, Rounded, best
from focalcal.analysis.temperature_effect import NEAR_ONE
from focalcal.reports.study_tables.captioned import CaptionedTable
from focalcal.reports.study_tables.flags import RULE
from focalcal.reports.tables import Table

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
        "T": [fitted_mean(runs) for runs in cells.values()],
    }
    if any(_bounded(runs) for runs in cells.values()):
        columns["at_bound"] = [f"{_bounded(runs)} of {len(runs)}" for runs in cells.values()]
    headings, bold, groups = ({"at_bound": "no finite T"} if "at_bound" in columns else {}), {}, {}
    for metric in _SHOWN:
        names = {f"{metric}_{when}": when for when in ("before", "after")}
        for name, when in names.items():
            values = [[getattr(run.scaled, when)[metric] for run in _with_optimum(runs)] for runs in cells.values()]
            columns[name] = [mean(metric, one) for one in values]
            headings[name] = f"{title(metric)}{' %' * ('ece' in metric)} {when}"
            bold[name] = _best_of_setting(evidence, list(cells), columns[name])
        groups[title(metric)] = list(names)
    note = (
        f"{_HOW[evidence.fitted_on]}. Mean ± standard deviation (n - 1) over seeds; best per setting in bold; {RULE}."
    )
    note += at_bound_note(run for runs in cells.values() for run in runs)
    return CaptionedTable("Temperature scaling", Table(columns, headings=headings, bold=bold), note, groups)


def temperature_distance(evidence: Evidence) -> CaptionedTable | None:
    """A row an objective: how far T is from 1 over settings, each with the mean of its seeds, and over runs."""
    cells = _cells(evidence)
    if not cells:
        return None
    low, high = NEAR_ONE
    columns: dict[str, list[Any]] = {}
    for objective in dict.fromkeys(name for _, name in cells):
        groups = [_with_optimum(runs) for (_, name), runs in cells.items() if name == objective]
        single = [_t(run) for runs in groups for run in runs]
        means = [statistics.fmean(map(_t, runs)) for runs in groups if runs]
        for name, value in {
            "objective": objective,
            "distance": statistics.fmean(abs(t - 1) for t in means) if means else math.nan,
            "settings_near": f"{sum(low <= t <= high for t in means)} of {len(means)}",
            "run_distance": statistics.fmean(abs(t - 1) for t in single) if single else math.nan,
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
    useful = [
        all(name in contenders(evidence, setting) for setting, one in cells if one == name)
        for name in columns["objective"]
    ]
    bold = {name: best(one, among=useful) for name, one in rounded.items()}
    table = Table(columns | rounded, headings=headings, bold=bold)
    return CaptionedTable(
        "How far the fitted temperatures are from 1",
        table,
        "The T of a setting is the mean over its seeds. T = 1 means that scaling has nothing to fix, "
        f"not that the probabilities are right. In bold the least; {RULE}."
        + at_bound_note(run for runs in cells.values() for run in runs),
    )


def _cells(evidence: Evidence) -> dict[tuple[str, str], list[RunEvidence]]:
    found: dict[tuple[str, str], list[RunEvidence]] = {}
    for setting in evidence.settings:
        for objective in evidence.objectives:
            runs = [run for run in evidence.of(setting, objective) if run.scaled is not None]
            if runs:
                found[setting, objective] = runs
    return found


def at_bound_note(runs: Iterable[RunEvidence]) -> str:
    """How many runs have no finite T, and that they are in no mean; nothing if there are none."""
    fitted = [run for run in runs if run.scaled is not None]
    if not _bounded(fitted):
        return ""
    return (
        f" In {_bounded(fitted)} of {len(fitted)} runs no T is best, as when every example that it is fitted on is "
        "predicted right: there is no finite optimum, a bound (0.001 or 1000) was taken, and neither T nor the metrics "
        "before and after it are in any mean here. Too few examples, not a finding."
    )


def fitted_mean(runs: Iterable[RunEvidence]) -> Mean | None:
    """The mean T of the runs that have a finite one."""
    found = [_t(run) for run in _with_optimum(runs)]
    return Mean(found, decimals=3) if found else None


def _with_optimum(runs: Iterable[RunEvidence]) -> list[RunEvidence]:
    return [run for run in runs if run.scaled is not None and not run.scaled.at_bound]


def _bounded(runs: Iterable[RunEvidence]) -> int:
    return sum(run.scaled is not None and run.scaled.at_bound for run in runs)


def _t(run: RunEvidence) -> float:
    assert run.scaled is not None
    return run.scaled.temperature


def _best_of_setting(evidence: Evidence, names: list[tuple[str, str]], cells: list[Any]) -> list[bool]:
    """`names` are the setting and objective of each cell."""
    mask = [False] * len(cells)
    for setting in dict.fromkeys(setting for setting, _ in names):
        rows = [at for at, (one, _) in enumerate(names) if one == setting]
        allowed = contenders(evidence, setting)
        among = [names[at][1] in allowed for at in rows]
        for at, first in zip(rows, best([cells[at] for at in rows], among=among), strict=True):
            mask[at] = first
    return mask
