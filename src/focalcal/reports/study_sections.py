"""The sections of a study's page, each from its template; those that there is nothing to show in are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from focalcal.analysis.evidence import Evidence
from focalcal.analysis.findings import study_families
from focalcal.analysis.headline import headline
from focalcal.analysis.paper_queries import Answer
from focalcal.analysis.surface import Surface
from focalcal.reports.definitions import MEANINGS, METRICS, TERMS
from focalcal.reports.gap_text import note_text
from focalcal.reports.headline_text import headline_sentence
from focalcal.reports.objectives import short_name
from focalcal.reports.page import Section, html_table, render
from focalcal.reports.study_summary import Summary
from focalcal.reports.study_tables.flags import MARGIN, RULE
from focalcal.reports.study_tables.leaders import leading_objectives
from focalcal.reports.tables import Table

if TYPE_CHECKING:
    from focalcal.analysis.paper_claims import JudgedClaim
    from focalcal.reports.study_tables import CaptionedTable

_HEADINGS = {
    "result": "Result",
    "differences": "Differences",
    "reliability": "Reliability",
    "temperature": "Temperature",
    "training": "Training",
    "surfaces": "Surface",
    "posterior": "Known posterior",
    "paper": "Against the paper",
    "limits": "In words",
    "tables": "Tables",
    "runs": "Runs",
}
_LEADING = "ece"  # the metric of the first sentence where nothing is compared
_FOLDED = {  # tables that stand below a chart, by section
    "differences": ("verdicts", "comparisons"),
    "temperature": ("temperature", "temperature_distance"),
    "paper": ("against_paper", "against_paper_text"),
}


@dataclass(frozen=True, eq=False)
class StudyContent:
    """What the sections are made of."""

    evidence: Evidence
    summary: Summary
    tables: Mapping[str, CaptionedTable]
    leaders: Table | None
    runs: Table | None
    surfaces: Sequence[Surface]
    claims: Sequence[JudgedClaim]
    every_epochs: int


def sections(content: StudyContent) -> list[Section]:
    """In reading order."""
    names = {objective: short_name(objective) for objective in content.evidence.objectives}
    shown = {
        name: html_table(name, one.title, one.table, one.note, names=names, meanings=MEANINGS)
        for name, one in content.tables.items()
    }
    folded = {name: [shown[table] for table in tables if table in shown] for name, tables in _FOLDED.items()}
    apart = {table for tables in _FOLDED.values() for table in tables}
    context: dict[str, Any] = {
        "terms": METRICS | TERMS,
        "has": _available(content),
        "tables": [table for name, table in shown.items() if name not in apart],
        "sentence": result_sentence(content),
        "summary": content.summary,
        "every_epochs": content.every_epochs,
        "surfaces": content.surfaces,
        "margin": MARGIN,
        "rule": RULE,
        "claims": [_claim(judged) for judged in content.claims],
        "leaders": _leaders(content.leaders, names),
        "runs_table": _runs(content, names),
        "runs": [
            {"key": run.key, "name": run.name, "notes": [note_text(note) for note in run.notes]}
            for run in content.evidence.runs
        ],
    }
    return [
        Section(
            name,
            heading,
            render(f"study/{name}.html.j2", folded=folded.get(name, []), **context),
            quiet=name == "result",
        )
        for name, heading in _HEADINGS.items()
        if name not in ("surfaces", "posterior", "paper") or context["has"][name]
    ]


def result_sentence(content: StudyContent) -> str:
    """The candidate against its baseline; without one, who leads."""
    found = headline(content.evidence)
    if found is not None:
        return headline_sentence(found)
    for leader in content.summary.leaders:
        if leader.metric == _LEADING:
            verb = "has" if len(leader.objectives) == 1 else "share"
            who, size = leading_objectives(leader, short_name), f"{leader.mean.printed} points"
            return f"{who} {verb} the lowest ECE on {leader.setting}, {size}; no objective was chosen to compare with."
    return content.summary.best[0] if content.summary.best else content.summary.ran


def _available(content: StudyContent) -> dict[str, bool]:
    runs = content.evidence.runs
    return {
        "runs": bool(runs),
        "differences": any(family.comparisons for family in study_families(content.evidence)),
        "reliability": any(run.reliability is not None for run in runs),
        "temperature": any(run.scaled is not None for run in runs),
        "training": any(run.epochs for run in runs),
        "surfaces": bool(content.surfaces),
        "posterior": any(run.details is not None and run.details.posterior is not None for run in runs),
        "paper": bool(content.claims) or any(name in content.tables for name in _FOLDED["paper"]),
    }


def _leaders(table: Table | None, names: Mapping[str, str]) -> Any:
    note = "Mean ± standard deviation over seeds, test split; less is better. A lead is not a proof."
    return table and html_table(
        "leaders", "Which objective has the lowest mean", table, note, names=names, meanings=MEANINGS
    )


def _runs(content: StudyContent, names: Mapping[str, str]) -> Any:
    links = [f"run-{run.key}" for run in content.evidence.runs]
    note = "Test split, not scaled. T is the fitted temperature."
    return content.runs and html_table(
        "runs", "Every run", content.runs, note, links=links, names=names, meanings=MEANINGS
    )


def _claim(judged: JudgedClaim) -> dict[str, str]:
    numbers = [] if judged.judgement is None else judged.judgement.numbers
    return {
        "says": judged.claim.says,
        "section": judged.claim.section,
        "study": judged.claim.study,
        "verdict": judged.verdict,
        "ours": "; ".join(f"{what}: {_answer(answer)}" for what, answer in numbers),
    }


def _answer(answer: Answer) -> str:
    return f"{answer.value:g}" if answer.of is None else f"{answer.value:g} of {answer.of}"
