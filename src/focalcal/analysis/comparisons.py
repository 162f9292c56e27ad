"""One objective against every other, setting by setting: families of paired tests, and what they cannot show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from focalcal.analysis.evidence import Evidence
from focalcal.analysis.metric_names import HIGHER_IS_BETTER, UNDIRECTED
from focalcal.stats import PRIMARY, Comparison, compare, verdict_counts

CANDIDATES = ("fcl", "multilabel_fcl")


@dataclass(frozen=True)
class Family:
    """The tests of one candidate against one baseline in one setting, corrected together (Holm).

    `comparisons` is empty where `notes` say why no test was made.
    """

    setting: str
    candidate: str
    baseline: str
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Pairs of the comparison that has fewest; 0 without any."""
        return min((one.test.n for one in self.comparisons), default=0)

    @property
    def reachable(self) -> bool:
        """Whether some outcome of some test could have been significant."""
        return any(one.reachable for one in self.comparisons)


def usual_candidate(evidence: Evidence) -> str | None:
    """FCL, if it is there as one objective and something to compare it with is."""
    found = [name for name in CANDIDATES if name in evidence.objectives]
    return found[0] if found and len(evidence.objectives) > 1 else None


def comparisons(
    evidence: Evidence,
    candidate: str = "fcl",
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
    found = []
    for setting in evidence.settings:
        if not evidence.of(setting, candidate):
            continue
        for baseline in evidence.objectives if baselines is None else baselines:
            if baseline != candidate and (baselines is not None or evidence.of(setting, baseline)):
                found.append(_family(evidence, setting, candidate, baseline, metrics, alpha, split))
    return found


def counts(families: Iterable[Family]) -> dict[str, int]:
    """How many comparisons are better, worse and indistinguishable, over all families."""
    return {str(verdict): count for verdict, count in verdict_counts(_all(families)).items()}


def cannot_show(families: Sequence[Family], alpha: float = 0.05) -> list[str]:
    """Sentences: how far the numbers of seeds reach, and which tests were not made."""
    floors: dict[tuple[int, float, float], int] = {}
    made = list(_all(families))
    for one in made:
        if not one.reachable:
            key = (one.test.n, one.test.floor, one.floor_adjusted)
            floors[key] = floors.get(key, 0) + 1
    told = [
        f"n = {n}: p >= {floor:.3g}, {adjusted:.3g} after Holm's correction, whatever the effect: "
        f"{count} of {len(made)} comparisons cannot be significant at {alpha:g}"
        for (n, floor, adjusted), count in sorted(floors.items())
    ]
    return told + [
        f"{family.setting}, {family.candidate} against {family.baseline}: {note}"
        for family in families
        for note in family.notes
    ]


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


def _all(families: Iterable[Family]) -> Iterable[Comparison]:
    return (one for family in families for one in family.comparisons)


def _family(
    evidence: Evidence, setting: str, candidate: str, baseline: str, metrics: Sequence[str], alpha: float, split: str
) -> Family:
    ours: dict[str, dict[int, float]] = {}
    theirs: dict[str, dict[int, float]] = {}
    notes: list[str] = []
    for metric in dict.fromkeys(metrics):
        values = evidence.values(setting, metric, split=split)
        if absent := [name for name in (candidate, baseline) if name not in values]:
            notes.append(f"no {metric} of {' and '.join(absent)}")
            continue
        common = sorted(values[candidate].keys() & values[baseline].keys())
        odd = [s for s in common if not math.isfinite(values[candidate][s]) or not math.isfinite(values[baseline][s])]
        if odd:
            notes.append(f"{metric} of seed {', '.join(map(str, odd))} is not finite; the pair is left out")
        paired = [seed for seed in common if seed not in odd]
        if len(paired) < 2:
            have = f"seed {paired[0]} alone" if paired else "none"
            notes.append(f"{metric} has too few common seeds for a test, {have}; {_enough(len(metrics), alpha)}")
            continue
        ours[metric] = {seed: values[candidate][seed] for seed in paired}
        theirs[metric] = {seed: values[baseline][seed] for seed in paired}
    higher = [metric for metric in ours if metric.partition("/")[0] in HIGHER_IS_BETTER]
    tests = compare(ours, theirs, metrics=list(ours), alpha=alpha, higher_is_better=higher) if ours else []
    return Family(setting, candidate, baseline, tuple(tests), tuple(_shortened(notes)))


def _enough(tests: int, alpha: float) -> str:
    return f"two are needed, and {seeds_needed(tests, alpha)} for significance at {alpha:g}"


def _shortened(notes: list[str]) -> list[str]:
    """One sentence where every metric says the same of itself."""
    rests = {note.partition(" ")[2] for note in notes}
    if len(notes) > 1 and len(rests) == 1 and not notes[0].startswith("no "):
        return [f"every metric {rests.pop()}"]
    return notes
