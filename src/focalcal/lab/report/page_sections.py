"""The page of a study: the result in a sentence and two charts, then what it rests on; one HTML file, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures import View, study_views
from focalcal.lab.report.headline_text import around_settings, result_sentence
from focalcal.lab.report.page_numbers import MEANINGS, METRICS, TERMS, page_data
from focalcal.lab.report.sentences import study_sentences
from focalcal.lab.report.study_tables.flags import MARGIN, RULE
from focalcal.lab.report.study_tables.run_lists import leaders_table, runs_table
from focalcal.pages.page import Page, Section, html_table, render
from focalcal.pages.palette import palette_css

if TYPE_CHECKING:
    from markupsafe import Markup

    from focalcal.lab.report.own_section import ReportSection
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


def study_page(
    evidence: Evidence,
    *,
    views: Sequence[View] | None = None,
    tables: Mapping[str, CaptionedTable] | None = None,
    section: ReportSection | None = None,
    files: Sequence[str] = (),
    live: str = "",
) -> str:
    """The page as HTML; equal arguments give the same text.

    evidence          with `details`, or there are no intervals over rows, single classes and known posteriors
    views             those of `study_views`, which are made without points and curves unless they are given
    tables            by a name that can be a file's, each with `title`, `table` and `note`; all in them is escaped
    section           of other code, whose tables are among `tables`
    files             what is written beside the page, by name, so that a later report knows what this one wrote
    live              the version that `reports.live_report` gives: the page then asks its server how far it is
    """
    given, shown_views = dict(tables or {}), study_views(evidence) if views is None else views
    numbers = page_data(evidence, shown_views)
    sentences = study_sentences(evidence, name=short_name)
    choices = evidence.settings if len(evidence.settings) > 1 else ()
    sentence = around_settings(result_sentence(evidence, sentences), choices)
    numbers["first"] = next((text for text, is_setting in sentence if is_setting), None)
    leading, listed = leaders_table(sentences.leaders, short_name), runs_table(evidence)
    shown = partial(html_table, names={name: short_name(name) for name in evidence.objectives}, meanings=MEANINGS)
    links = [f"run-{run.key}" for run in evidence.runs]
    context = {
        "has": _available(evidence, shown_views) | {"section": section is not None},
        "terms": METRICS | TERMS,
        "sentence": sentence,
        "summary": sentences,
        "every_epochs": numbers["every_epochs"],
        "marked": any(view.facts.get("operating_point") for view in shown_views),
        "margin": MARGIN,
        "rule": RULE,
        "leaders": leading and shown("leaders", "Which objective has the lowest mean", leading, _LEADERS),
        "runs_table": listed and shown("runs", "Every run", listed, _RUNS, links=links),
        "runs": evidence.runs,
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


def _available(evidence: Evidence, views: Sequence[View]) -> dict[str, bool]:
    """What there is something to draw of."""
    kinds = {view.kind for view in views}
    return {
        "runs": bool(evidence.runs),
        "differences": "differences" in kinds,
        "reliability": "reliability" in kinds,
        "temperature": any(run.scaled is not None for run in evidence.runs),
        "training": "training" in kinds,
        "surfaces": "surface" in kinds,
        "posterior": "posterior" in kinds,
    }
