"""Temperature scaling: the fitted T, and metrics before and after on the same examples."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

from focalcal.lab.evidence.contenders import best_of_settings, contenders
from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.evidence.metric_names import mean_shown, title
from focalcal.lab.evidence.temperature_effect import NEAR_ONE, Scaled
from focalcal.lab.report.study_tables.flags import RULE
from focalcal.pages.numbers import Mean, Rounded, best
from focalcal.pages.tables import CaptionedTable, Table

_SHOWN = ("ece", "adaptive_ece", "nll", "brier")
_HOW = {
    "halves": "T minimises the NLL of one half of the test examples, drawn anew for each seed; before and after are of "
    "the other half, so not comparable with tables of the whole test split",
    "validation": "T minimises the NLL of the validation split; before and after are of the whole test split",
}


def temperature_table(evidence: Evidence) -> CaptionedTable | None:
    """One row per setting and objective; the best of each setting in bold. None if nothing was scaled."""
    cells = _scaled_cells(evidence)
    if not cells:
        return None
    columns: dict[str, Any] = {
        "setting": [setting for setting, _ in cells],
        "objective": [objective for _, objective in cells],
        "T": [fitted_mean(runs) for runs in cells.values()],
    }
    headings, bold, groups = {}, {}, {}
    bounded = [len(runs) - len(_optima(runs)) for runs in cells.values()]
    if any(bounded):
        columns["at_bound"] = [f"{count} of {len(runs)}" for count, runs in zip(bounded, cells.values(), strict=True)]
        headings["at_bound"] = "no finite T"
    for metric in _SHOWN:
        groups[title(metric)] = [f"{metric}_{when}" for when in ("before", "after")]
        for when in ("before", "after"):
            means = {
                cell: mean_shown(metric, [getattr(optimum, when)[metric] for optimum in _optima(runs)])
                for cell, runs in cells.items()
            }
            name = f"{metric}_{when}"
            columns[name] = list(means.values())
            headings[name] = f"{title(metric)}{' %' * ('ece' in metric)} {when}"
            bold[name] = best_of_settings(evidence, means)
    note = (
        f"{_HOW[evidence.fitted_on]}. Mean ± standard deviation (n - 1) over seeds; best per setting in bold; {RULE}."
        + at_bound_note(evidence.runs)
    )
    return CaptionedTable("Temperature scaling", Table(columns, headings=headings, bold=bold), note, groups)


def temperature_distances(evidence: Evidence) -> CaptionedTable | None:
    """One row per objective: how far T is from 1 over settings, each with the mean of its seeds, and over runs."""
    cells = _scaled_cells(evidence)
    if not cells:
        return None
    columns: dict[str, list[Any]] = {}
    for objective in dict.fromkeys(name for _, name in cells):
        settings = [
            [optimum.temperature for optimum in _optima(runs)] for (_, name), runs in cells.items() if name == objective
        ]
        single = [t for fitted in settings for t in fitted]
        means = [statistics.fmean(fitted) for fitted in settings if fitted]
        for name, value in {
            "objective": objective,
            "distance": _distance(means),
            "settings_near": _near(means),
            "run_distance": _distance(single),
            "runs_near": _near(single),
        }.items():
            columns.setdefault(name, []).append(value)
    headings = {
        "distance": "mean |T - 1|, settings",
        "settings_near": f"settings in {list(NEAR_ONE)}",
        "run_distance": "mean |T - 1|, runs",
        "runs_near": f"runs in {list(NEAR_ONE)}",
    }
    useful = [
        all(name in contenders(evidence, setting) for setting, objective in cells if objective == name)
        for name in columns["objective"]
    ]
    bold = {name: best(columns[name], among=useful) for name in ("distance", "run_distance")}
    return CaptionedTable(
        "How far the fitted temperatures are from 1",
        Table(columns, headings=headings, bold=bold),
        "The T of a setting is the mean over its seeds. T = 1 means that scaling has nothing to fix, "
        f"not that the probabilities are right. In bold the least; {RULE}.{at_bound_note(evidence.runs)}",
    )


def at_bound_note(runs: Iterable[RunEvidence]) -> str:
    """How many runs have no finite T, and that they are in no mean; nothing if there are none."""
    fitted = [run for run in runs if run.scaled is not None]
    bounded = len(fitted) - len(_optima(fitted))
    if not bounded:
        return ""
    return (
        f" In {bounded} of {len(fitted)} runs no T is best, as when every example that it is fitted on is "
        "predicted right: there is no finite optimum, a bound (0.001 or 1000) was taken, and neither T nor the metrics "
        "before and after it are in any mean here. Too few examples, not a finding."
    )


def fitted_mean(runs: Iterable[RunEvidence]) -> Mean | None:
    """The mean T of the runs that have a finite one."""
    fitted = [optimum.temperature for optimum in _optima(runs)]
    return Mean(fitted, decimals=3) if fitted else None


def _scaled_cells(evidence: Evidence) -> dict[tuple[str, str], list[RunEvidence]]:
    cells = {cell: [run for run in runs if run.scaled is not None] for cell, runs in evidence.cells.items()}
    return {cell: runs for cell, runs in cells.items() if runs}


def _optima(runs: Iterable[RunEvidence]) -> list[Scaled]:
    return [run.optimum for run in runs if run.optimum is not None]


def _distance(temperatures: list[float]) -> Rounded:
    return Rounded(statistics.fmean(abs(t - 1) for t in temperatures) if temperatures else math.nan, ".3f")


def _near(temperatures: list[float]) -> str:
    low, high = NEAR_ONE
    return f"{sum(low <= t <= high for t in temperatures)} of {len(temperatures)}"
