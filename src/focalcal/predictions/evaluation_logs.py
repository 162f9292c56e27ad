"""Logs of evaluations of language models as predictions, one set per task.

lm-evaluation-harness (`samples_*.jsonl`), Inspect (`.eval`, `.json`), HELM (`per_instance_stats.json`, or the folder of
a run), batches of OpenAI's form, and JSON lines whose paths are named. What a file is, its first record shows.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from focalcal.core.checks import user_level
from focalcal.core.numerics import softmax
from focalcal.predictions.answer_options import ROUNDED_UP
from focalcal.predictions.header import PredictionsFileError
from focalcal.predictions.inputs import InputWarning
from focalcal.predictions.log_files import Record, at_path, log_files, records
from focalcal.predictions.record import Predictions
from focalcal.predictions.verbalised import grade_of, right_or_wrong, verbalised

_SUBJECTS = ("doc.subject", "doc.category", "metadata.subject", "metadata.category", "subject")
_AROUND = " \t\r\n.*\"'`()"  # what stands around an answer and is no part of it: "**B**", "(B)", "B."
_SAID = re.compile(r"(?i)\banswer(?:\s+is(?:\s+option)?\b[\s*]*:?|[\s*]*:)[\s*]*([^\n]+)")  # "The answer is B."
_TASK = re.compile(r"samples_(.+?)(?:_\d{4}-\d\d-\d\d.*)?$")  # the name of a file of lm-evaluation-harness


@dataclass(frozen=True)
class LogOptions:
    """What a log does not say itself.

    confidence, correct, task, question, group
                 paths such as "scores.judge" in JSON lines; `group` in every log, by default its subject
    logprobs, answer, normalize, missing
                 paths, in JSON lines, of the log-probabilities by option or token and of the right one. With
                 normalize="options" they are all that can be said, as in `option_probs`; with "none" the first one's
                 probability is the confidence, whether or not the right one is listed
    answers      right answers by `custom_id`, for batches, whose output does not hold them
    metric       which score says whether an answer is right; by default the first that is known
    right_from   the least grade that counts as right, of answers that are graded
    scale, words, fallback
                 of stated confidences, as in `verbalised`
    """

    confidence: str | None = None
    correct: str | None = None
    task: str | None = None
    question: str | None = None
    group: str | None = None
    logprobs: str | None = None
    answer: str | None = None
    normalize: str | None = None
    missing: float | None = None
    answers: Mapping[str, Any] | None = None
    metric: str | None = None
    right_from: float | None = None
    scale: Any = None
    words: Any = "icd203"
    fallback: float | None = None


class _NoConfidence(PredictionsFileError):
    """A task whose answers say nothing of how sure they are."""


class Answer(NamedTuple):
    """An answer of a model: log-likelihoods of options and the right one, or a confidence, or a text with one."""

    where: str
    question: Any
    correct: float | None = None
    options: list[float] | None = None
    label: int | None = None
    confidence: float | None = None
    stated: Any = None
    group: Any = None
    task: str = ""


@dataclass(frozen=True, eq=False)
class TaskLog:
    """The answers to one task. `ids` of the predictions are the questions, as `clusters` if some are asked again."""

    task: str
    predictions: Predictions
    notes: tuple[str, ...] = ()


def read_logs(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], **options: Any) -> list[TaskLog]:
    """The tasks of log files, or of folders of them, in the order of their names; `options` are `LogOptions`.

        for log in read_logs("run/samples_mmlu_law_2026-11-19.jsonl"):
            print(log.task, focalcal.metrics.summary(log.predictions))

    Where a log has the log-likelihood of every option, predictions are logits, whose softmax divides by the sum over
    the options; a question with fewer options than others, and any other log, gives the confidence of the answer and
    whether it is right. Of several files those of tasks without confidences are left out, with an `InputWarning`. A
    file that cannot be trusted raises `PredictionsFileError`.
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
                reader = _reader(record)
                first = first or reader
                if reader is not first:
                    raise _refused(record, "a log must hold records of one kind", "another", "audit each by itself")
                try:
                    answers += reader(record, chosen)
                except (KeyError, TypeError, AttributeError, IndexError) as error:
                    reason = f"{type(error).__name__}: {error}"
                    raise _refused(record, "a record must have what its format says", reason, "fix it") from error
        except _NoConfidence as error:
            left_out.append(error)
            warnings.warn(f"{error}; the file is left out", InputWarning, stacklevel=user_level())
        for answer in answers:
            other = files.setdefault((answer.task, str(answer.question)), path)
            if other != path and (first is not _json_line or chosen.question):  # else questions are numbers of lines
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


def _reader(record: Record) -> Callable[[Record, LogOptions], Iterable[Answer]]:
    for keys, reader in _READERS.items():
        if set(keys) <= record.value.keys():
            return reader
    return _json_line


