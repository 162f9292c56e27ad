"""The result of a study in one comparison: what the candidate changes, setting by setting."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from focalcal.analysis.comparisons import comparisons, usual_candidate
from focalcal.analysis.evidence import Evidence
from focalcal.analysis.metric_names import HIGHER_IS_BETTER
from focalcal.stats.comparison import Verdict

_BASELINES = ("ce", "multilabel_bce")  # the first that is there; else the first other objective


@dataclass(frozen=True)
class Change:
    """In one setting, over the seeds that both have: means, and in how many of them the candidate is better.

    error    mean test errors of baseline and candidate; None if not measured
    verdict  of the paired test; None where it was not made or could not have been significant
    """

    setting: str
    before: float
    after: float
    better: int
    worse: int
    seeds: int
    error: tuple[float, float] | None
    verdict: Verdict | None


@dataclass(frozen=True)
class Headline:
    """`changes` in the order of the settings."""

    candidate: str
    baseline: str
    metric: str
    changes: tuple[Change, ...]


def headline(evidence: Evidence, metric: str = "ece") -> Headline | None:
    """FCL against cross-entropy on the test split; None if there is no candidate, or nothing that both have."""
    candidate = usual_candidate(evidence)
    if candidate is None:
        return None
    others = [name for name in evidence.objectives if name != candidate]
    baseline = next((name for name in _BASELINES if name in others), others[0])
    verdicts = {
        family.setting: comparison.verdict
        for family in comparisons(evidence, candidate, [baseline])
        for comparison in family.comparisons
        if comparison.metric == metric and comparison.reachable
    }
    changes = [_change(evidence, setting, candidate, baseline, metric, verdicts) for setting in evidence.settings]
    known = tuple(change for change in changes if change is not None)
    return Headline(candidate, baseline, metric, known) if known else None


def _change(
    evidence: Evidence, setting: str, candidate: str, baseline: str, metric: str, verdicts: dict[str, Verdict]
) -> Change | None:
    values = evidence.values(setting, metric)
    ours, theirs = values.get(candidate, {}), values.get(baseline, {})
    seeds = [seed for seed in ours if math.isfinite(ours[seed]) and math.isfinite(theirs.get(seed, math.nan))]
    if not seeds:
        return None
    sign = -1 if metric in HIGHER_IS_BETTER else 1
    differences = [sign * (ours[seed] - theirs[seed]) for seed in seeds]
    errors = evidence.values(setting, "error")
    pair = [[errors.get(name, {}).get(seed, math.nan) for seed in seeds] for name in (baseline, candidate)]
    means = tuple(statistics.fmean(several) for several in pair)
    return Change(
        setting=setting,
        before=statistics.fmean(theirs[seed] for seed in seeds),
        after=statistics.fmean(ours[seed] for seed in seeds),
        better=sum(difference < 0 for difference in differences),
        worse=sum(difference > 0 for difference in differences),
        seeds=len(seeds),
        error=(means[0], means[1]) if all(map(math.isfinite, means)) else None,
        verdict=verdicts.get(setting),
    )
