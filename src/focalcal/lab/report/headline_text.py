"""The result of a study in one sentence, with sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.findings import Headline, ObjectiveChange, headline
from focalcal.lab.objectives import short_name
from focalcal.lab.report.sentences import StudySummary
from focalcal.lab.report.study_tables.run_lists import leading_objectives

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def result_sentence(evidence: Evidence, summary: StudySummary) -> str:
    """The candidate against its baseline; without one, who leads."""
    result = headline(evidence)
    if result is not None:
        return headline_sentence(result)
    for leader in summary.leaders:
        if leader.metric == "ece":
            verb = "has" if len(leader.objectives) == 1 else "share"
            who, size = leading_objectives(leader, short_name), f"{leader.mean.printed} points"
            return f"{who} {verb} the lowest ECE on {leader.setting}, {size}; no objective was chosen to compare with."
    return summary.best[0] if summary.best else summary.ran


def around_settings(sentence: str, settings: Sequence[str]) -> list[tuple[str, bool]]:
    """The sentence in pieces, each with whether it is the name of a setting.

    >>> around_settings("lower on a/b, higher on a/bc", ["a/b", "a/bc"])
    [('lower on ', False), ('a/b', True), (', higher on ', False), ('a/bc', True)]
    """
    names = "|".join(re.escape(name) for name in sorted(settings, key=len, reverse=True))
    pieces = re.split(f"({names})", sentence) if names else [sentence]
    return [(piece, piece in settings) for piece in pieces if piece]


def headline_sentence(result: Headline) -> str:
    """What the candidate changes most, what it changes for the worse, and in how many seeds and settings."""
    ordered = sorted(result.changes, key=lambda change: change.after - change.before)
    best, worst = ordered[0], ordered[-1]
    first = f"{short_name(result.candidate)} {_change(best)} against {_lower(result.baseline)} on {best.setting}"
    first += _seeds(best) + _error(best)
    if len(ordered) == 1:
        return f"{first}{_test(best)}."
    sentence = f"{first}; on {worst.setting} it {_short(worst)}"
    if len(ordered) > 2:
        improved = sum(change.after < change.before for change in ordered)
        count = f"{_word(improved)} of {_word(len(ordered))}"
        sentence += f"; it is better in {count} settings, of which these are the extremes"
    return f"{sentence}."


def _change(change: ObjectiveChange) -> str:
    before, after = _points(change.before), _points(change.after)
    if before == after:
        return f"leaves ECE at {after} points"
    return f"{_verb(change)} ECE from {before} to {after} points"


def _short(change: ObjectiveChange) -> str:
    """`raises it by 1.8 points, in all three seeds`."""
    after = _points(change.after)
    if _points(change.before) == after:
        return f"stays at {after} points"
    return f"{_verb(change)} it by {_points(abs(change.after - change.before))} points{_seeds(change)}"


def _verb(change: ObjectiveChange) -> str:
    return "lowers" if change.after < change.before else "raises"


def _seeds(change: ObjectiveChange) -> str:
    """In how many seeds the difference has the sign of the mean."""
    if change.seeds == 1:
        return ", in one seed"
    most = max(change.better, change.worse)
    if most == change.seeds:
        return f", in {'both' if most == 2 else f'all {_word(most)}'} seeds"
    return f", in {_word(most)} of {_word(change.seeds)} seeds"


def _error(change: ObjectiveChange) -> str:
    if change.error is None:
        return ""
    before, after = (f"{100 * value:.1f}" for value in change.error)
    return f", while the error {f'goes from {before} to {after}' if before != after else f'stays at {after}'} %"


def _test(change: ObjectiveChange) -> str:
    if change.verdict is not None:
        not_ = "not " * (change.verdict == "indistinguishable")
        return f"; paired over seeds the difference is {not_}significant"
    return f"; {_word(change.seeds)} seed{'s' * (change.seeds != 1)} cannot show that this is more than chance"


def _points(share: float) -> str:
    return f"{100 * share:.1f}" if abs(share) >= 0.01 else f"{100 * share:.2f}"


def _lower(objective: str) -> str:
    name = short_name(objective)
    return name if name[1:2].isupper() else name[:1].lower() + name[1:]


def _word(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)
