"""What a study found, as objects: what the paired tests say and could have said, and the result in one comparison."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from focalcal.lab.evidence.comparisons import (
    BASELINES,
    MOST_COMPARED,
    Family,
    all_comparisons,
    candidate_of,
    comparisons,
    seeds_needed,
)
from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.temperature_effect import EvidenceNote
from focalcal.stats import verdict_counts
from focalcal.stats.comparison import Verdict

ALPHA = 0.05
_FAMILIES: WeakKeyDictionary[Evidence, list[Family]] = WeakKeyDictionary()


@dataclass(frozen=True)
class PairVerdicts:
    """One candidate against one baseline, over all settings.

    counts   of each verdict
    clear    setting, metric and verdict of the comparisons that are not indistinguishable
    """

    candidate: str
    baseline: str
    settings: tuple[str, ...]
    counts: dict[Verdict, int]
    clear: tuple[tuple[str, str, Verdict], ...]


@dataclass(frozen=True)
class Significance:
    """What the paired tests say, and what they could not have said whatever the numbers.

    tests         in the largest family, which Holm's correction is over
    hopeless      comparisons that could not have been significant with their seeds
    floor         the least p that any of them could give
    seeds         of the comparisons, each count once
    seeds_needed  for the largest family
    """

    candidates: tuple[str, ...]
    pairs: tuple[PairVerdicts, ...]
    comparisons: int
    tests: int
    hopeless: int
    floor: float
    seeds: tuple[int, ...]
    seeds_needed: int


@dataclass(frozen=True)
class ObjectiveChange:
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
    """What the candidate changes in the baseline's ECE, in the order of the settings."""

    candidate: str
    baseline: str
    changes: tuple[ObjectiveChange, ...]


def study_families(evidence: Evidence) -> list[Family]:
    """The candidate against every other objective; without one, the first objective; none of a grid.

    Tables, page and sentences ask for them: they are computed once.
    """
    if evidence not in _FAMILIES:
        candidate = candidate_of(evidence)
        if candidate is None and 2 <= len(evidence.objectives) <= MOST_COMPARED:
            candidate = evidence.objectives[0]
        _FAMILIES[evidence] = [] if candidate is None else comparisons(evidence, candidate, alpha=ALPHA)
    return _FAMILIES[evidence]


def significance(families: Sequence[Family]) -> Significance | None:
    """None without any comparison."""
    every = all_comparisons(families)
    if not every:
        return None
    tests = max(len(family.comparisons) for family in families)
    pairs = dict.fromkeys((family.candidate, family.baseline) for family in families if family.comparisons)
    return Significance(
        candidates=tuple(dict.fromkeys(family.candidate for family in families)),
        pairs=tuple(_pair_verdicts(*pair, families) for pair in pairs),
        comparisons=len(every),
        tests=tests,
        hopeless=sum(not comparison.reachable for comparison in every),
        floor=min(comparison.test.floor for comparison in every),
        seeds=tuple(sorted({comparison.test.n for comparison in every})),
        seeds_needed=seeds_needed(tests, ALPHA),
    )


def run_notes(evidence: Evidence) -> dict[EvidenceNote, list[str]]:
    """What runs say of themselves, which no gap says already, each note once with the names of the runs."""
    noted: dict[EvidenceNote, list[str]] = {}
    for run in evidence.runs:
        for note in run.notes:
            if note.kind != "unreadable":
                noted.setdefault(note, []).append(run.name)
    return noted


def headline(evidence: Evidence) -> Headline | None:
    """The candidate's ECE against cross-entropy's on the test split, or the first other objective's without it.

    None if there is no candidate, or nothing that both have.
    """
    candidate = candidate_of(evidence)
    if candidate is None:
        return None
    others = [name for name in evidence.objectives if name != candidate]
    usual = [point for name in BASELINES for point in evidence.named(name) if point in others]
    baseline = (usual or others)[0]
    verdicts = {
        family.setting: comparison.verdict
        for family in study_families(evidence)
        if family.baseline == baseline
        for comparison in family.comparisons
        if comparison.metric == "ece" and comparison.reachable
    }
    changes = [_change(evidence, setting, candidate, baseline, verdicts) for setting in evidence.settings]
    known = tuple(change for change in changes if change is not None)
    return Headline(candidate, baseline, known) if known else None


def _pair_verdicts(candidate: str, baseline: str, families: Sequence[Family]) -> PairVerdicts:
    of_pair = [family for family in families if (family.candidate, family.baseline) == (candidate, baseline)]
    clear = tuple(
        (family.setting, comparison.metric, comparison.verdict)
        for family in of_pair
        for comparison in family.comparisons
        if comparison.verdict != "indistinguishable"
    )
    counts = verdict_counts(all_comparisons(of_pair))
    return PairVerdicts(candidate, baseline, tuple(family.setting for family in of_pair), counts, clear)


def _change(
    evidence: Evidence, setting: str, candidate: str, baseline: str, verdicts: dict[str, Verdict]
) -> ObjectiveChange | None:
    values = evidence.values(setting, "ece")
    ours, theirs = values.get(candidate, {}), values.get(baseline, {})
    seeds = [seed for seed in ours if math.isfinite(ours[seed]) and math.isfinite(theirs.get(seed, math.nan))]
    if not seeds:
        return None
    differences = [ours[seed] - theirs[seed] for seed in seeds]
    errors = evidence.values(setting, "error")
    pair = [[errors.get(name, {}).get(seed, math.nan) for seed in seeds] for name in (baseline, candidate)]
    means = [statistics.fmean(values) for values in pair]
    return ObjectiveChange(
        setting=setting,
        before=statistics.fmean(theirs[seed] for seed in seeds),
        after=statistics.fmean(ours[seed] for seed in seeds),
        better=sum(difference < 0 for difference in differences),
        worse=sum(difference > 0 for difference in differences),
        seeds=len(seeds),
        error=(means[0], means[1]) if all(map(math.isfinite, means)) else None,
        verdict=verdicts.get(setting),
    )
