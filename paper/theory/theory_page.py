"""The interactive page of the theory: one HTML file that needs no network and solves in the browser."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from focalcal.pages.page import Page, Section, html_table, render
from focalcal.pages.style import rendered
from paper.theory.figure import theory_figure
from paper.theory.theory_findings import findings
from paper.theory.theory_tables import (
    STANDARD_ERROR,
    cases_note,
    cases_table,
    injection_table,
    paper_note,
    paper_table,
    slopes_table,
)
from paper.theory.worked_examples import example_posteriors, reference_solutions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focalcal.pages.tables import Table
    from paper.theory.theory_study import TheoryStudy

TITLE = "What Focal Calibration Loss does to a posterior"
_PARTS = ("solver", "quantities", "points", "simplex", "bars", "curve", "page")
SCRIPTS = tuple(f"{__package__}/{name}.js" for name in _PARTS)
_SLOPES = "Of log Cal2^2 on log lam, over all lam and from the lam that the heading names."
_INJECTION = (
    "Exact solutions at K = 100, spoilt at random by the residual of 3e-6 that the paper blames for its shallow slope, "
    "or by an error in q of that size: the exact slope, and the range of slopes over the draws."
)


def theory_page(study: TheoryStudy, figure: Figure | None = None) -> str:
    """The page as HTML: the explorer, the findings, the figure (drawn if it is not given) and the tables."""
    presets = [{"name": name, "eta": eta} for name, eta in example_posteriors().items()]
    picture = base64.b64encode(rendered(figure or theory_figure(study), "svg")).decode()
    parts: dict[str, tuple[str, str, Table, str]] = {
        "paper": ("Paper", "The paper's figures beside ours", paper_table(study), paper_note(study)),
        "slopes": (
            "Slopes",
            "Slopes of the exact squared calibration error",
            slopes_table(study),
            f"{_SLOPES} {STANDARD_ERROR}",
        ),
        "cases": ("Cases", f"The {len(study.cases['gamma'])} cases", cases_table(study), cases_note(study)),
        "injection": (
            "Solver errors",
            "What a solver that stops early would do to the slopes",
            injection_table(study),
            _INJECTION,
        ),
    }
    sections = [
        Section("explore", "Explore", render(f"{__package__}/explore.html.j2", presets=presets), quiet=True),
        Section("study", "The study", render(f"{__package__}/study.html.j2", findings=findings(study), figure=picture)),
    ]
    sections += [
        Section(name, heading, html_table(name, heading, table, note, quiet=True), link=link)
        for name, (link, heading, table, note) in parts.items()
    ]
    return Page(
        title=TITLE,
        sections=sections,
        data={"presets": presets, "references": reference_solutions()},
        tables={name: table for name, (_, _, table, _) in parts.items()},
        scripts=SCRIPTS,
        styles=(f"{__package__}/theory.css",),
        lead=render(f"{__package__}/lead.html.j2"),
    ).html()
