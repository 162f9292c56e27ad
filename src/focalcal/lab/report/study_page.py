"""The page of a study: the result in a sentence and two charts, then what it rests on; one HTML file, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.lab.evidence.comparisons import Family
from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.findings import study_families
from focalcal.lab.evidence.surface import Point, Surface, surface
from focalcal.lab.objectives import short_name
from focalcal.lab.report.headline_text import around_settings, result_sentence
from focalcal.lab.report.study_page_data import MEANINGS, METRICS, TERMS, page_data
from focalcal.lab.report.study_summary import note_text, summary
from focalcal.lab.report.study_tables.flags import MARGIN, RULE
from focalcal.lab.report.study_tables.runs import leaders_table, runs_table
from focalcal.pages.page import Page, Section, html_table, render
from focalcal.pages.palette import palette_css

if TYPE_CHECKING:
    from markupsafe import Markup

    from focalcal.lab.report.section import ReportSection
    from focalcal.pages.tables import CaptionedTable

SCRIPTS = tuple(
    f"focalcal.lab.report/study/{name}.js"
    for name in (
        *("model", "lanes", "result", "forest", "panels", "reliability", "temperature", "training", "surfaces"),
        *("posterior", "runs", "page"),
    )
)
LIVE_SCRIPT = "focalcal.lab.report/live/live.js"
_HEADINGS = {
    "result": "Result",
    "differences": "Differences",
    "reliability": "Reliability",
    "temperature": "Temperature",
    "training": "Training",
    "surfaces": "Surface",
    "posterior": "Known posterior",
    "section": "",  # that of other code, which has its own heading
    "limits": "In words",
    "tables": "Tables",
    "runs": "Runs",
}
_FOLDED = {  # tables that stand below a chart, by section
    "differences": ("verdicts", "comparisons"),
    "temperature": ("temperature", "temperature_distance"),
}
_OPTIONAL = ("surfaces", "posterior", "section")  # left out if there is nothing to show in them
_LEADERS = "Mean ± standard deviation over seeds, test split; less is better. A lead is not a proof."
_RUNS = "Test split, not scaled. T is the fitted temperature."
_SURFACES = ("ece", "adaptive_ece", "nll", "brier", "error")


def study_page(
    evidence: Evidence,
    *,
    tables: Mapping[str, CaptionedTable] | None = None,
    operating_points: Mapping[str, Point] | None = None,
    operating_curves: Mapping[str, Sequence[Point]] | None = None,
    section: ReportSection | None = None,
    files: Sequence[str] = (),
    live: str = "",
) -> str:
    """The page as HTML; equal arguments give the same text.

    evidence          with `details`, or there are no intervals over rows, single classes and known posteriors
    tables            by a name that can be a file's, each with `title`, `table` and `note`; all in them is escaped
    operating_points  (gamma, lam) by setting, to mark on its surfaces
    operating_curves  by setting, what `analysis.operating_curve` gives, to draw on its surfaces
    section           of other code, whose tables are among `tables`
    files             what is written beside the page, by name, so that a later report knows what this one wrote
    live              the version that `reports.live_report` gives: the page then asks its server how far it is
    """
    given, families = dict(tables or {}), study_families(evidence)
    surfaces = _surfaces(evidence, operating_points or {}, operating_curves or {})
    numbers = page_data(evidence, families, surfaces)
    sentences = summary(evidence, name=short_name)
    choices = evidence.settings if len(evidence.settings) > 1 else ()
    sentence = around_settings(result_sentence(evidence, sentences), choices)
    numbers["first"] = next((text for text, is_setting in sentence if is_setting), None)
    leading, listed = leaders_table(sentences.leaders, short_name), runs_table(evidence)
    shown = partial(html_table, names={name: short_name(name) for name in evidence.objectives}, meanings=MEANINGS)
    links = [f"run-{run.key}" for run in evidence.runs]
    context = {
        "has": _available(evidence, families, surfaces) | {"section": section is not None},
        "terms": METRICS | TERMS,
        "sentence": sentence,
        "summary": sentences,
        "every_epochs": numbers["every_epochs"],
        "surfaces": surfaces,
        "margin": MARGIN,
        "rule": RULE,
        "leaders": leading and shown("leaders", "Which objective has the lowest mean", leading, _LEADERS),
        "runs_table": listed and shown("runs", "Every run", listed, _RUNS, links=links),
        "runs": evidence.runs,
        "note_text": note_text,
    }
    html = {name: shown(name, table.title, table.table, table.note) for name, table in given.items()}
    own = {"leaders": leading, "runs": listed}
    return Page(
        title=evidence.title,
        lead=render("focalcal.lab.report/study/lead.html.j2", ran=sentences.ran, live=bool(live)),
        sections=_sections(html, context, section),
        data=numbers | ({"live": live} if live else {}),
        tables={name: table.table for name, table in given.items()}
        | {name: table for name, table in own.items() if table is not None},
        scripts=(*SCRIPTS, *((LIVE_SCRIPT,) if live else ())),
        asks=bool(live),
        styles=(
            palette_css(),
            f"{__package__}/study/study.css",
            *(section.styles if section is not None else ()),
            *((f"{__package__}/live/live.css",) if live else ()),
        ),
        meta={"focalcal-files": " ".join(files)},
    ).html()


def _sections(tables: Mapping[str, Markup], context: Mapping[str, Any], other: ReportSection | None) -> list[Section]:
    """In reading order, each from its template; those that are left out have nothing to show."""
    own = other.tables if other is not None else {}
    apart = {name for names in (*_FOLDED.values(), own) for name in names}
    others = [table for name, table in tables.items() if name not in apart]
    sections = []
    for name, heading in _HEADINGS.items():
        if name == "section" and other is not None:
            sections.append(Section(name, other.heading, other.body([tables[table] for table in own])))
        elif name not in _OPTIONAL or context["has"][name]:
            folded = [tables[table] for table in _FOLDED.get(name, ()) if table in tables]
            body = render(f"focalcal.lab.report/study/{name}.html.j2", folded=folded, tables=others, **context)
            sections.append(Section(name, heading, body, quiet=name == "result"))
    return sections


def _available(evidence: Evidence, families: Sequence[Family], surfaces: Sequence[Surface]) -> dict[str, bool]:
    """What there is something to draw of."""
    runs = evidence.runs
    return {
        "runs": bool(runs),
        "differences": any(family.comparisons for family in families),
        "reliability": any(run.reliability is not None for run in runs),
        "temperature": any(run.scaled is not None for run in runs),
        "training": any(run.epochs for run in runs),
        "surfaces": bool(surfaces),
        "posterior": any(run.details is not None and run.details.posterior is not None for run in runs),
    }


def _surfaces(evidence: Evidence, points: Mapping[str, Point], curves: Mapping[str, Sequence[Point]]) -> list[Surface]:
    made = [
        surface(
            evidence,
            setting,
            metric,
            objective=objective,
            operating_point=points.get(evidence.place(setting)),
            curve=curves.get(setting, ()),
        )
        for setting in evidence.settings
        for objective in evidence.losses
        for metric in _SURFACES
    ]
    return [grid for grid in made if grid is not None and np.isfinite(grid.values).any()]
