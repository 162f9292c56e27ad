"""One objective against every other, setting by setting: families of paired tests, and what they cannot show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from focalcal.core.checks import one_of
from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.metric_names import HIGHER_IS_BETTER, UNDIRECTED
from focalcal.stats import PRIMARY, Comparison, compare

MOST_COMPARED = 15  # objectives: more are a grid, of which pairs say little
_CANDIDATES = ("fcl", "multilabel_fcl")  # by default
BASELINES = ("ce", "multilabel_bce")  # what a candidate is compared with first, and is not by default


@dataclass(frozen=True)
class FamilyNote:
    """Why a family has no test of a metric, or one of fewer pairs; `report.study_tables.paired` has the sentences.

    not measured  `objectives` have no such metric
    not finite    the pairs of `seeds` were left out
    too few       only `seeds` are common, and a test needs two; significance at `alpha` would need `seeds_needed`
    """

    kind: Literal["not measured", "not finite", "too few"]
    metric: str
    objectives: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    seeds_needed: int = 0
    alpha: float = 0.0


@dataclass(frozen=True)
class Family:
    """The tests of one candidate against one baseline in one setting, corrected together (Holm).

    `comparisons` is empty where `notes` say why no test was made.
    """

    setting: str
    candidate: str
    baseline: str
    comparisons: tuple[Comparison, ...]
    notes: tuple[FamilyNote, ...] = ()

    @property
    def reachable(self) -> bool:
        """Whether some outcome of some test could have been significant."""
        return any(test.reachable for test in self.comparisons)


def candidate_of(evidence: Evidence) -> str | None:
    """The objective that everything is compared with: the one the study names, else FCL, else the first but CE.

    None where it is alone, is not stored, or has several points: the best of many is no fair candidate; and of a grid
    that names none.
    """
    names = [evidence.candidate] if evidence.candidate else _CANDIDATES
    found = next((points for name in names if (points := evidence.named(name))), [])
    if not found and not evidence.candidate and len(evidence.objectives) <= MOST_COMPARED:
        proper = [point for name in BASELINES for point in evidence.named(name)]
        found = [name for name in evidence.objectives if name not in proper][:1]
    return found[0] if len(found) == 1 and len(evidence.objectives) > 1 else None


def comparisons(
    evidence: Evidence,
    candidate: str,
    baselines: Sequence[str] | None = None,
    *,
    metrics: Sequence[str] = PRIMARY,
    alpha: float = 0.05,
    split: str = "test",
) -> list[Family]:
    """A family for each setting that has the candidate, and each baseline (default: every other objective).

    Seeds that both have are paired; a pair with a number that is not finite is left out, and noted.
    """
    checked_metrics(metrics)
    return [
        _family(evidence, setting, candidate, baseline, metrics, alpha, split)
        for setting in evidence.settings
        if evidence.of(setting, candidate)
        for baseline in (evidence.objectives if baselines is None else baselines)
        if baseline != candidate and (baselines is not None or evidence.of(setting, baseline))
    ]


def chosen_comparisons(
    evidence: Evidence, candidate: str | None, baselines: Sequence[str], *, metrics: Sequence[str], **options: Any
) -> list[Family]:
    """`comparisons` of what names and patterns with * and ? mean: each candidate against its baselines.

    Without a candidate it is `candidate_of`; without baselines every other objective of its setting is one. What no run
    has is refused, and what there is named.
    """
    if len(evidence.objectives) < 2:
        raise ValueError(
            f"the store must hold two objectives to compare, got {evidence.objectives[0]!r} alone; train another"
        )
    split = options.get("split", "test")
    one_of("split", split, dict.fromkeys(name for run in evidence.runs for name in run.metrics))
    known = dict.fromkeys(name for run in evidence.runs for name in run.metrics.get(split, {}))
    whole = [name for name in known if "/" not in name and name not in UNDIRECTED]  # not ece/Hernia
    for metric in metrics:
        if metric not in known:
            one_of("metrics", metric, whole)
    if (chosen := candidate or candidate_of(evidence)) is None:
        there = ", ".join(map(repr, evidence.objectives))
        raise ValueError(f"candidate must be given where none is chosen by default, got none; name one of {there}")
    candidates = _matching(evidence, chosen)
    if chosen in baselines:
        raise ValueError(f"baselines must not hold the candidate, got {chosen!r}; compare it with another")
    others = list(dict.fromkeys(name for baseline in baselines for name in _matching(evidence, baseline)))
    return [
        family
        for name in candidates
        for family in comparisons(
            evidence, name, [other for other in others if other != name] if others else None, metrics=metrics, **options
        )
    ]


def _matching(evidence: Evidence, pattern: str) -> list[str]:
    """The objectives of that name, or that a pattern matches; the error says which there are."""
    points = evidence.named(pattern)
    if len(points) == 1:
        return points
    if matches := [name for name in evidence.objectives if fnmatchcase(name, pattern)]:
        return matches
    known = ", ".join(map(repr, points or evidence.objectives))
    remedy = f"name one of them, or all with {f'{pattern}*'!r}" if points else "name one of them, or a pattern"
    raise ValueError(f"objectives must be among those of the runs, {known}, got {pattern!r}; {remedy}")


def all_comparisons(families: Iterable[Family]) -> list[Comparison]:
    """The comparisons of all families."""
    return [test for family in families for test in family.comparisons]


def seeds_needed(tests: int, alpha: float = 0.05) -> int:
    """The least n at which a family of so many two-sided tests can be significant: tests * 2 / 2^n <= alpha.

    >>> seeds_needed(4), seeds_needed(1)
    (8, 6)
    """
    return max(1, math.ceil(math.log2(2 * tests / alpha)))


def checked_metrics(metrics: Sequence[str]) -> None:
    """Refuse metrics of which neither less nor more is better."""
    if not metrics:
        raise ValueError(f"metrics must name one at least, got none; the usual ones are {', '.join(PRIMARY)}")
    for metric in metrics:
        if metric.partition("/")[0] in UNDIRECTED:
            raise ValueError(f"metrics must be such that less or more is better, got {metric!r}; leave it out")


def _family(
    evidence: Evidence, setting: str, candidate: str, baseline: str, metrics: Sequence[str], alpha: float, split: str
) -> Family:
    ours: dict[str, dict[int, float]] = {}
    theirs: dict[str, dict[int, float]] = {}
    notes: list[FamilyNote] = []
    for metric in dict.fromkeys(metrics):
        values = evidence.values(setting, metric, split=split)
        if absent := [name for name in (candidate, baseline) if name not in values]:
            notes.append(FamilyNote("not measured", metric, objectives=tuple(absent)))
            continue
        common = sorted(values[candidate].keys() & values[baseline].keys())
        odd = [s for s in common if not math.isfinite(values[candidate][s]) or not math.isfinite(values[baseline][s])]
        if odd:
            notes.append(FamilyNote("not finite", metric, seeds=tuple(odd)))
        paired = [seed for seed in common if seed not in odd]
        if len(paired) < 2:
            needed = seeds_needed(len(metrics), alpha)
            notes.append(FamilyNote("too few", metric, seeds=tuple(paired), seeds_needed=needed, alpha=alpha))
            continue
        ours[metric] = {seed: values[candidate][seed] for seed in paired}
        theirs[metric] = {seed: values[baseline][seed] for seed in paired}
    higher = [metric for metric in ours if metric.partition("/")[0] in HIGHER_IS_BETTER]
    tests = compare(ours, theirs, metrics=list(ours), alpha=alpha, higher_is_better=higher) if ours else []
    return Family(setting, candidate, baseline, tuple(tests), tuple(notes))
