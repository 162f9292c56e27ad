"""The result of a study in one sentence, with sizes."""

from __future__ import annotations

from focalcal.analysis.headline import Change, Headline
from focalcal.analysis.metric_names import HIGHER_IS_BETTER, PERCENT, shown, title
from focalcal.reports.objectives import short_name

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def headline_sentence(found: Headline) -> str:
    """What the candidate changes most, what it changes for the worse, and in how many seeds and settings."""
    sign = -1 if found.metric in HIGHER_IS_BETTER else 1
    ordered = sorted(found.changes, key=lambda change: sign * (change.after - change.before))
    best, worst = ordered[0], ordered[-1]
    first = f"{short_name(found.candidate)} {_change(found.metric, best)} against {_lower(found.baseline)}"
    if len(ordered) == 1:
        return f"{first} on {best.setting}{_seeds(best)}{_error(best)}{_test(best)}."
    improved = sum(sign * (change.after - change.before) < 0 for change in ordered)
    sentence = (
        f"{first} on {best.setting}{_seeds(best)}{_error(best)}; on {worst.setting} it {_short(found.metric, worst)}"
    )
    if len(ordered) > 2:
        count = f"{_word(improved)} of {_word(len(ordered))}"
        sentence += f"; it is better in {count} settings, of which these are the extremes"
    return f"{sentence}."


def _change(metric: str, change: Change) -> str:
    before, after = _number(metric, change.before), _number(metric, change.after)
    if before == after:
        return f"leaves {title(metric)} at {after}{_unit(metric)}"
    return f"{_verb(change)} {title(metric)} from {before} to {after}{_unit(metric)}"


def _short(metric: str, change: Change) -> str:
    """`raises it by 1.8 points, in all three seeds`."""
    before, after = _number(metric, change.before), _number(metric, change.after)
    if before == after:
        return f"stays at {after}{_unit(metric)}"
    size = _number(metric, abs(change.after - change.before))
    return f"{_verb(change)} it by {size}{_unit(metric)}{_seeds(change)}"


def _verb(change: Change) -> str:
    return "lowers" if change.after < change.before else "raises"


def _seeds(change: Change) -> str:
    """In how many seeds the difference has the sign of the mean."""
    if change.seeds == 1:
        return ", in one seed"
    most = max(change.better, change.worse)
    if most == change.seeds:
        return f", in {'both' if most == 2 else f'all {_word(most)}'} seeds"
    return f", in {_word(most)} of {_word(change.seeds)} seeds"


def _error(change: Change) -> str:
    if change.error is None:
        return ""
    before, after = (f"{100 * value:.1f}" for value in change.error)
    return f", at an error of {after} %" + (f" (before: {before} %)" if before != after else " as before")


def _test(change: Change) -> str:
    if change.verdict is not None:
        said = {"better": "significant", "worse": "significant", "indistinguishable": "not significant"}
        return f"; paired over seeds the difference is {said[change.verdict]}"
    return f"; {_word(change.seeds)} seed{'s' * (change.seeds != 1)} cannot show that this is more than chance"


def _number(metric: str, value: float) -> str:
    size = shown(metric, value)
    return (
        f"{size:.1f}" if metric in PERCENT and abs(size) >= 1 else f"{size:.2f}" if metric in PERCENT else f"{size:.3f}"
    )


def _unit(metric: str) -> str:
    return " points" if metric in PERCENT else ""


def _lower(objective: str) -> str:
    name = short_name(objective)
    return name if name[1:2].isupper() else name[:1].lower() + name[1:]


def _word(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)
