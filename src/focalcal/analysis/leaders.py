"""Which objective has the lowest mean of each metric, in each setting."""

from __future__ import annotations

import math
from dataclasses import dataclass

from focalcal.analysis.contenders import contenders
from focalcal.analysis.evidence import Evidence
from focalcal.analysis.metric_names import mean
from focalcal.analysis.numbers import Mean

HEADLINE = ("error", "ece", "adaptive_ece", "nll", "brier")  # of each of them less is better


@dataclass(frozen=True)
class Leader:
    """The objective with the lowest mean of a metric in one setting, and the next one, among those that may lead.

    Several lead if their means tie as they are printed; there is no next one if all do.
    """

    setting: str
    metric: str
    objectives: tuple[str, ...]
    mean: Mean
    runner_up: str | None = None
    runner_up_mean: Mean | None = None


def leaders(evidence: Evidence) -> list[Leader]:
    """By setting and metric, of the test split.

    An objective without a finite mean cannot lead, nor one whose error is too far above the lowest (`contenders`); a
    metric with fewer than two finite means has no leader.
    """
    found = []
    for setting in evidence.settings:
        allowed = contenders(evidence, setting)
        for metric in HEADLINE:
            every = {name: mean(metric, one.values()) for name, one in evidence.values(setting, metric).items()}
            means = {name: one for name, one in every.items() if one is not None and math.isfinite(one)}
            ordered = sorted(means.keys() & allowed, key=lambda name: float(means[name]))
            if len(means) < 2 or not ordered:
                continue
            lowest = means[ordered[0]]
            first = [name for name in ordered if means[name].printed == lowest.printed]
            second = ordered[len(first)] if len(first) < len(ordered) else None
            found.append(
                Leader(setting, metric, tuple(first), lowest, second, None if second is None else means[second])
            )
    return found
