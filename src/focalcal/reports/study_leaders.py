"""Which objective has the lowest mean of each metric, in each setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from focalcal.reports.evidence import Evidence
from focalcal.reports.metric_names import PERCENT, mean, title, titled
from focalcal.reports.tables import Mean, Table

HEADLINE = ("error", "ece", "adaptive_ece", "nll", "brier")  # of each of them less is better
_MOST_NAMED = 4  # that tie


@dataclass(frozen=True)
class Leader:
    """The objective with the lowest mean of a metric in one setting, and the next one.

    Several lead if their means tie as they are printed; there is no next one if all do.
    """

    setting: str
    metric: str
    objectives: tuple[str, ...]
    mean: Mean
    runner_up: str | None = None
    runner_up_mean: Mean | None = None

    @property
    def who(self) -> str:
        """The objectives, or how many they are where a list would be too long to read."""
        *others, last = self.objectives
        if len(others) >= _MOST_NAMED:
            return f"{len(self.objectives)} objectives"
        return f"{', '.join(others)} and {last}" if others else last

    def __str__(self) -> str:
        """`ECE (1.23 %)`."""
        name = title(self.metric)
        shown = name.lower() if self.metric == "error" else name
        return f"{shown} ({self.mean.printed}{' %' if self.metric in PERCENT else ''})"


def leaders(evidence: Evidence) -> list[Leader]:
    """By setting and metric, of the test split.

    An objective without a finite mean cannot lead, and a metric with fewer than two finite means has no leader.
    """
    found = []
    for setting in evidence.settings:
        for metric in HEADLINE:
            every = {name: mean(metric, one.values()) for name, one in evidence.values(setting, metric).items()}
            means = {name: one for name, one in every.items() if one is not None and math.isfinite(one)}
            if len(means) < 2:
                continue
            ordered = sorted(means, key=lambda name: float(means[name]))
            lowest = means[ordered[0]]
            first = [name for name in ordered if means[name].printed == lowest.printed]
            second = ordered[len(first)] if len(first) < len(ordered) else None
            found.append(
                Leader(setting, metric, tuple(first), lowest, second, None if second is None else means[second])
            )
    return found


def leaders_table(found: Sequence[Leader]) -> Table | None:
    """A row a setting and metric; None without leaders."""
    if not found:
        return None
    many = len({one.setting for one in found}) > 1
    columns: dict[str, list[Any]] = {"setting": [one.setting for one in found]} if many else {}
    columns |= {
        "metric": [titled(one.metric) for one in found],
        "lowest": [one.who for one in found],
        "mean": [one.mean for one in found],
        "next": [one.runner_up for one in found],
        "next_mean": [one.runner_up_mean for one in found],
        "seeds": [one.mean.n for one in found],
    }
    return Table(columns, headings={"next_mean": "its mean"})
