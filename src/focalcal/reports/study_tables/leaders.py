"""Who has the lowest mean of what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from focalcal.analysis.leaders import Leader
from focalcal.analysis.metric_names import titled
from focalcal.reports.tables import Table

_MOST_NAMED = 4  # that tie


def leading_objectives(leader: Leader, name: Callable[[str], str] = str) -> str:
    """Their names, or how many they are where a list would be too long to read."""
    *others, last = map(name, leader.objectives)
    if len(others) >= _MOST_NAMED:
        return f"{len(leader.objectives)} objectives"
    return f"{', '.join(others)} and {last}" if others else last


def leaders_table(found: Sequence[Leader], name: Callable[[str], str] = str) -> Table | None:
    """One row per setting and metric; None without leaders."""
    if not found:
        return None
    many = len({one.setting for one in found}) > 1
    columns: dict[str, list[Any]] = {"setting": [one.setting for one in found]} if many else {}
    columns |= {
        "metric": [titled(one.metric) for one in found],
        "lowest": [leading_objectives(leader, name) for leader in found],
        "mean": [one.mean for one in found],
        "next": [one.runner_up for one in found],
        "next_mean": [one.runner_up_mean for one in found],
        "seeds": [one.mean.n for one in found],
    }
    return Table(columns, headings={"next_mean": "its mean"})
