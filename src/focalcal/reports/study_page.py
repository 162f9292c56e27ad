"""The page of a study: one HTML file that needs no network, with tables to sort and charts to choose from."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal import __version__
from focalcal.analysis.contenders import is_constant_guess
from focalcal.analysis.evidence import Evidence
from focalcal.analysis.leaders import HEADLINE
from focalcal.analysis.metric_names import SINGLE_LABEL, shown, title, titled
from focalcal.analysis.numbers import Rounded
from focalcal.analysis.origins import origins
from focalcal.analysis.surface import Point, Surface, surface
from focalcal.core.extras import required
from focalcal.reports.figures.surface import surface_note, surface_title
from focalcal.reports.gap_text import note_text
from focalcal.reports.study_page_data import LEGEND_AT_MOST, inert_json, number_or_name, page_data
from focalcal.reports.study_summary import summary
from focalcal.reports.study_tables.flags import MARGIN, RULE
from focalcal.reports.study_tables.leaders import leaders_table
from focalcal.reports.tables import Table
from focalcal.reports.theory_page import template

if TYPE_CHECKING:
    from focalcal.reports.study_tables import CaptionedTable

SCRIPTS = tuple(
    f"study.{name}.js" for name in ("sorting", "downloads", "charts", "reliability", "surfaces", "curves", "page")
)
STYLES = ("study.css", "study.print.css")
_WITH_SURFACES = ("fcl", "multilabel_fcl")
_SURFACES = ("ece", "adaptive_ece", "nll", "brier", "error")
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])|(?<=\de)-(?=\d)")


def study_page(
    evidence: Evidence,
    *,
    tables: Mapping[str, CaptionedTable] | None = None,
    operating_points: Mapping[str, Point] | None = None,
    files: Sequence[str] = (),
) -> str:
    """The page as HTML; equal arguments give the same text.

    tables            by a name that can be a file's, each with `title`, `table` and `note`; all in them is escaped
    operating_points  (gamma, lam) by setting, to mark on its surfaces
    files             what is written beside the page, by name, so that a later report knows what this one wrote
    """
    jinja = required("jinja2", purpose="The study's page")
    markup = required("markupsafe", purpose="The study's page").Markup
    plotly = required("plotly.offline", purpose="The study's page")
    environment = jinja.Environment(
        autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, loader=jinja.FunctionLoader(template)
    )
    environment.filters |= {
        "typeset": typeset,
        "note_text": note_text,
        "fact": fact_text,
        "exact": lambda *cell: markup(_exact(*cell)),
    }
    found, given, every = summary(evidence), dict(tables or {}), runs_table(evidence)
    leading, surfaces = leaders_table(found.leaders), _surfaces(evidence, operating_points or {})
    numbers = page_data(evidence)
    csv = {name: one.table.csv() for name, one in given.items()}
    csv |= {name: table.csv() for name, table in (("leaders", leading), ("runs", every)) if table is not None}
    page: str = environment.get_template("study.html.j2").render(
        title=evidence.title,
        version=__version__,
        files=files,
        sections=_sections(surfaces=bool(surfaces)),
        styles=[markup(template(name)) for name in STYLES],
        theme=markup(template("study.theme.js")),
        scripts=[markup(template(name)) for name in SCRIPTS],
        plotly=markup(_in_a_script(plotly.get_plotlyjs())),
        data=markup(inert_json({**numbers, "surfaces": surfaces, "tables": csv})),
        summary=found,
        rule=RULE,
        margin=MARGIN,
        leaders=leading,
        tables=given,
        folded=_folded(evidence, given),
        has={
            "reliability": any(run.reliability is not None for run in evidence.runs),
            "epochs": any(run.epochs for run in evidence.runs),
        },
        surfaces=surfaces,
        many_objectives=len(evidence.objectives) > LEGEND_AT_MOST,
        every_epochs=numbers["every_epochs"],
        runs=evidence.runs,
        links=[f"run-{run.key}" for run in evidence.runs],
        runs_table=every,
        origins=origins(evidence.runs),
    )
    return page.strip() + "\n"


def runs_table(evidence: Evidence) -> Table | None:
    """One row per run; None without runs."""
    if not evidence.runs:
        return None
    tests = [run.metrics.get("test", {}) for run in evidence.runs]
    columns: dict[str, list[Any]] = {
        "run": [run.key[:12] for run in evidence.runs],
        "setting": [run.setting for run in evidence.runs],
        "objective": [run.objective for run in evidence.runs],
        "seed": [run.seed for run in evidence.runs],
    }
    for metric in (*HEADLINE, "confidence_gap"):
        if any(metric in test for test in tests):
            columns[titled(metric)] = [shown(metric, test.get(metric, math.nan)) for test in tests]
    if any(run.scaled is not None and run.scaled.at_bound for run in evidence.runs):
        columns["no finite T"] = [None if run.scaled is None else run.scaled.at_bound for run in evidence.runs]
    if any(run.scaled is not None for run in evidence.runs):
        columns["T"] = [None if run.scaled is None else Rounded(run.scaled.temperature, ".3f") for run in evidence.runs]
    useless = {run.key for run in evidence.runs if is_constant_guess(run)}
    if useless:
        columns["flag"] = ["constant guess" if run.key in useless else None for run in evidence.runs]
    columns["epochs"] = [run.record.get("epochs") for run in evidence.runs]
    columns["seconds"] = [float(run.record.get("seconds", math.nan)) for run in evidence.runs]
    return Table(columns)


def typeset(text: Any) -> str:
    """The minus sign, at which no line breaks, and the signs that plain text does without.

    >>> typeset("-0.5, 1e-3 and 2026-11-16: p >= 0.25")
    '−0.5, 1e−3 and 2026-11-16: p ≥ 0.25'
    """
    signs = {">=": "\N{GREATER-THAN OR EQUAL TO}", "<=": "\N{LESS-THAN OR EQUAL TO}"}
    shown = _MINUS.sub("\N{MINUS SIGN}", str(text))
    return re.sub("[<>]=", lambda found: signs[found[0]], shown)


def fact_text(value: Any) -> str:
    """A fact of a spec or provenance as it is shown."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(fact_text, value)) or "none"
    return str(value)


