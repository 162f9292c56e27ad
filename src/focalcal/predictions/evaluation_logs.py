"""Logs of evaluations of language models as predictions, one set per task.

lm-evaluation-harness (`samples_*.jsonl`), Inspect (`.eval`, `.json`), HELM (`per_instance_stats.json`, or the folder of
a run), batches of OpenAI's form, and JSON lines whose paths are named. What a file is, its first record shows.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import user_level
from focalcal.core.numerics import softmax
from focalcal.predictions.header import PredictionsFileError
from focalcal.predictions.inputs import InputWarning
from focalcal.predictions.log_answers import Answer, LogOptions, NoConfidence, json_line, reader_of, refused
from focalcal.predictions.log_files import log_files, records
from focalcal.predictions.record import Predictions
from focalcal.predictions.verbalised import right_or_wrong, verbalised


@dataclass(frozen=True, eq=False)
class TaskLog:
    """The answers to one task of an evaluation log, which `read_logs` reads.

    Attributes:
        task: its name.
        predictions: the answers; `ids` are the questions, as `clusters` if some are asked again.
        notes: what was left out or taken for granted.

    >>> from focalcal.predictions import Predictions
    >>> rows = Predictions(confidence=[0.9, 0.6], correct=[True, False], split="test")
    >>> TaskLog("law", rows).predictions.labels
    array([1, 0])
    """

    task: str
    predictions: Predictions
    notes: tuple[str, ...] = ()


def read_logs(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], **options: Any) -> list[TaskLog]:
    """The tasks of log files, or of folders of them, in the order of their names.

        for log in read_logs("run/samples_mmlu_law_2026-11-19.jsonl"):
            print(log.task, focalcal.metrics.summary(log.predictions))

    Where a log has the log-likelihood of every option, predictions are logits, whose softmax divides by the sum over
    the options; a question with fewer options than others, and any other log, gives the confidence of the answer and
    whether it is right. Of several files those of tasks without confidences are left out, with an `InputWarning`. A
    file that cannot be trusted raises `PredictionsFileError`.

    Args:
        paths: of a file or a folder, or several.
        options: `LogOptions`.

    Returns:
        One per task, in the order of their names.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "law.jsonl").write_text('{"confidence": 0.9, "correct": 1}')
    ...     (log,) = read_logs(folder)
    >>> log.predictions.probs, log.predictions.labels
    (array([[0.1, 0.9]]), array([1]))
    """
    chosen = LogOptions(**options)
    tasks: dict[str, list[Answer]] = {}
    files: dict[tuple[str, str], Path] = {}
    left_out: list[PredictionsFileError] = []
    for path in log_files([paths] if isinstance(paths, str | os.PathLike) else paths):
        first = None
        answers: list[Answer] = []
        try:
            for record in records(path):
                reader = reader_of(record)
                first = first or reader
                if reader is not first:
                    raise refused(record, "a log must hold records of one kind", "another", "audit each by itself")
                try:
                    answers += reader(record, chosen)
                except (KeyError, TypeError, AttributeError, IndexError) as error:
                    reason = f"{type(error).__name__}: {error}"
                    raise refused(record, "a record must have what its format says", reason, "fix it") from error
        except NoConfidence as error:
            left_out.append(error)
            warnings.warn(f"{error}; the file is left out", InputWarning, stacklevel=user_level())
        for answer in answers:
            other = files.setdefault((answer.task, str(answer.question)), path)
            if other != path and (first is not json_line or chosen.question):  # else questions are numbers of lines
                raise PredictionsFileError(
                    f"{answer.where}: a question must be answered in one file, got question {answer.question!r} of "
                    f"task {answer.task!r} in {other} too, as of another run; name the files of one run, or join them "
                    "if both count"
                )
            tasks.setdefault(answer.task, []).append(answer)
        if first is None:
            raise PredictionsFileError(f"{path}: a log must hold at least one answer, got none; run the task again")
    if left_out and not tasks:
        raise left_out[0]
    return [_task_log(name, answers, chosen) for name, answers in sorted(tasks.items())]


def _task_log(task: str, answers: list[Answer], options: LogOptions) -> TaskLog:
    """The answers to one task, which must say their confidence in one way."""
    kinds = [next(name for name in ("options", "confidence", "stated") if _has(answer, name)) for answer in answers]
    for answer, kind in zip(answers, kinds, strict=True):
        if kind != kinds[0]:
            raise PredictionsFileError(
                f"{answer.where}: the answers of a task must say their confidence in one way, got {kind} after "
                f"{kinds[0]}; put these answers into a file of their own"
            )
    questions = [answer.question for answer in answers]
    names = np.array([str(question) for question in questions])
    about: dict[str, Any] = {"ids": names, "split": "test"}
    if len(set(names.tolist())) < len(names):
        about["clusters"] = names  # epochs and repeats are not independent
    if all(answer.group is not None for answer in answers):
        about["groups"] = np.array([answer.group for answer in answers])
    if kinds[0] == "options":
        return _of_options(task, answers, about, options)
    grade = np.array([answer.correct for answer in answers])
    notes: tuple[str, ...] = ()
    if kinds[0] == "confidence":
        sure = np.array([answer.confidence for answer in answers])
        if len(wrong := np.flatnonzero(~((sure >= 0) & (sure <= 1)))):
            raise PredictionsFileError(
                f"{answers[wrong[0]].where}: a confidence must be from 0 to 1, got {sure[wrong[0]]:g}; pass scale=100 "
                "for percentages"
            )
    else:
        try:
            read = verbalised(
                [answer.stated for answer in answers], grade.tolist(),
                scale=options.scale, words=options.words, fallback=options.fallback,
            )  # fmt: skip
        except ValueError as error:
            row = re.search(r"in row (\d+)", str(error))
            raise PredictionsFileError(f"{answers[int(row[1]) if row else 0].where}: {error}") from None
        sure, notes = read.confidence, read.notes
    return TaskLog(task, _outcomes(sure, grade, answers, options, about), notes)


def _outcomes(
    sure: NDArray[np.float64], grade: NDArray[np.float64], answers: list[Answer], options: LogOptions, about: Any
) -> Predictions:
    between = np.flatnonzero((grade > 0) & (grade < 1))
    if len(between) and options.right_from is None:
        raise PredictionsFileError(
            f"{answers[between[0]].where}: an answer must be right or wrong, got the grade {grade[between[0]]:g}; say "
            "from which grade on it is right: right_from=0.5, --right-from 0.5"
        )
    return Predictions(confidence=sure, correct=right_or_wrong(grade, options.right_from), **about)


def _has(answer: Answer, name: str) -> bool:
    return name == "stated" or getattr(answer, name) is not None


def _of_options(task: str, answers: list[Answer], about: dict[str, Any], options: LogOptions) -> TaskLog:
    """Logits where every question has as many options and the log's verdict is that of the most probable one."""
    sizes = {len(answer.options or ()) for answer in answers}
    best = [int(np.argmax(answer.options or ())) for answer in answers]
    marked = [answer.correct is not None for answer in answers]
    verdicts = [answer.correct == float(k == answer.label) for answer, k in zip(answers, best, strict=True)]
    known = all(answer.label is not None for answer in answers)
    if len(sizes) == 1 and known and (all(verdicts) or not any(marked)):
        logits = np.array([answer.options for answer in answers])
        labels = np.array([answer.label for answer in answers])
        return TaskLog(task, Predictions(logits=logits, labels=labels, **about))
    sure = np.array([softmax(np.array([answer.options]))[0].max() for answer in answers])
    for answer in answers:
        if answer.correct is None and answer.label is None:
            raise PredictionsFileError(
                f"{answer.where}: a question must have a right option or a metric such as acc, got neither; name the "
                "metric"
            )
    right = [float(k == a.label) if a.correct is None else a.correct for a, k in zip(answers, best, strict=True)]
    reason = "numbers of options differ" if len(sizes) > 1 else "the log's metric is not whether the first option is"
    note = f"Rows are the most probable option and whether it is right, since {reason}."
    return TaskLog(task, _outcomes(sure, np.array(right), answers, options, about), (note,))


def same_questions(new: Predictions, old: Predictions, task: str) -> Predictions:
    """The rows of `old` in the order of those of `new`, the n-th answer to a question beside the n-th."""
    keys_new, keys_old = (_numbered(each) for each in (new, old))
    places = {key: row for row, key in enumerate(keys_old)}
    only_new, only_old = keys_new - places.keys(), places.keys() - keys_new
    if isinstance(keys_new, dict) and (only_new or only_old):
        name = next(iter(only_new or only_old))[0]
        raise ValueError(
            f"both models must answer the same questions of {task!r}, got {len(only_new)} in the first alone and "
            f"{len(only_old)} in the baseline alone, {name!r} among them; run both on the same questions"
        )
    return old[np.array([places[key] for key in keys_new])]


def _numbered(predictions: Predictions) -> dict[tuple[str, int], None]:
    """(question, how often it came before) of every row."""
    seen: dict[str, int] = {}
    keys: dict[tuple[str, int], None] = {}
    for name in np.asarray(predictions.ids).tolist():
        seen[name] = seen.get(name, -1) + 1
        keys[(name, seen[name])] = None
    return keys
