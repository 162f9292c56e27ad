"""Confidences as models say them, in numbers or words, with answers that are right, wrong or graded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import between_zero_and_one, finite_at_least, first_row, one_of, shown
from focalcal.predictions.record import Predictions

# The middles of the ranges of Intelligence Community Directive 203, "Analytic Standards" (2015), D.6.e.(2)(a).
_ICD203 = {
    "almost no chance": 0.03, "remote": 0.03,
    "very unlikely": 0.125, "highly improbable": 0.125,
    "unlikely": 0.325, "improbable": 0.325,
    "roughly even chance": 0.5, "roughly even odds": 0.5,
    "likely": 0.675, "probable": 0.675,
    "very likely": 0.875, "highly probable": 0.875,
    "almost certain": 0.97, "almost certainly": 0.97, "nearly certain": 0.97,
}  # fmt: skip
# Sherman Kent, "Words of Estimative Probability", Studies in Intelligence 8 (1964), p. 49.
_KENT = {
    "impossible": 0.0, "almost certainly not": 0.07, "probably not": 0.3, "chances about even": 0.5, "probable": 0.75,
    "almost certain": 0.93, "certain": 1.0,
}  # fmt: skip
WORDS: dict[str, dict[str, float]] = {"icd203": _ICD203, "kent": _KENT}
"""What words say, by source: ICD 203 (2015), or Kent (1964)."""

_GRADES = dict.fromkeys(("yes", "true", "correct", "right", "c"), 1.0) | dict.fromkeys(
    ("no", "false", "incorrect", "wrong", "i", "n"), 0.0
)
_GRADES["p"] = 0.5
# Signs and decimal points stay with their number.
_STATED = re.compile(r"confidence(?:[^\w.<>~+-]|\.(?!\d)|-(?!\d|\.))+(.+)", re.IGNORECASE)
_NUMBER = re.compile(r"((?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?)\s*(%|percent|per cent|/\s*\d+)?")
OFTEN = 0.5  # the share of rows from which on one value is worth a remark


@dataclass(frozen=True, eq=False)
class Verbalised:
    """Stated confidences (n,) in [0, 1], how far each answer is right (n,) in [0, 1], and what is to be said of them.

    Attributes:
        confidence: (n,), in [0, 1].
        grade: (n,), how far each answer is right, in [0, 1].
        most_frequent: the confidence that is stated most often.
        share: of the rows that have it.
        filled: how many rows were given the `fallback`, since they state nothing.
        notes: what is to be said of them.

    >>> found = verbalised(["90 %", "90 %", "no idea"], [1, 0, 0], fallback=0.5)
    >>> found.most_frequent, round(found.share, 2), found.filled
    (0.9, 0.67, 1)
    """

    confidence: NDArray[np.float64]
    grade: NDArray[np.float64]
    most_frequent: float
    share: float
    filled: int
    notes: tuple[str, ...]

    def predictions(
        self, *, clip: float | None = None, right_from: float | None = None, split: str = "test", **about: Any
    ) -> Predictions:
        """Confidences and correctness for audits, metrics and calibrators; `about` are ids, groups and the like.

        `clip` moves confidences into [clip, 1 - clip], or a wrong answer of which a model said "100 %" has an infinite
        NLL. `right_from` is the grade from which on an answer counts as right (`metrics.graded_scores` needs none).
        """
        notes, sure = list(self.notes), self.confidence
        if clip is not None:
            between_zero_and_one("clip", clip, remedy="0.005 takes 100 % for 99.5 %")
            sure = sure.clip(clip, 1 - clip)
            notes.append(f"Stated confidences count as at least {clip:g} and at most {1 - clip:g}.")
        right = right_or_wrong(self.grade, right_from)
        return Predictions(confidence=sure, correct=right, split=split, provenance={"notes": notes}, **about)


def verbalised(
    stated: Sequence[Any],
    correct: Sequence[Any],
    *,
    scale: Literal[1, 100] | None = None,
    words: Literal["icd203", "kent"] | Mapping[str, float] = "icd203",
    fallback: float | None = None,
) -> Verbalised:
    """Read confidences that a model states: 85, "85 %", "85/100", "almost certain", or text with "Confidence: 85%".

    A stated confidence is not a probability until it was calibrated: fit `PlattScaling` on `predictions()`.

    Args:
        stated: (n,) numbers or texts; of a text what stands behind its last "confidence".
        correct: (n,) True or False, 1 or 0, "yes" or "no", "C" or "I" (Inspect), or a grade from 0 to 1.
        scale: of numbers without a sign of percent: 100 or 1, which nobody can tell of a 1.
        words: what words mean: a source of `WORDS`, or probabilities by word.
        fallback: the confidence of rows that state none, which are refused without it; a large share is remarked upon.

    Returns:
        Numbers, with what is to be said of them.

    >>> found = verbalised(["85 %", "likely", 0.5], ["yes", "no", "no"], scale=1)
    >>> found.confidence.tolist(), found.grade.tolist()
    ([0.85, 0.675, 0.5], [1.0, 0.0, 0.0])
    """
    if len(stated) != len(correct) or not len(stated):
        raise ValueError(f"stated and correct must have one value per row each, got {len(stated)} and {len(correct)}")
    own = words.items() if isinstance(words, Mapping) else ()
    known = WORDS.get(words, {}) if isinstance(words, str) else {str(name).lower(): p for name, p in own}
    if not known:
        raise ValueError(f"words must be one of {', '.join(WORDS)}, or probabilities by word, got {shown(words)}")
    named = {} if fallback is None else {"fallback": fallback}
    for name, chance in {**named, **{f"words[{word!r}]": p for word, p in known.items()}}.items():
        if not 0 <= finite_at_least(name, chance, -np.inf) <= 1:
            raise ValueError(
                f"{name} must be a probability from 0 to 1, got {shown(chance)}; divide percentages by 100"
            )
    if scale is not None:
        one_of("scale", scale, (1, 100))
    sure, filled = np.empty(len(stated)), 0
    for row, said in enumerate(stated):
        value = _confidence(said, scale, known)
        if isinstance(value, str) and fallback is None:
            raise ValueError(f"{value} in row {row}; or pass fallback= for such rows")
        filled += isinstance(value, str)
        sure[row] = fallback if isinstance(value, str) else value
    grade = np.array([grade_of(value, f"row {row}") for row, value in enumerate(correct)])
    ((frequent, times),) = Counter(sure.tolist()).most_common(1)
    share = times / len(sure)
    notes = [f"{filled:,} of {len(sure):,} rows state no confidence and were given {fallback:g}."] if filled else []
    if share >= OFTEN:
        notes.append(constant_note(frequent, share))
    return Verbalised(sure, grade, frequent, share, filled, tuple(notes))


def constant_note(value: float, share: float) -> str:
    """What is said of a confidence that most rows share."""
    return (
        f"One confidence, {value:g}, is that of {100 * share:.0f} % of the rows: among these it cannot tell right from "
        "wrong, and their calibration is how near it is to the accuracy."
    )


def right_or_wrong(grade: NDArray[np.float64], right_from: float | None) -> NDArray[np.bool_]:
    """Whether each answer is right: graded 1, or at least `right_from`."""
    if right_from is not None and not 0 < finite_at_least("right_from", right_from, 0.0) <= 1:
        raise ValueError(f"right_from must be above 0 and at most 1, got {shown(right_from)}; 0.5 is usual")
    between = (grade > 0) & (grade < 1)
    if between.any() and right_from is None:
        at = first_row(between)
        raise ValueError(
            f"correct must be right or wrong here, got the grade {grade[at]:g} in row {at}; pass right_from=0.5, or "
            "use focalcal.metrics.graded_scores, which takes grades as they are"
        )
    return grade >= (1.0 if right_from is None else right_from)


def grade_of(value: Any, where: str) -> float:
    """How far an answer is right, from 0 to 1."""
    grade = _GRADES.get(value.strip().lower()) if isinstance(value, str) else value
    try:
        number = float("nan" if grade is None else grade)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number <= 1:
        raise ValueError(
            f"correct must be True or False, yes or no, or a grade from 0 to 1, got {str(value)[:60]!r} in {where}; "
            "say of each answer whether it is right"
        )
    return number


def _confidence(said: Any, scale: int | None, words: Mapping[str, float]) -> float | str:
    """From 0 to 1, or why there is none."""
    behind = _STATED.findall(said) if isinstance(said, str) else []
    text = " ".join(str(behind[-1] if behind else said).lower().split()).lstrip(" *\"'`").rstrip(" .*\"'`")
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text)
    if text in words:
        return words[text]
    match = _NUMBER.fullmatch(text)
    if match is None:
        return f"stated must be numbers or one of the words {', '.join(words)}, got {str(said)[:60]!r}"
    unit = (match[2] or "").replace(" ", "")
    if not unit and scale is None:
        return f"stated numbers must be of a known scale, got {text!r} (pass scale=100 or scale=1)"
    value = float(match[1]) / (
        float(unit[1:]) or np.nan if unit.startswith("/") else 100 if unit else float(scale or 1)
    )
    return value if value <= 1 else f"stated must be at most 100 %, got {str(said)[:60]!r}"
