"""What a study found, in sentences: what is best on what, which differences are significant, what is not known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from focalcal.lab.evidence.cell_means import Leader, leaders
from focalcal.lab.evidence.contenders import ConstantGuess, constant_guesses
from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.findings import ALPHA, PairVerdicts, Significance, run_notes, significance, study_families
from focalcal.lab.evidence.gaps import EvidenceGap
from focalcal.lab.evidence.metric_names import PERCENT, in_sentence, title
from focalcal.lab.report.study_tables.run_lists import leading_objectives

_MOST_FLAGGED = 6  # objectives that a sentence names
_MOST_VERDICTS = 4
_FITTED = {
    "halves": "Temperatures are fitted on one half of the test rows and measured on the other, so that values before "
    "and after temperature scaling are of that half alone: compare them with each other, not with the values of all "
    "test rows.",
    "validation": "Temperatures are fitted on the validation rows and measured on all test rows.",
}


@dataclass(frozen=True)
class StudySummary:
    """Sentences and the leaders they rest on, ready to be shown; `flags` name what learnt nothing."""

    ran: str
    flags: tuple[str, ...]
    best: tuple[str, ...]
    significant: tuple[str, ...]
    unknown: tuple[str, ...]
    leaders: tuple[Leader, ...]


def study_sentences(evidence: Evidence, *, name: Callable[[str], str] = str) -> StudySummary:
    """What the findings say; `name` says what an objective is called."""
    leading = tuple(leaders(evidence))
    return StudySummary(
        ran=_ran(evidence),
        flags=tuple(flag_sentences(constant_guesses(evidence), name=name)),
        best=tuple(_best(evidence, leading, name)),
        significant=tuple(_significance(significance(study_families(evidence)), name)) if evidence.runs else (),
        unknown=tuple(_unknown(evidence)),
        leaders=leading,
    )


def warning_sentences(evidence: Evidence) -> list[str]:
    """What is missing, and which cells learnt nothing."""
    return [*gap_sentences(evidence.missing), *flag_sentences(constant_guesses(evidence))]


def gap_sentences(gaps: Iterable[EvidenceGap]) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(map(str, gaps)))


def _significance(tested: Significance | None, name: Callable[[str], str]) -> list[str]:
    if tested is None:
        return [
            "Nothing was tested: a test needs one objective to compare others with, and two seeds at least that both "
            "have. See focalcal compare."
        ]
    if tested.hopeless == tested.comparisons:
        return [
            f"No difference is significant, and with {_joined(map(str, tested.seeds))} seeds none could be: the paired "
            f"sign-flip test cannot give less than p = {tested.floor:.2g}. With Holm's correction over {tested.tests} "
            f"metrics it takes {tested.seeds_needed} seeds to reach {ALPHA:g}. Differences of the means may be "
            "chance."
        ]
    lines = [_verdicts(pair, name) for pair in tested.pairs]
    lines.append(
        f"Only comparisons with {_joined(map(name, tested.candidates))} were made; focalcal compare makes others."
    )
    if tested.hopeless:
        lines.append(
            f"{tested.hopeless} of {tested.comparisons} comparisons could not have been significant with the seeds "
            f"there are; it takes {tested.seeds_needed}."
        )
    return lines


def _verdicts(pair: PairVerdicts, name: Callable[[str], str]) -> str:
    shown = ", ".join(f"{count} {verdict}" for verdict, count in pair.counts.items())
    named = [
        f"{title(metric)} {verdict}" + (f" on {setting}" if len(pair.settings) > 1 else "")
        for setting, metric, verdict in pair.clear
    ]
    detail = f" ({'; '.join(named)})" if named and len(named) <= _MOST_VERDICTS else ""
    who = f"{name(pair.candidate)} against {name(pair.baseline)}"
    return f"{who}: {shown} of {sum(pair.counts.values())} comparisons{detail}."


def _ran(evidence: Evidence) -> str:
    if not evidence.runs:
        return "No run is stored yet."
    seeds, settings = _seeds(evidence), evidence.settings
    where = settings[0] if len(settings) == 1 else f"{len(settings)} settings"
    named = (
        f"seed{'s' if len(seeds) > 1 else ''} {_joined(map(str, seeds))}" if len(seeds) <= 10 else f"{len(seeds)} seeds"
    )
    return f"{_many(len(evidence.runs), 'run')}: {_many(len(evidence.objectives), 'objective')} on {where}, {named}."


def flag_sentences(guesses: Sequence[ConstantGuess], *, name: Callable[[str], str] = str) -> list[str]:
    """One per setting that has a cell whose error is that of a constant guess."""
    settings: dict[str, list[ConstantGuess]] = {}
    for guess in guesses:
        settings.setdefault(guess.setting, []).append(guess)
    lines = []
    for setting, flagged in settings.items():
        named = [
            f"{name(guess.objective)} ("
            f"{'' if len(guess.seeds) == guess.of else f'{len(guess.seeds)} of {guess.of} seeds, '}"
            f"{100 * guess.error:.1f} %)"
            for guess in flagged
        ]
        shown = _joined(named) if len(named) <= _MOST_FLAGGED else f"{len(named)} objectives"
        lines.append(
            f"On {setting} the error of {shown} is not lower beyond chance than that of a constant guess, "
            f"{100 * flagged[0].constant:.1f} %: nothing is shown to be learnt that decides, so a low calibration "
            "error is no merit."
        )
    return lines


def _best(evidence: Evidence, leading: Sequence[Leader], name: Callable[[str], str]) -> list[str]:
    """One sentence per objective in one setting; counts where there are several."""
    if not leading:
        return ["With fewer than two objectives measured there is no best one."] if evidence.runs else []
    alone: dict[str, list[Leader]] = {}
    for leader in leading:
        if len(leader.objectives) == 1:
            alone.setdefault(leader.objectives[0], []).append(leader)
    ordered = sorted(alone, key=lambda objective: -len(alone[objective]))
    tied = [leader for leader in leading if len(leader.objectives) > 1]
    if len(evidence.settings) > 1:
        counted = [f"{name(objective)} in {len(alone[objective])}" for objective in ordered]
        counted += [f"several that tie in {len(tied)}"] if tied else []
        pairs = len(leading)
        return [f"Of {pairs} pairs of a setting and a metric, the lowest mean belongs to {_joined(counted)}."]
    return [f"{name(objective)} has the lowest {_joined(map(_lowest, alone[objective]))}." for objective in ordered] + [
        f"{leading_objectives(leader, name)} share the lowest {_lowest(leader)}." for leader in tied
    ]


def _lowest(leader: Leader) -> str:
    """`ECE (1.23 %)`."""
    return f"{in_sentence(leader.metric)} ({leader.mean.printed}{' %' if leader.metric in PERCENT else ''})"


def _unknown(evidence: Evidence) -> list[str]:
    limits = gap_sentences(evidence.missing)
    if not evidence.runs:
        return limits
    if evidence.candidate and len(points := evidence.named(evidence.candidate)) > 1:
        limits.append(
            f"{evidence.candidate} has {len(points)} points and none was chosen beforehand, so that it is not compared "
            f"as a whole: see focalcal report --candidate {points[0]!r}."
        )
    if len(_seeds(evidence)) > 1:
        limits.append(
            "The spread over seeds is that of training again on the same examples; how results vary with other "
            "examples is not known."
        )
    for note, runs in run_notes(evidence).items():
        who = runs[0] if len(runs) == 1 else f"{len(runs)} of {len(evidence.runs)} runs"
        limits.append(f"{who}: {note.text}")
    if any(run.scaled is not None for run in evidence.runs):
        limits.append(_FITTED[evidence.fitted_on])
    if len(evidence.settings) == 1:
        limits.append(
            f"Only {evidence.settings[0]} was tried; whether the order of the objectives holds elsewhere is not known."
        )
    return limits


def _seeds(evidence: Evidence) -> list[int]:
    return sorted({run.seed for run in evidence.runs})


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _joined(words: Iterable[str]) -> str:
    listed = list(words)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
