"""The page of an audit: one HTML file that needs no network."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.auditing.tables import (
    change_table,
    fix_table,
    metric_table,
    mistake_table,
    part_table,
    threshold_table,
)
from focalcal.core.atomic import write_atomically
from focalcal.pages.page import Page, Section, html_table, render

if TYPE_CHECKING:
    from focalcal.auditing.auditor import Audit
    from focalcal.auditing.parts import Part
    from focalcal.pages.tables import Table

SCRIPTS = (
    "kit/intervals.js",
    f"{__package__}/reliability.js",
    f"{__package__}/coverage.js",
    f"{__package__}/page.js",
)
_CORRECTED = "Intervals hold for all of them at once, at 95 %. Worst first."


def audit_page(audit: Audit, title: str = "Can these probabilities be trusted?") -> str:
    """The page as HTML."""
    tables: dict[str, Table] = {"metrics": metric_table(audit)}
    classes = "the confidence of each prediction alone" if audit.n_classes is None else f"{audit.n_classes} classes"
    shape = f"{audit.rows:,} rows, {classes}."
    sections = [
        Section(
            "metrics",
            "Metrics",
            _table("metrics", "Metrics", tables["metrics"], shape, quiet=True),
        ),
        Section("reliability", "Reliability", render(f"{__package__}/reliability.html.j2")),
    ]
    for name, heading, parts in (("groups", "Groups", audit.groups), ("classes", "Predicted classes", audit.classes)):
        if parts:
            tables[name] = part_table(parts)
            body = _table(name, heading, tables[name], quiet=True)
            sections.append(
                Section(
                    name,
                    heading,
                    render(f"{__package__}/parts.html.j2", name=name, heading=heading, note=_CORRECTED, table=body),
                )
            )
    tables["thresholds"], tables["mistakes"] = threshold_table(audit), mistake_table(audit)
    sections.append(
        Section(
            "confidence",
            "What a threshold buys",
            render(
                f"{__package__}/confidence.html.j2",
                thresholds=_table("thresholds", "Thresholds on the confidence", tables["thresholds"]),
                mistakes=_table("mistakes", "The most confident mistakes", tables["mistakes"])
                if audit.mistakes
                else "",
            ),
        )
    )
    if audit.fixes is not None:
        tables["fixes"] = fix_table(audit.fixes)
        sections.append(Section("fixes", "What would fix it", _fixes(audit, tables["fixes"])))
    if audit.changes:
        tables["baseline"] = change_table(audit)
        note = "New minus baseline, paired by row; 95 % intervals."
        body = _table("baseline", "Against the baseline", tables["baseline"], note, quiet=True)
        sections.append(Section("baseline", "Against the baseline", body))
    if audit.notes:
        sections.append(Section("notes", "Notes", " ".join(audit.notes)))
    return Page(
        title=title,
        lead=render(f"{__package__}/lead.html.j2", sentence=audit.verdict.sentence),
        sections=sections,
        data=_data(audit),
        tables=tables,
        scripts=SCRIPTS,
        styles=("kit/marks.css", f"{__package__}/audit.css"),
    ).html()


def write_audit_page(audit: Audit, path: str | os.PathLike[str]) -> None:
    """Write the page."""
    write_atomically(Path(path), audit_page(audit).encode())


def _table(*parts: Any, quiet: bool = False) -> Any:
    """Every row is a fact of its own: a column in which they happen to agree stays."""
    return html_table(*parts, quiet=quiet, every_column=True)


def _fixes(audit: Audit, table: Table) -> Any:
    assert audit.fixes is not None
    names: dict[str, list[str]] = {}
    for name, why in audit.fixes.left_out.items():
        names.setdefault(why, []).append(name)
    note = f"{audit.fixes.rows:,} rows in five folds, each judged by what was fitted on the other four."
    if names:
        reasons = [f"{', '.join(each)} ({why})" for why, each in names.items()]
        note += f" Not tried: {'; '.join(reasons)}."
    return render(
        f"{__package__}/fixes.html.j2",
        sentence=audit.fixes.sentence,
        tried=any(fix.change is not None for fix in audit.fixes.tried),
        table=_table("fixes", "Calibrators", table, note),
        next=None if audit.operating_point is None else audit.operating_point.sentence,
    )


def _data(audit: Audit) -> dict[str, Any]:
    bins, curve = audit.reliability, audit.risk_coverage
    lowest, highest = bins.chance
    columns = {
        "lower": bins.lower, "upper": bins.upper, "rows": bins.count, "confidence": bins.confidence,
        "accuracy": bins.accuracy, "low": bins.low, "high": bins.high, "lowest": lowest, "highest": highest,
    }  # fmt: skip
    risk = {"coverage": curve.coverage, "risk": curve.risk, "low": curve.low, "high": curve.high}
    fixes = () if audit.fixes is None else audit.fixes.tried
    return {
        "reliability": _records(columns),
        "coverage": _records(risk),
        "classes": _lanes(audit.classes),
        "groups": _lanes(audit.groups),
        "fixes": [
            {"name": fix.name, "mean": fix.change.mean, "low": fix.change.low, "high": fix.change.high}
            for fix in fixes
            if fix.change is not None and math.isfinite(fix.change.mean)
        ],
    }


def _records(columns: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]


def _lanes(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    return [
        {"name": part.name, "mean": part.gap, "low": part.low, "high": part.high, "note": f"{part.rows} rows"}
        for part in parts
    ]
