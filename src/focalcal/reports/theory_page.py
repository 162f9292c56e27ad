"""The interactive page of the theory: one HTML file that needs no network and solves in the browser."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from focalcal.analysis.reference_solutions import example_posteriors, reference_solutions
from focalcal.core.extras import required
from focalcal.reports.figures.style import rendered
from focalcal.reports.figures.theory import theory_figure
from focalcal.reports.theory_findings import findings
from focalcal.reports.theory_tables import (
    STANDARD_ERROR,
    cases_note,
    cases_table,
    injection_table,
    paper_note,
    paper_table,
    slopes_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focalcal.theory.study import Study

SCRIPTS = ("solver.js", "quantities.js", "drawing.js", "simplex.js", "bars.js", "curve.js", "page.js")
_SIGNS = {
    r"(?<![\w.])-(?=[\d.])|(?<=\de)-(?=\d)|(?<= )-(?= )": "\N{MINUS SIGN}",
    r"(?<=\d) x (?=\d)": " \N{MULTIPLICATION SIGN} ",
    r">=": "\N{GREATER-THAN OR EQUAL TO}",
    r"<=": "\N{LESS-THAN OR EQUAL TO}",
    r"Cal2\^2": "Cal\N{SUBSCRIPT TWO}\N{SUPERSCRIPT TWO}",
    r"\|_inf": "|\N{INFINITY}",
}


def theory_page(study: Study, figure: Figure | None = None) -> str:
    """The page as HTML: the explorer, the findings, the figure (drawn if it is not given) and the tables."""
    jinja = required("jinja2", purpose="The theory page")
    markup = required("markupsafe", purpose="The theory page").Markup
    environment = jinja.Environment(autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True)
    environment.filters["typeset"] = _typeset
    presets = [{"name": name, "eta": eta} for name, eta in example_posteriors().items()]
    page: str = environment.from_string(template("theory.html.j2")).render(
        style=markup(template("theory.css")),
        scripts=[markup(template(name)) for name in SCRIPTS],
        data=markup(_inert_json({"presets": presets, "references": [asdict(each) for each in reference_solutions()]})),
        presets=presets,
        findings=findings(study),
        figure=base64.b64encode(rendered(figure or theory_figure(study), "svg")).decode(),
        paper=paper_table(study),
        paper_note=paper_note(study),
        slopes=slopes_table(study),
        standard_error=STANDARD_ERROR,
        cases=cases_table(study),
        cases_note=cases_note(study),
        injection=injection_table(study),
    )
    return page.strip() + "\n"


@cache
def template(name: str) -> str:
    """The text of a file of the page."""
    return files("focalcal.reports").joinpath("templates", name).read_text(encoding="utf-8")


def _typeset(text: str) -> str:
    """The signs that plain text does without; at a minus sign before a digit no line breaks.

    >>> _typeset("|q* - eta|_inf over lam >= 16: -0.9, of 36 x 40 with Cal2^2 <= 3e-6")
    '|q* − eta|∞ over lam ≥ 16: −0.9, of 36 × 40 with Cal₂² ≤ 3e−6'
    """
    for plain, sign in _SIGNS.items():
        text = re.sub(plain, sign, text)
    return text


def _inert_json(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")
