"""The page of a study: the result in a sentence and two charts, then what it rests on; one HTML file, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from focalcal.analysis.evidence import Evidence
from focalcal.analysis.findings import study_families
from focalcal.analysis.surface import Point, Surface, surface
from focalcal.reports.objectives import DARK, LIGHT, short_name
from focalcal.reports.page import Page, render
from focalcal.reports.study_page_data import page_data
from focalcal.reports.study_sections import StudyContent, sections
from focalcal.reports.study_summary import summary
from focalcal.reports.study_tables.leaders import leaders_table
from focalcal.reports.study_tables.runs import runs_table

if TYPE_CHECKING:
    from focalcal.analysis.paper_claims import JudgedClaim
    from focalcal.reports.study_tables import CaptionedTable

SCRIPTS = tuple(
    f"study/{name}.js"
    for name in (
        *("model", "lanes", "result", "forest", "panels", "reliability", "temperature", "training", "surfaces"),
        *("posterior", "runs", "page"),
    )
)
_WITH_SURFACES = ("fcl", "multilabel_fcl")
_SURFACES = ("ece", "adaptive_ece", "nll", "brier", "error")


def study_page(
    evidence: Evidence,
    *,
    tables: Mapping[str, CaptionedTable] | None = None,
    operating_points: Mapping[str, Point] | None = None,
    operating_curves: Mapping[str, Sequence[Point]] | None = None,
    claims: Sequence[JudgedClaim] = (),
    files: Sequence[str] = (),
) -> str:
    """The page as HTML; equal arguments give the same text.

    evidence          with `details`, or there are no intervals over rows, single classes and known posteriors
    tables            by a name that can be a file's, each with `title`, `table` and `note`; all in them is escaped
    operating_points  (gamma, lam) by setting, to mark on its surfaces
    operating_curves  by setting, what `analysis.operating_curve` gives, to draw on its surfaces
    claims            of the paper, judged by these runs; none are shown if there are none
    files             what is written beside the page, by name, so that a later report knows what this one wrote
    """
    given, said = dict(tables or {}), summary(evidence, name=short_name)
    surfaces = _surfaces(evidence, operating_points or {}, operating_curves or {})
    numbers = page_data(evidence, study_families(evidence), surfaces)
    own = {"leaders": leaders_table(said.leaders, short_name), "runs": runs_table(evidence)}
    content = StudyContent(
        evidence=evidence,
        summary=said,
        tables=given,
        leaders=own["leaders"],
        runs=own["runs"],
        surfaces=surfaces,
        claims=claims,
        every_epochs=numbers["every_epochs"],
    )
    return Page(
        title=evidence.title,
        lead=render("study/lead.html.j2", ran=said.ran),
        sections=sections(content),
        data=numbers,
        tables={name: one.table for name, one in given.items()}
        | {name: table for name, table in own.items() if table is not None},
        scripts=SCRIPTS,
        styles=(palette_css(), "study/study.css"),
        meta={"focalcal-files": " ".join(files)},
    ).html()


def palette_css() -> str:
    """The objectives' colours as custom properties, --o0 and so on, on light and on dark ground."""
    rules = {":root": LIGHT, ':root[data-colours="dark"]': DARK}
    return "".join(
        f"{selector} {{ {' '.join(f'--o{place}: {colour};' for place, colour in enumerate(colours))} }}\n"
        for selector, colours in rules.items()
    )


def _surfaces(evidence: Evidence, points: Mapping[str, Point], curves: Mapping[str, Sequence[Point]]) -> list[Surface]:
    made = [
        surface(
            evidence,
            setting,
            metric,
            objective=objective,
            operating_point=points.get(setting),
            curve=curves.get(setting, ()),
        )
        for setting in evidence.settings
        for objective in _WITH_SURFACES
        for metric in _SURFACES
    ]
    return [found for found in made if found is not None and np.isfinite(found.values).any()]
