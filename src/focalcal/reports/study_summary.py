"""What a study found, in sentences: what is best on what, which differences are significant, what is not known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from focalcal.analysis.contenders import ConstantGuess
from focalcal.analysis.evidence import Evidence
from focalcal.analysis.findings import Findings, PairVerdicts, RunNote, Significance, study_findings
from focalcal.analysis.leaders import Leader
from focalcal.analysis.metric_names import PERCENT, title
from focalcal.reports.gap_text import gap_sentences, note_text
from focalcal.reports.study_tables.leaders import leading_objectives

_MOST_FLAGGED = 6  # objectives that a sentence names
_MOST_VERDICTS = 4
_FITTED = {
    "halves": "Temperatures are fitted on one half of the test rows and measured on the other, so that values before "
    "and after temperature scaling are of that half alone: compare them with each other, not with the values of all "
    "test rows.",
    "validation": "Temperatures are fitted on the validation rows and measured on all test rows.",
}


@dataclass(frozen=True)
class Summary:
    """Sentences and the leaders they rest on, ready to be shown; `flags` name what learnt nothing."""

    ran: str
    flags: tuple[str, ...]
    best: tuple[str, ...]
    significant: tuple[str, ...]
    unknown: tuple[str, ...]
    leaders: tuple[Leader, ...]


def summary(evidence: Evidence, *, name: Callable[[str], str] = str) -> Summary:
    """The sentences of `study_findings`; `name` says what an objective is called."""
    findings = study_findings(evidence)
    return Summary(
        ran=_ran(findings),
        flags=tuple(flag_sentences(findings.constant_guesses, name=name)),
        best=tuple(_best(findings, name)),
        significant=tuple(_significance(findings.significance, name)) if findings.runs else (),
        unknown=tuple(_unknown(findings)),
        leaders=findings.leaders,
    )


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
            f"metrics it takes {tested.seeds_needed} seeds to reach {tested.alpha:g}. Differences of the means may be "
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


def _ran(findings: Findings) -> str:
    if not findings.runs:
        return "No run is stored yet."
    seeds, settings = findings.seeds, findings.settings
    where = settings[0] if len(settings) == 1 else f"{len(settings)} settings"
    named = (
        f"seed{'s' if len(seeds) > 1 else ''} {_joined(map(str, seeds))}" if len(seeds) <= 10 else f"{len(seeds)} seeds"
    )
    return f"{_many(findings.runs, 'run')}: {_many(len(findings.objectives), 'objective')} on {where}, {named}."


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
            f"On {setting} the error of {shown} is no better than that of a constant guess, "
            f"{100 * flagged[0].constant:.1f} %: nothing was learnt that decides, so a low calibration error is no "
            "merit."
        )
    return lines


def _best(findings: Findings, name: Callable[[str], str]) -> list[str]:
    """An objective a sentence in one setting; counts where there are several."""
    if not findings.leaders:
        return ["With fewer than two objectives measured there is no best one."] if findings.runs else []
    alone: dict[str, list[Leader]] = {}
    for leader in findings.leaders:
        if len(leader.objectives) == 1:
            alone.setdefault(leader.objectives[0], []).append(leader)
    ordered = sorted(alone, key=lambda objective: -len(alone[objective]))
    tied = [leader for leader in findings.leaders if len(leader.objectives) > 1]
    if len(findings.settings) > 1:
        counted = [f"{name(objective)} in {len(alone[objective])}" for objective in ordered]
        counted += [f"several that tie in {len(tied)}"] if tied else []
        pairs = len(findings.leaders)
        return [f"Of {pairs} pairs of a setting and a metric, the lowest mean belongs to {_joined(counted)}."]
    return [f"{name(objective)} has the lowest {_joined(map(_lowest, alone[objective]))}." for objective in ordered] + [
        f"{leading_objectives(leader, name)} share the lowest {_lowest(leader)}." for leader in tied
    ]


def _lowest(leader: Leader) -> str:
    """`ECE (1.23 %)`."""
    name = title(leader.metric)
    shown = name.lower() if leader.metric == "error" else name
    return f"{shown} ({leader.mean.printed}{' %' if leader.metric in PERCENT else ''})"


def _unknown(findings: Findings) -> list[str]:
    limits = gap_sentences(findings.gaps)
    if not findings.runs:
        return limits
    if len(findings.seeds) > 1:
        limits.append(
            "The spread over seeds is that of training again on the same examples; how results vary with other "
            "examples is not known."
        )
    limits += [_note(note, findings.runs) for note in findings.notes]
    if findings.fitted_on is not None:
        limits.append(_FITTED[findings.fitted_on])
    if len(findings.settings) == 1:
        limits.append(
            f"Only {findings.settings[0]} was tried; whether the order of the objectives holds elsewhere is not known."
        )
    return limits


def _note(note: RunNote, of: int) -> str:
    who = note.runs[0] if len(note.runs) == 1 else f"{len(note.runs)} of {of} runs"
    return f"{who}: {note_text(note.note)}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _joined(words: Iterable[str]) -> str:
    listed = list(words)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
