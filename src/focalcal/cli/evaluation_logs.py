"""`focalcal audit` of evaluation logs of language models: a line per task, a page per task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from focalcal.cli.options import RowOptions, given
from focalcal.cli.output import json_text, print_json

if TYPE_CHECKING:
    from focalcal.auditing import Gate


@dataclass(frozen=True, kw_only=True)
class AuditColumns(RowOptions):
    """What an audit reads of a table."""

    weights: Annotated[
        str | None, typer.Option(help="The column of weights: how many rows of the population each row stands for.")
    ] = None
    normalize: Annotated[
        Literal["rows", "options", "none"] | None,
        typer.Option(
            help="rows: divide each row of probabilities by its sum, as for printed digits or counts. With --logprobs: "
            "options (divide by their sum) or none (take them as they are)."
        ),
    ] = None  # type: ignore[assignment]  # more than of other commands

    def reading(self) -> dict[str, Any]:
        """The keywords of `Predictions.load`, of what was given."""
        if self.weights is not None and self.weights in (self.groups or "").split(","):
            raise ValueError(
                f"--groups and --weights name one column, {self.weights!r}; give groups a column of names, such as the "
                "strata that the weights are of"
            )
        return super().reading() | given(weights=self.weights)

    def given(self, *but: str) -> dict[str, Any]:
        """The options that were given, but for some."""
        return {name: value for name, value in vars(self).items() if value not in (None, False) and name not in but}


@dataclass(frozen=True, kw_only=True)
class LogFlags:
    """What evaluation logs are read by, beside the options of tables that logs have, too."""

    task: Annotated[
        str | None, typer.Option(help="In evaluation logs of JSON lines: the path of the task's name, e.g. meta.task.")
    ] = None
    question: Annotated[
        str | None, typer.Option(help="In evaluation logs of JSON lines: the path of the question, which may repeat.")
    ] = None
    metric: Annotated[
        str | None, typer.Option(help="In evaluation logs: the score that says whether an answer is right.")
    ] = None
    right_from: Annotated[
        float | None, typer.Option(help="In evaluation logs: the least grade that counts as right.")
    ] = None
    fallback: Annotated[
        float | None, typer.Option(help="In evaluation logs: the confidence of answers that state none.")
    ] = None
    logprobs: Annotated[
        str | None, typer.Option(help="In JSON lines: the path of log-probabilities by option or token.")
    ] = None
    answer: Annotated[str | None, typer.Option(help="Goes with --logprobs: the path of the right one.")] = None
    missing: Annotated[
        float | None, typer.Option(help="Goes with --logprobs: the probability of an option without one.")
    ] = None
    answers: Annotated[
        Path | None, typer.Option(help="For batches: a .json file with the right answer by custom_id.")
    ] = None

    def reading(self, table: AuditColumns) -> dict[str, Any]:
        """The keywords of `read_logs`, of what was given."""
        return given(
            **vars(self) | {"answers": None if self.answers is None else right_answers(self.answers)},
            confidence=table.confidence,
            correct=table.correct,
            group=table.groups,
            scale=None if table.scale is None else 100 if table.scale in ("percent", "100") else 1,
            normalize=None if table.normalize == "rows" else table.normalize,
        )


def are_logs(files: list[Path], reading: Mapping[str, Any]) -> bool:
    """Whether all files are logs, as their first records or the paths that were named show."""
    from focalcal.predictions.log_files import is_log

    named = any("." in str(reading.get(name, "")) for name in ("confidence", "correct")) or reading.keys() & {
        "task",
        "question",
        "logprobs",
    }
    return all(is_log(path, named=bool(named)) for path in files)


def right_answers(path: Path) -> dict[str, Any]:
    """The right answer by `custom_id`, of a JSON file."""
    answers = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(answers, dict):
        raise ValueError(f"--answers must be a JSON object of answers by custom_id, got {type(answers).__name__}")
    return answers


def audit_of_logs(
    files: list[Path],
    reading: Mapping[str, Any],
    *,
    gates: list[Gate],
    on: Any,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> list[str]:
    """Audit and print; the gates that fail, each with its task."""
    from focalcal.auditing import audit_logs
    from focalcal.core.atomic import write_atomically

    found = audit_logs(files, reading=reading, gates=gates, **options)
    failed = {task: [gate for gate in gates if gate.holds(each.metrics, on)] for task, each in found.tasks.items()}
    said = [f"{task}: {gate}" for task, own in failed.items() for gate in own]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        found.html(out)
        write_atomically(out / "metrics.json", json_text(found.record()).encode())
    if as_json:
        print_json({**found.record(), "failed": said})
        return said
    typer.echo(repr(found))
    for line in said:
        typer.echo(f"FAILED: fail if {line}")
    if out is not None:
        typer.echo(out)
    return said
