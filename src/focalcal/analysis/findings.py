"""What a study found, as objects: who leads, what the paired tests say and could have said, what runs note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from focalcal.analysis.comparisons import Family, comparisons, seeds_needed, usual_candidate
from focalcal.analysis.contenders import ConstantGuess, constant_guesses
from focalcal.analysis.evidence import Evidence, EvidenceNote
from focalcal.analysis.gaps import EvidenceGap
from focalcal.analysis.leaders import Leader, leaders
from focalcal.analysis.temperature_effect import FittedOn
from focalcal.stats import verdict_counts
from focalcal.stats.comparison import Verdict

ALPHA = 0.05
MOST_COMPARED = 15  # objectives: more are a grid, of which pairs say little


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
    alpha: float = ALPHA


@dataclass(frozen=True)
class RunNote:
    """What some runs say of themselves, which no gap says already."""

    note: EvidenceNote
    runs: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """Of the test split, means over the seeds there are; differences tested in pairs of one seed.

    significance  None where nothing could be tested
    fitted_on     how temperatures were fitted; None where there are none
    """

    runs: int
    settings: tuple[str, ...]
    objectives: tuple[str, ...]
    seeds: tuple[int, ...]
    constant_guesses: tuple[ConstantGuess, ...]
    leaders: tuple[Leader, ...]
    significance: Significance | None
    gaps: tuple[EvidenceGap, ...]
    notes: tuple[RunNote, ...]
    fitted_on: FittedOn | None


def study_findings(evidence: Evidence) -> Findings:
    """Everything that the summary of a study says."""
    return Findings(
        runs=len(evidence.runs),
        settings=evidence.settings,
        objectives=evidence.objectives,
        seeds=tuple(sorted({run.seed for run in evidence.runs})),
        constant_guesses=tuple(constant_guesses(evidence)),
        leaders=tuple(leaders(evidence)),
        significance=significance(study_families(evidence)),
        gaps=evidence.missing,
        notes=tuple(_notes(evidence)),
        fitted_on=evidence.fitted_on if any(run.scaled is not None for run in evidence.runs) else None,
    )


def study_families(evidence: Evidence) -> list[Family]:
    """FCL against every other objective; without it, or with several of it, the first objective; none of a grid."""
    candidate = usual_candidate(evidence)
    if candidate is None and 2 <= len(evidence.objectives) <= MOST_COMPARED:
        candidate = evidence.objectives[0]
    return [] if candidate is None else comparisons(evidence, candidate, alpha=ALPHA)


def significance(families: Sequence[Family]) -> Significance | None:
    """None without any comparison."""
    every = [comparison for family in families for comparison in family.comparisons]
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


def _pair_verdicts(candidate: str, baseline: str, families: Sequence[Family]) -> PairVerdicts:
    of_pair = [family for family in families if (family.candidate, family.baseline) == (candidate, baseline)]
    clear = tuple(
        (family.setting, comparison.metric, comparison.verdict)
        for family in of_pair
        for comparison in family.comparisons
        if comparison.verdict != "indistinguishable"
    )
    counts = verdict_counts([comparison for family in of_pair for comparison in family.comparisons])
    return PairVerdicts(candidate, baseline, tuple(family.setting for family in of_pair), counts, clear)


def _notes(evidence: Evidence) -> list[RunNote]:
    """Each note once, with the runs that have it."""
    noted: dict[EvidenceNote, list[str]] = {}
    for run in evidence.runs:
        for note in run.notes:
            if note.kind != "unreadable":
                noted.setdefault(note, []).append(run.name)
    return [RunNote(note, tuple(names)) for note, names in noted.items()]
