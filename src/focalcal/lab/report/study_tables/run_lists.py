"""Tables of the page alone: who has the lowest mean of what, and every run with its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from focalcal.lab.evidence.cell_means import HEADLINE, Leader
from focalcal.lab.evidence.contenders import is_constant_guess
from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.metric_names import PERCENT, as_shown, titled
from focalcal.pages.numbers import Rounded
from focalcal.pages.tables import Table

_MOST_NAMED = 4  # that tie


def leading_objectives(leader: Leader, name: Callable[[str], str] = str) -> str:
    """Their names, or how many they are where a list would be too long to read."""
    *others, last = map(name, leader.objectives)
    if len(others) >= _MOST_NAMED:
        return f"{len(leader.objectives)} objectives"
    return f"{', '.join(others)} and {last}" if others else last


def leaders_table(leaders: Sequence[Leader], name: Callable[[str], str] = str) -> Table | None:
    """One row per setting and metric; None without leaders."""
    if not leaders:
        return None
    many = len({leader.setting for leader in leaders}) > 1
    columns: dict[str, list[Any]] = {"setting": [leader.setting for leader in leaders]} if many else {}
    columns |= {
        "metric": [titled(leader.metric) for leader in leaders],
        "lowest": [leading_objectives(leader, name) for leader in leaders],
        "mean": [leader.mean for leader in leaders],
        "next": [leader.runner_up for leader in leaders],
        "next_mean": [leader.runner_up_mean for leader in leaders],
        "seeds": [leader.mean.n for leader in leaders],
    }
    return Table(columns, headings={"next_mean": "its mean"})


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
            form = ".2f" if metric in PERCENT else ".4f"
            columns[titled(metric)] = [Rounded(as_shown(metric, test.get(metric, math.nan)), form) for test in tests]
    fitted = [run.scaled for run in evidence.runs]
    if any(scaling is not None and scaling.at_bound for scaling in fitted):
        columns["no finite T"] = [scaling and scaling.at_bound for scaling in fitted]
    if any(fitted):
        columns["T"] = [scaling and Rounded(scaling.temperature, ".3f") for scaling in fitted]
    flags = ["constant guess" if is_constant_guess(run) else None for run in evidence.runs]
    if any(flags):
        columns["flag"] = flags
    columns["epochs"] = [run.record.get("epochs") for run in evidence.runs]
    columns["seconds"] = [float(run.record.get("seconds", math.nan)) for run in evidence.runs]
    return Table(columns)
