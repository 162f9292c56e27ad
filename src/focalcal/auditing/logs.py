"""Audits of evaluation logs of language models: one audit per task, and two models on the same questions."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.core.checks import shown
from focalcal.core.display import html_table, text_table
from focalcal.predictions.evaluation_logs import TaskLog, read_logs, same_questions

if TYPE_CHECKING:
    from focalcal.auditing.auditor import Audit

_SHOWN = 10  # subjects of a task
_FEW_TASKS = 3  # up to which every calibrator is tried


@dataclass(frozen=True, eq=False, repr=False)
class LogAudit:
    """The audit of every task by its name; `print` shows one line per task.

    Attributes:
        tasks: the audits by the names of the tasks.

    >>> from focalcal.auditing import audit
    >>> found = audit(confidence=[0.9] * 200, correct=[True] * 120 + [False] * 80, calibrate=None)
    >>> str(LogAudit({"law": found})).splitlines()[1].split()[:4]  # task, rows, accuracy, gap
    ['law', '200', '0.6000', '0.3000']
    """

    tasks: dict[str, Audit]

    def frame(self) -> dict[str, list[Any]]:
        """One row per task.

        `gain` is what the recommended calibrator lowers the NLL by on rows that it was not fitted on, 0 if none is
        worth it; `answered` the share of questions above the threshold at which at most 5 % of answers are wrong.
        """
        columns: dict[str, list[Any]] = {"task": list(self.tasks)}
        found = self.tasks.values()
        columns["rows"] = [audit.rows for audit in found]
        for title, name in (
            ("accuracy", "accuracy"), ("gap", "confidence_gap"), ("ECE", "ece"), ("Brier", "brier"), ("NLL", "nll"),
            ("AUROC", "confidence_auroc"),
        ):  # fmt: skip
            columns[title] = [audit.metrics[name].estimate for audit in found]
        columns["gain"] = [_gain(audit) for audit in found]
        columns["answered"] = [audit.abstention.coverage if audit.abstention else math.nan for audit in found]
        return columns

    def changes(self) -> dict[str, list[Any]]:
        """Against the baseline: one row per task and metric, with the interval over questions of new minus old."""
        rows = [
            (task, change.metric, change.new, change.old, change.low, change.high, change.finding)
            for task, audit in self.tasks.items()
            for change in audit.changes
        ]
        names = ("task", "metric", "new", "old", "low", "high", "finding")
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}

    def record(self) -> dict[str, Any]:
        """Everything as plain values, for JSON: the record of each audit by task."""
        return {"tasks": {task: audit.record() for task, audit in self.tasks.items()}}

    def html(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write a page per task into a folder, which must exist."""
        pages = []
        for task, audit in self.tasks.items():
            name = re.sub(r"[^A-Za-z0-9._=-]+", "_", task)
            while (page := Path(folder) / f"{name}.html") in pages:  # a/b and a:b
                name += "_"
            pages.append(page)
            audit.html(page)
        return pages

    def _repr_html_(self) -> str:
        verdicts = "".join(
            f"<p><b>{escape(task)}</b>: {escape(audit.verdict.sentence)}</p>" for task, audit in self.tasks.items()
        )
        return html_table(self.frame()) + verdicts

    def __repr__(self) -> str:
        """A line per task, then what each says."""
        from focalcal.auditing.tables import part_table

        parts = [text_table(self.frame())]
        if changes := self.changes():
            parts += ["Against the baseline, new minus old by question:", text_table(changes)]
        for task, audit in self.tasks.items():
            said = [audit.headline, audit.abstention.sentence if audit.abstention else ""]
            fix = "" if audit.fixes is None else audit.fixes.sentence
            parts.append("\n".join([f"{task}:", *(f"  {each}" for each in (*said, fix, *audit.notes) if each)]))
            if audit.groups:
                parts.append(f"  Subjects, worst first:\n{part_table(audit.groups[:_SHOWN], widest=40).text()}")
        return "\n\n".join(parts)


def audit_logs(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    baseline: str | os.PathLike[str] | None = None,
    reading: Mapping[str, Any] | None = None,
    **options: Any,
) -> LogAudit:
    r"""Audit every task of evaluation logs.

    Rows of one question (epochs, repeats) are a cluster. Groups are the subjects that a log names.

    Args:
        paths: of a file or a folder, or several.
        baseline: the logs of another model, of the same tasks and questions.
        reading: the options of `focalcal.predictions.read_logs`.
        options: of `audit`; of more than three tasks a temperature, or Platt scaling of confidences alone, is the only
            calibrator that is tried unless `calibrate` says otherwise.

    Returns:
        An `Audit` per task.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     rows = '{"confidence": 0.9, "correct": 1}\n{"confidence": 0.9, "correct": 0}\n'
    ...     _ = Path(folder, "law.jsonl").write_text(100 * rows)
    ...     found = audit_logs(folder, calibrate=None)
    >>> [str(each.verdict.finding) for each in found.tasks.values()]
    ['over-confident']
    """
    if reading is not None and not isinstance(reading, Mapping):
        raise TypeError(f"reading must be options of read_logs by name, got {shown(reading)}; e.g. {{'scale': 100}}")
    logs = read_logs(paths, **(reading or {}))
    others = {} if baseline is None else {log.task: log for log in read_logs(baseline, **(reading or {}))}
    if missing := [log.task for log in logs if baseline is not None and log.task not in others]:
        raise ValueError(f"baseline must have the tasks {', '.join(missing[:5])}, got {', '.join(others)}; run them")
    return LogAudit({log.task: _audited(log, others.get(log.task), len(logs), options) for log in logs})


def _audited(log: TaskLog, other: TaskLog | None, tasks: int, options: dict[str, Any]) -> Audit:
    from focalcal.auditing.auditor import audit

    few: dict[str, Any] = {"trained_with": None, "calibrate": "auto" if tasks <= _FEW_TASKS else _simplest(log)}
    if other is not None:
        if other.predictions.top1 != log.predictions.top1:
            raise ValueError(
                f"baseline must log task {log.task!r} in the same way, got options in one log and confidences in the "
                "other; run both with the same settings"
            )
        few["baseline"] = same_questions(log.predictions, other.predictions, log.task)
    about = {"data": log.task} | dict(options.get("about") or {})
    made = audit(log.predictions, **(few | options | {"about": about}))
    return replace(made, notes=(*log.notes, *made.notes))


def _simplest(log: TaskLog) -> str:
    return "platt" if log.predictions.top1 else "temperature"


def _gain(audit: Audit) -> float:
    fixes = audit.fixes
    if fixes is None:
        return math.nan
    if fixes.recommended is None:
        return 0.0
    return fixes.raw_nll - next(fix.nll for fix in fixes.tried if fix.name == fixes.recommended)
