"""What a study found, in sentences: what is best on what, which differences are significant, what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from focalcal.reports.comparisons import Family, comparisons, seeds_needed, usual_candidate
from focalcal.reports.evidence import Evidence
from focalcal.reports.metric_names import title
from focalcal.reports.study_leaders import Leader, leaders
from focalcal.stats import verdict_counts

ALPHA = 0.05
MOST_COMPARED = 15  # objectives: more are a grid, of which pairs say little
_HALVES = (
    "Temperatures are fitted on one half of the test rows and measured on the other, so that values before and after "
    "temperature scaling are of that half alone: compare them with each other, not with the values of all test rows."
)
_VALIDATION = "Temperatures are fitted on the validation rows and measured on all test rows."


@dataclass(frozen=True)
class Summary:
    """Sentences and the leaders they rest on, ready to be shown."""

    ran: str
    best: tuple[str, ...]
    significant: tuple[str, ...]
    unknown: tuple[str, ...]
    leaders: tuple[Leader, ...]


def summary(evidence: Evidence) -> Summary:
    """Of the test split, means over the seeds there are; differences tested in pairs of one seed."""
    found = leaders(evidence)
    return Summary(
        ran=_ran(evidence),
        best=tuple(_best(evidence, found)),
        significant=tuple(significance(families(evidence))) if evidence.runs else (),
        unknown=tuple(_unknown(evidence)),
        leaders=tuple(found),
    )


def families(evidence: Evidence) -> list[Family]:
    """FCL against every other objective; without it, or with several of it, the first objective; none of a grid."""
    candidate = usual_candidate(evidence)
    if candidate is None and 2 <= len(evidence.objectives) <= MOST_COMPARED:
        candidate = evidence.objectives[0]
    return [] if candidate is None else comparisons(evidence, candidate, alpha=ALPHA)


def significance(found: Sequence[Family]) -> list[str]:
    """What the tests say, and what they could not have said whatever the numbers."""
    every = [one for family in found for one in family.comparisons]
    if not every:
        return [
            "Nothing was tested: a test needs one objective to compare others with, and two seeds at least that both "
            "have. See focalcal compare."
        ]
    hopeless = [one for one in every if not one.reachable]
    needed = seeds_needed(max(len(family.comparisons) for family in found), ALPHA)
    if len(hopeless) == len(every):
        counts = sorted({one.test.n for one in every})
        floor, size = min(one.test.floor for one in every), max(len(family.comparisons) for family in found)
        return [
            f"No difference is significant, and with {_joined(map(str, counts))} seeds none could be: the paired "
            f"sign-flip test cannot give less than p = {floor:.2g}. With Holm's correction over {size} metrics it "
            f"takes {needed} seeds to reach {ALPHA:g}. Differences of the means may be chance."
        ]
    pairs = dict.fromkeys((family.candidate, family.baseline) for family in found if family.comparisons)
    lines = [_verdict_line(*pair, [one for one in found if (one.candidate, one.baseline) == pair]) for pair in pairs]
    candidates = dict.fromkeys(family.candidate for family in found)
    lines.append(f"Only comparisons with {_joined(candidates)} were made; focalcal compare makes others.")
    if hopeless:
        lines.append(
            f"{len(hopeless)} of {len(every)} comparisons could not have been significant with the seeds there are; "
            f"it takes {needed}."
        )
    return lines


def _verdict_line(candidate: str, baseline: str, found: Sequence[Family]) -> str:
    every = [one for family in found for one in family.comparisons]
    shown = ", ".join(f"{count} {verdict}" for verdict, count in verdict_counts(every).items())
    named = [
        f"{title(one.metric)} {one.verdict}" + (f" on {family.setting}" if len(found) > 1 else "")
        for family in found
        for one in family.comparisons
        if one.verdict != "indistinguishable"
    ]
    detail = f" ({'; '.join(named)})" if named and len(named) <= 4 else ""
    return f"{candidate} against {baseline}: {shown} of {len(every)} comparisons{detail}."


def _ran(evidence: Evidence) -> str:
    runs, settings, objectives = len(evidence.runs), len(evidence.settings), len(evidence.objectives)
    if not runs:
        return "No run is stored yet."
    seeds = sorted({run.seed for run in evidence.runs})
    where = evidence.settings[0] if settings == 1 else f"{settings} settings"
    named = (
        f"seed{'s' if len(seeds) > 1 else ''} {_joined(map(str, seeds))}" if len(seeds) <= 10 else f"{len(seeds)} seeds"
    )
    return f"{_many(runs, 'run')}: {_many(objectives, 'objective')} on {where}, {named}."


def _best(evidence: Evidence, found: Sequence[Leader]) -> list[str]:
    """An objective a sentence in one setting; counts where there are several."""
    if not found:
        return ["With fewer than two objectives measured there is no best one."] if evidence.runs else []
    alone: dict[str, list[Leader]] = {}
    for leader in found:
        if len(leader.objectives) == 1:
            alone.setdefault(leader.objectives[0], []).append(leader)
    ordered = sorted(alone, key=lambda name: -len(alone[name]))
    tied = [leader for leader in found if len(leader.objectives) > 1]
    if len(evidence.settings) > 1:
        counted = [f"{name} in {len(alone[name])}" for name in ordered]
        counted += [f"several that tie in {len(tied)}"] if tied else []
        return [f"Of {len(found)} pairs of a setting and a metric, the lowest mean belongs to {_joined(counted)}."]
    return [f"{name} has the lowest {_joined(map(str, alone[name]))}." for name in ordered] + [
        f"{one.who} share the lowest {one}." for one in tied
    ]


def _unknown(evidence: Evidence) -> list[str]:
    limits = list(evidence.missing)
    if not evidence.runs:
        return limits
    seeds = {run.seed for run in evidence.runs}
    if len(seeds) > 1:
        limits.append(
            "The spread over seeds is that of training again on the same examples; how results vary with other "
            "examples is not known."
        )
    limits += _notes(evidence)
    if any(run.scaled is not None for run in evidence.runs):
        limits.append(_HALVES if evidence.fitted_on == "halves" else _VALIDATION)
    if len(evidence.settings) == 1:
        limits.append(
            f"Only {evidence.settings[0]} was tried; whether the order of the objectives holds elsewhere is not known."
        )
    return limits


def _notes(evidence: Evidence) -> list[str]:
    """What several runs say of themselves, once, with how many do."""
    said: dict[str, list[str]] = {}
    for run in evidence.runs:
        for note in run.notes:
            if not any(note in one for one in evidence.missing):
                said.setdefault(note, []).append(run.name)
    return [
        f"{names[0] if len(names) == 1 else f'{len(names)} of {len(evidence.runs)} runs'}: {note}"
        for note, names in said.items()
    ]


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _joined(words: Iterable[str]) -> str:
    listed = list(words)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
