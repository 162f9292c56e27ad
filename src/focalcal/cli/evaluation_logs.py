"""`focalcal audit` of evaluation logs of language models: a line per task, a page per task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from focalcal.cli.output import json_text, print_json

if TYPE_CHECKING:
    from focalcal.auditing import Gate


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
