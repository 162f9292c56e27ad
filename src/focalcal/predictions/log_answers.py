"""What a record of each format of evaluation logs says: a question, how sure its answer is, whether it is right."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from focalcal.predictions.answer_options import ROUNDED_UP
from focalcal.predictions.header import PredictionsFileError
from focalcal.predictions.log_files import Record, at_path
from focalcal.predictions.verbalised import grade_of

_SUBJECTS = ("doc.subject", "doc.category", "metadata.subject", "metadata.category", "subject")
_AROUND = " \t\r\n.*\"'`()"  # what stands around an answer and is no part of it: "**B**", "(B)", "B."
_SAID = re.compile(r"(?i)\banswer(?:\s+is(?:\s+option)?\b[\s*]*:?|[\s*]*:)[\s*]*([^\n]+)")  # "The answer is B."
_LABELLED = re.compile(r"(?im)^[\s*]*(?:final\s+)?answer[\s*]*:[\s*]*([^\n]+)")  # "Confidence: 90%\nAnswer: B"
_SURE = re.compile(r"(?is)\bconfidence\b.*$")
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


class NoConfidence(PredictionsFileError):
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


def reader_of(record: Record) -> Callable[[Record, LogOptions], Iterable[Answer]]:
    """What reads it."""
    for keys, reader in _READERS.items():
        if set(keys) <= record.value.keys():
            return reader
    return json_line


def refused(record: Record, rule: str, got: Any, remedy: str) -> PredictionsFileError:
    """The error for a record, with its place."""
    text = " ".join(str(got).split())[:100]
    return PredictionsFileError(f"{record.where}: {rule}, got {text}; {remedy}")


def _at(record: Record, path: str | None, name: str, otherwise: Any = None) -> Any:
    """What stands at a path of a line, which must be there if it is named."""
    if not path:
        return otherwise
    if (found := at_path(record.value, path)) is None:
        raise refused(
            record, f"a line must have {path!r}", f"the keys {', '.join(record.value)}",
            f"name the path of the {name}, such as --{name} scores.judge",
        )  # fmt: skip
    return found


def _group(record: Record, options: LogOptions) -> Any:
    """The subject of a question, if it has one."""
    for path in [options.group] if options.group else _SUBJECTS:
        if (value := at_path(record.value, path)) is not None:
            return str(value)
    if options.group:
        raise refused(record, f"a question must have {options.group!r}", "none", "name another path, or none")
    return None


def _lm_eval(record: Record, options: LogOptions) -> Iterator[Answer]:
    """A line of `samples_*.jsonl`: option by option a log-likelihood and whether it is the greedy continuation."""
    value = record.value
    found = _TASK.match(record.path.stem)
    task = found[1] if found else record.path.stem
    responses = value.get("filtered_resps") or [each[0] for each in value["resps"]]
    if not all(isinstance(each, list) and len(each) == 2 for each in responses) or len(responses) < 2:
        text = " ".join(str(responses).split())[:100]
        raise NoConfidence(
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
        raise refused(
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
        raise refused(record, "log-likelihoods must be numbers of at most 0", given, "fix the line, or leave it out")
    return min(number, 0.0)


def _inspect(record: Record, options: LogOptions) -> Iterator[Answer]:
    """A sample of Inspect's: its first scorer's verdict, the log-probability of the answer, or a stated confidence."""
    value = record.value
    scores = value.get("scores") or {}
    name = options.metric or next(iter(scores), None)
    if name not in scores:
        raise refused(record, f"a sample must have the score {name!r}", ", ".join(scores) or "none", "name a scorer")
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
        raise refused(record, "a request must have an answer", value.get("error"), "leave the line out, or repeat it")
    if options.answers is None or name not in options.answers:
        raise refused(
            record, "answers must name the right answer to every custom_id", f"none for {name}",
            "pass answers={custom_id: answer}, or --answers with a .json of them",
        )  # fmt: skip
    choice, wanted = body["choices"][0], str(options.answers[name]).strip(_AROUND)
    text = str((choice.get("message") or {}).get("content") or choice.get("text") or "")
    said, later = _SURE.sub("", text).strip(_AROUND), []
    if stated := _SAID.findall(said) or _LABELLED.findall(text):
        said = _SURE.sub("", stated[-1]).strip(_AROUND)
    else:
        later = _SAID.findall(text)  # behind the confidence, which may be about "the answer" as well
    right = said.casefold() == wanted.casefold()
    if wanted and not right and re.search(rf"(?i)(?<!\w){re.escape(wanted)}(?!\w)", "\n".join([said, *later])):
        raise refused(
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
        raise refused(record, f"an instance must have {missing[0]!r}", ", ".join(plain), "name another metric")
    right, sure = plain[metric]["mean"], plain["max_prob"]["mean"]
    question = record.value["instance_id"]
    yield Answer(record.where, question, grade_of(right, record.where), confidence=sure, task=record.about)


def json_line(record: Record, options: LogOptions) -> Iterator[Answer]:
    """A line with a confidence and whether the answer is right, under the paths that the options name."""
    question = _at(record, options.question, "question", record.line)
    task = str(_at(record, options.task, "task", record.path.stem))
    answer = Answer(record.where, question, group=_group(record, options), task=task)
    if options.logprobs is not None:
        yield _listed(record, options, answer)
        return
    sure = _at(record, options.confidence or "confidence", "confidence")
    answer = answer._replace(correct=grade_of(_at(record, options.correct or "correct", "correct"), record.where))
    plain = isinstance(sure, float | int) and not isinstance(sure, bool) and options.scale is None
    yield answer._replace(confidence=float(sure)) if plain else answer._replace(stated=sure)


def _listed(record: Record, options: LogOptions, answer: Answer) -> Answer:
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
        raise refused(
            record, f"a line must have log-probabilities in {options.logprobs!r} and an answer in {options.answer!r}",
            f"the keys {', '.join(record.value)}", "name the paths",
        )  # fmt: skip
    logs = {str(name): _number(record, value) for name, value in found.items() if value is not None}
    if not logs:
        raise refused(record, "some option must have a log-probability", "none", "leave the line out")
    first = max(logs, key=lambda name: logs[name])
    if options.normalize == "none":
        return answer._replace(confidence=math.exp(logs[first]), correct=float(first.strip() == str(right).strip()))
    names = sorted(map(str, found))
    if str(right) not in names:
        raise refused(record, f"the answer must be one of the options {', '.join(names)}", right, "fix the line")
    if len(logs) < len(names) and options.missing is None:
        raise refused(
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