def _sections(*, surfaces: bool) -> dict[str, str]:
    named = {"summary": "Summary", "tables": "Tables", "reliability": "Reliability", "surfaces": "Surfaces"}
    named |= {"curves": "Training", "runs": "Runs"}
    return {name: text for name, text in named.items() if surfaces or name != "surfaces"}


def _folded(evidence: Evidence, tables: Mapping[str, CaptionedTable]) -> list[str]:
    """The tables of one metric each, if the overview has all their numbers: in one setting they are one row long."""
    one_setting = len(evidence.settings) == 1 and "overview" in tables
    return [name for name in tables if name in (*SINGLE_LABEL, "confidence_gap")] if one_setting else []


def _surfaces(evidence: Evidence, points: Mapping[str, Point]) -> list[dict[str, Any]]:
    found = []
    for setting in evidence.settings:
        for objective in _WITH_SURFACES:
            for metric in _SURFACES:
                point = points.get(setting)
                one = surface(evidence, setting, metric, objective=objective, operating_point=point)
                if one is not None and np.isfinite(one.values).any():
                    found.append({"setting": setting, "label": title(metric), **_plain_surface(one)})
    return found


def _plain_surface(one: Surface) -> dict[str, Any]:
    names = ("unit", "gammas", "lams", "minimum", "operating_point")
    return {name: getattr(one, name) for name in names} | {
        "title": surface_title(one),
        "note": surface_note(one, missing="Grey"),
        "values": one.values.tolist(),
        "seeds": one.seeds.tolist(),
    }


def _exact(table: Table, row: int, column: int) -> str:
    """An attribute with the number itself, which the shown digits are too few to sort by."""
    value = list(table.columns.values())[column][row]
    if not table.numeric[column] or value is None or math.isnan(value):
        return ""
    return f' data-value="{number_or_name(float(value))}"'


def _in_a_script(text: str) -> str:
    """JavaScript that cannot end the script element it stands in: `<\\/script` means the same inside its strings."""
    return re.sub(r"<(?=/script)", r"<\\", text, flags=re.IGNORECASE)
