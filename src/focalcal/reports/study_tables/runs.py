"""Every run of a study with its numbers."""

from __future__ import annotations

import math
from typing import Any

from focalcal.analysis.contenders import is_constant_guess
from focalcal.analysis.evidence import Evidence
from focalcal.analysis.leaders import HEADLINE
from focalcal.analysis.metric_names import shown, titled
from focalcal.analysis.numbers import Rounded
from focalcal.reports.tables import Table


def runs_table(evidence: Evidence) -> Table | None:
    """One row per run; None without runs."""
    if not evidence.runs:
        return None
    tests = [run.metrics.get("test", {}) for run in evidence.runs]
    columns: dict[str, list[Any]] = {
        "run": [run.key[:12] for run in evidence.runs],
        "setting": [run.setting for run in evidence.runs],
        "objective": [run.objective for run in evidence.runs],
        "seed": [run.seed for run in evidence.runs],
    }
    for metric in (*HEADLINE, "confidence_gap"):
        if any(metric in test for test in tests):
            columns[titled(metric)] = [shown(metric, test.get(metric, math.nan)) for test in tests]
    if any(run.scaled is not None and run.scaled.at_bound for run in evidence.runs):
        columns["no finite T"] = [None if run.scaled is None else run.scaled.at_bound for run in evidence.runs]
    if any(run.scaled is not None for run in evidence.runs):
        columns["T"] = [None if run.scaled is None else Rounded(run.scaled.temperature, ".3f") for run in evidence.runs]
    useless = {run.key for run in evidence.runs if is_constant_guess(run)}
    if useless:
        columns["flag"] = ["constant guess" if run.key in useless else None for run in evidence.runs]
    columns["epochs"] = [run.record.get("epochs") for run in evidence.runs]
    columns["seconds"] = [float(run.record.get("seconds", math.nan)) for run in evidence.runs]
    return Table(columns)
