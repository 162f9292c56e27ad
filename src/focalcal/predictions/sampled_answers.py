"""Several sampled answers per question: how often they agree is the confidence of the most frequent one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from focalcal.predictions.record import Predictions
from focalcal.predictions.verbalised import grade_of, right_or_wrong


def sampled_answers(
    questions: Sequence[Any],
    meanings: Sequence[Any],
    correct: Sequence[Any],
    *,
    right_from: float | None = None,
    split: str = "test",
    **about: Any,
) -> Predictions:
    """One row per question: the most frequent answer, with its share of the samples as its confidence.

    Of equally frequent answers the first one counts. Rows are in the order in which questions first occur, with the
    questions as `ids`. m samples tell confidences 1/m apart and no finer.

    Args:
        questions: (n,) the question that each sample answers, n the number of all samples.
        meanings: (n,) what it answers: the answer itself, or the number of a cluster of answers that mean the same.
        correct: (n,) whether it is right, or a grade from 0 to 1; that of a meaning is the mean over its samples, and
            right if it is 1.
        right_from: the mean grade from which on a meaning is right, too.
        split: the name of the set.
        about: what else `Predictions` take.

    Returns:
        Confidences and correctness, one row per question.

    >>> held = sampled_answers(["q1", "q1", "q1", "q2"], ["Paris", "Paris", "Rome", "4"], [1, 1, 0, 0])
    >>> held.probs[:, 1].round(3).tolist(), held.labels.tolist(), held.ids.tolist()
    ([0.667, 1.0], [1, 0], ['q1', 'q2'])
    """
    if not len(questions) == len(meanings) == len(correct) or not len(questions):
        raise ValueError(
            f"questions, meanings and correct must have one value per sample, got {len(questions)}, {len(meanings)} "
            f"and {len(correct)}"
        )
    grades: dict[Any, dict[Any, list[float]]] = {}
    for row, (question, meaning, value) in enumerate(zip(questions, meanings, correct, strict=True)):
        grades.setdefault(question, {}).setdefault(meaning, []).append(grade_of(value, f"row {row}"))
    confidence, grade = [], []
    for answers in grades.values():
        chosen = max(answers.values(), key=len)  # the first of equally long ones
        confidence.append(len(chosen) / sum(map(len, answers.values())))
        grade.append(float(np.mean(chosen)))
    right = right_or_wrong(np.array(grade), right_from)
    return Predictions(confidence=np.array(confidence), correct=right, split=split, ids=list(grades), **about)