def _refused(record: Record, rule: str, got: Any, remedy: str) -> PredictionsFileError:
    text = " ".join(str(got).split())[:100]
    return PredictionsFileError(f"{record.where}: {rule}, got {text}; {remedy}")


def _at(record: Record, path: str | None, otherwise: Any) -> Any:
    if not path:
        return otherwise
    if (found := at_path(record.value, path)) is None:
        raise _refused(record, f"a line must have {path!r}", "none", "name another path, or none")
    return found


def _group(record: Record, options: LogOptions) -> Any:
    """The subject of a question, if it has one."""
    for path in [options.group] if options.group else _SUBJECTS:
        if (value := at_path(record.value, path)) is not None:
            return str(value)
    if options.group:
        raise _refused(record, f"a question must have {options.group!r}", "none", "name another path, or none")
    return None


def _lm_eval(record: Record, options: LogOptions) -> Iterator[Answer]:
    """A line of `samples_*.jsonl`: option by option a log-likelihood and whether it is the greedy continuation."""
    value = record.value
    found = _TASK.match(record.path.stem)
    task = found[1] if found else record.path.stem
    responses = value.get("filtered_resps") or [each[0] for each in value["resps"]]
    if not all(isinstance(each, list) and len(each) == 2 for each in responses) or len(responses) < 2:
        text = " ".join(str(responses).split())[:100]
        raise _NoConfidence(
            f"{record.where}: task {task!r} must have the log-likelihoods of answer options, got {text}: generated "
            "answers have no confidence here"
        )
    options_logs = [_number(record, each[0]) for each in responses]
    metric = options.metric or next((name for name in ("acc", "exact_match") if name in value), None)
    right = None if metric is None else value.get(metric)
    label = _target(record, value, len(responses))
    yield Answer(
        record.where, value["doc_id"], right, options_logs, label, group=_group(record, options), task=task
    )  # fmt: skip


def _target(record: Record, value: dict[str, Any], count: int) -> int | None:
    """Which option is right: its number, or its text."""
    target = str(value.get("target")).strip()
    if target.lstrip("-").isdigit() and not 0 <= int(target) < count:
        raise _refused(
            record, f"target must be the number of one of {count} options", target, "the right answer is no option"
        )
    if target.isdigit():
        return int(target)
    texts = [str(each.get("arg_1")).strip() for each in (value.get("arguments") or {}).values()]
    return texts.index(target) if target in texts else None


def _number(record: Record, given: Any) -> float:
    """A log-likelihood, which the logs write as text."""
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number) or number > ROUNDED_UP:
        raise _refused(record, "log-likelihoods must be numbers of at most 0", given, "fix the line, or leave it out")
    return min(number, 0.0)


def _inspect(record: Record, options: LogOptions) -> Iterator[Answer]:
    """A sample of Inspect's: its first scorer's verdict, the log-probability of the answer, or a stated confidence."""
    value = record.value
    scores = value.get("scores") or {}
    name = options.metric or next(iter(scores), None)
    if name not in scores:
        raise _refused(record, f"a sample must have the score {name!r}", ", ".join(scores) or "none", "name a scorer")
    grade = grade_of(scores[name]["value"], record.where)
    choice = (value["output"].get("choices") or [{}])[0]
    said = str(scores[name].get("answer") or "")
    yield _spoken(
        record, options, value["id"], grade, said, value["output"].get("completion"),
        (choice.get("logprobs") or {}).get("content"), record.about,
    )  # fmt: skip


def _openai(record: Record, options: LogOptions) -> Iterator[Answer]:
    """A line of a batch's output; what is right is in `answers`."""
    value, name = record.value, record.value["custom_id"]
    body = (value.get("response") or {}).get("body") or {}
    if not body.get("choices"):
        raise _refused(record, "a request must have an answer", value.get("error"), "leave the line out, or repeat it")
    if options.answers is None or name not in options.answers:
        raise _refused(
            record, "answers must name the right answer to every custom_id", f"none for {name}",
            "pass answers={custom_id: answer}, or --answers with a .json of them",
        )  # fmt: skip
    choice, wanted = body["choices"][0], str(options.answers[name]).strip(_AROUND)
    text = str((choice.get("message") or {}).get("content") or choice.get("text") or "")
    said = re.sub(r"(?is)\bconfidence\b.*$", "", text).strip(_AROUND)
    if stated := _SAID.findall(said):
        said = stated[-1].strip(_AROUND)
    right = said.casefold() == wanted.casefold()
    if wanted and not right and re.search(rf"(?i)(?<!\w){re.escape(wanted)}(?!\w)", said):
        raise _refused(
            record, f"an answer must be as short as the right one, {wanted!r}, or end with 'Answer: ...'", said,
            "whether it is right its text does not say: ask for such an end, or grade it and name --correct",
        )  # fmt: skip
    tokens = (choice.get("logprobs") or {}).get("content")
    yield _spoken(record, options, name, float(right), said, text, tokens, record.path.stem)


def _spoken(
    record: Record,
    options: LogOptions,
    question: Any,
    grade: float,
    said: str,
    text: Any,
    tokens: Any,
    task: str,
) -> Answer:
    """The probability of the answer's token, or of all tokens if none is the answer, or what the text states."""
    answer = Answer(record.where, question, grade, group=_group(record, options), task=task)
    if not tokens:
        return answer._replace(stated=text)
    own = [token["logprob"] for token in tokens if str(token["token"]).strip() == said]
    logprob = own[-1] if own else sum(token["logprob"] for token in tokens)
    return answer._replace(confidence=math.exp(_number(record, logprob)))


def _helm(record: Record, options: LogOptions) -> Iterator[Answer]:
    """The statistics of an instance, without perturbations: the probability of its answer, and whether it is right."""
    plain = {each["name"]["name"]: each for each in record.value["stats"] if not each["name"].get("perturbation")}
    metric = options.metric or "exact_match"
    if missing := [name for name in ("max_prob", metric) if name not in plain]:
        raise _refused(record, f"an instance must have {missing[0]!r}", ", ".join(plain), "name another metric")
    right, sure = plain[metric]["mean"], plain["max_prob"]["mean"]
    question = record.value["instance_id"]
    yield Answer(record.where, question, grade_of(right, record.where), confidence=sure, task=record.about)


def _json_line(record: Record, options: LogOptions) -> Iterator[Answer]:
    """A line with a confidence and whether the answer is right, under the paths that the options name."""
    if options.logprobs is not None:
        yield _listed(record, options)
        return
    places = {"confidence": options.confidence or "confidence", "correct": options.correct or "correct"}
    if options.task:
        places["task"] = options.task
    found = {name: at_path(record.value, path) for name, path in places.items()}
    for name, path in places.items():
        if found[name] is None:
            raise _refused(
                record, f"a line must have {path!r}", f"the keys {', '.join(record.value)}",
                f"name the path of the {name}, such as --{name} scores.judge",
            )  # fmt: skip
    question = _at(record, options.question, record.line)
    grade, task = grade_of(found["correct"], record.where), str(found.get("task", record.path.stem))
    answer = Answer(record.where, question, grade, group=_group(record, options), task=task)
    sure = found["confidence"]
    plain = isinstance(sure, float | int) and not isinstance(sure, bool) and options.scale is None
    yield answer._replace(confidence=float(sure)) if plain else answer._replace(stated=sure)


def _listed(record: Record, options: LogOptions) -> Answer:
    """A line with log-probabilities by option or token, and which one is right."""
    if options.answer is None or options.normalize not in ("options", "none"):
        raise ValueError(
            "logprobs need answer=, the path of the right one, and normalize='options' or 'none', got "
            f"{options.answer!r} and {options.normalize!r}; say both"
        )
    found, right = at_path(record.value, options.logprobs or ""), at_path(record.value, options.answer)
    if isinstance(found, list):  # as interfaces list tokens
        found = {each.get("token"): each.get("logprob") for each in found if isinstance(each, dict)}
    if not isinstance(found, dict) or not found or right is None:
        raise _refused(
            record, f"a line must have log-probabilities in {options.logprobs!r} and an answer in {options.answer!r}",
            f"the keys {', '.join(record.value)}", "name the paths",
        )  # fmt: skip
    logs = {str(name): _number(record, value) for name, value in found.items() if value is not None}
    if not logs:
        raise _refused(record, "some option must have a log-probability", "none", "leave the line out")
    task = str(_at(record, options.task, record.path.stem))
    question = _at(record, options.question, record.line)
    answer = Answer(record.where, question, group=_group(record, options), task=task)
    first = max(logs, key=lambda name: logs[name])
    if options.normalize == "none":
        return answer._replace(confidence=math.exp(logs[first]), correct=float(first.strip() == str(right).strip()))
    names = sorted(map(str, found))
    if str(right) not in names:
        raise _refused(record, f"the answer must be one of the options {', '.join(names)}", right, "fix the line")
    if len(logs) < len(names) and options.missing is None:
        raise _refused(
            record, "every option must have a log-probability unless --missing says its probability",
            ", ".join(sorted(set(names) - set(logs))), "pass --missing 0",
        )  # fmt: skip
    absent = math.log(options.missing) if options.missing else -math.inf
    return answer._replace(options=[logs.get(name, absent) for name in names], label=names.index(str(right)))


_READERS: dict[tuple[str, ...], Callable[[Record, LogOptions], Iterable[Answer]]] = {
    ("doc_id", "resps"): _lm_eval,
    ("custom_id", "response"): _openai,
    ("instance_id", "stats"): _helm,
    ("epoch", "output"): _inspect,
}
"""The format of a record by the keys that it has; any other is a line with named paths."""


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
