"""The page of an audit: one HTML file that needs no network."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.auditing.tables import (
    change_table,
    confidence_table,
    cost_table,
    event_table,
    events_table,
    fix_table,
    flagged_table,
    metric_table,
    metric_title,
    mistake_table,
    part_table,
    shown,
    threshold_table,
    thresholds_say,
    trend_table,
)
from focalcal.core.atomic import write_atomically
from focalcal.pages.page import Page, Section, html_table, render

if TYPE_CHECKING:
    from focalcal.auditing.auditor import Audit
    from focalcal.auditing.parts import Part
    from focalcal.metrics.reliability import Reliability
    from focalcal.pages.tables import Table

_OWN = ("reliability", "coverage", "periods", "benefit", "page")
SCRIPTS = ("kit/intervals.js", *(f"{__package__}/{name}.js" for name in _OWN))
_GAP = {
    "name": "confidence minus accuracy, in points", "below": "under-confident", "above": "over-confident",
    "sure": "confidence", "right": "accuracy",
}  # fmt: skip
_EVENT_GAP = {
    "name": "predicted minus observed, in points", "below": "predicted too rarely", "above": "predicted too often",
    "sure": "predicted", "right": "observed",
}  # fmt: skip
_BENEFIT = (
    "Net benefit is the share of events acted on, less that of false alarms times the odds of the threshold; the band "
    "is its 95 % interval, and the dashed line acting on every row."
)
_AFTER = " The second line is after the recommended calibrator."
_CORRECTED = "Intervals hold for all of them at once, at 95 %. Worst first; names in bold are off beyond chance."
_FIGURES = ("confidence_gap", "ece", "nll", "brier", "accuracy")
_EVENT_FIGURES = ("observed_rate", "predicted_rate", "oe", "slope", "auroc")


def audit_page(audit: Audit) -> str:
    """The page as HTML."""
    tables: dict[str, Table] = {}
    return Page(
        title=_title(audit),
        lead=render(f"{__package__}/lead.html.j2", about=_about(audit)),
        sections=[section for section in _sections(audit, tables) if section is not None],
        data=_data(audit),
        tables=tables,
        scripts=SCRIPTS,
        styles=("kit/marks.css", f"{__package__}/audit.css"),
    ).html()


def write_audit_page(audit: Audit, path: str | os.PathLike[str]) -> None:
    """Write the page."""
    write_atomically(Path(path), audit_page(audit).encode())


def _title(audit: Audit) -> str:
    of = audit.about.get("model") or audit.about.get("data")
    return audit.about.get("title") or (f"Can {of} be trusted?" if of else "Can these probabilities be trusted?")


def _about(audit: Audit) -> list[str]:
    """Model, data, date and size."""
    named = [f"{name} {audit.about[name]}" for name in ("model", "data") if audit.about.get(name)]
    classes = "the confidence of each prediction alone" if audit.n_classes is None else f"{audit.n_classes} classes"
    event = [] if audit.event is None else [f"{audit.event.calibration.events:,} times {audit.event.name}"]
    sample = [] if audit.sample is None else [f"details of a sample of {audit.sample:,}"]
    date = audit.about.get("date") or datetime.now(UTC).date().isoformat()
    return [*named, date, f"{audit.rows:,} rows", classes, *event, *sample]


def _sections(audit: Audit, tables: dict[str, Table]) -> list[Section | None]:
    """In the order in which people ask; `tables` is filled with those that can be downloaded."""

    def table(name: str, caption: str, made: Table, note: str = "", *, quiet: bool = True) -> Any:
        tables[name] = made  # every row is a fact of its own: a column in which they happen to agree stays
        return html_table(name, caption, made, note, quiet=quiet, every_column=True)

    def pair(name: str, heading: str, made: Sequence[Any], *, chart: bool = True, **said: str) -> Section:
        context = {"sentence": "", "note": "", **said}
        body = render(
            f"{__package__}/pair.html.j2", name=name if chart else "", heading=heading, tables=made, **context
        )
        return Section(name, heading, body)

    of_sample = "" if audit.sample is None else f" Of a sample of {audit.sample:,} rows."
    sections: list[Section | None] = [Section("verdict", "Verdict", _verdict(audit, table), quiet=True)]
    event = audit.event
    groups = audit.shown_groups
    if event is None and audit.events:
        body = table("events", "Events", events_table(audit.events), "Each class against the rest; 95 % intervals.")
        sections.append(Section("events", "Events", body))
    classes = () if event is not None else audit.classes  # of two classes the diagram says it
    for name, heading, parts in (("groups", "Groups", groups), ("classes", "Predicted classes", classes)):
        if parts:
            by_event = event is not None and name == "groups"
            made = table(name, heading, part_table(parts, groups=name == "groups", event=by_event))
            sections.append(pair(name, heading, [made], note=_CORRECTED + of_sample))
    if audit.periods is not None:
        periods = audit.periods
        made = [table("periods", f"By {periods.unit}", part_table(periods.parts, event=event is not None), quiet=False)]
        if periods.trends:
            made.append(table("trends", "What moved", trend_table(periods), quiet=False))
        sections.append(_periods(periods.sentence, made, of_sample))
    if audit.decisions is not None:
        found = audit.decisions
        made = [] if found.before is None else [table("costs", "Cost per 1,000 rows", cost_table(found), quiet=False)]
        if found.flagged:
            made.append(table("flagged", "What a threshold flags", flagged_table(found), quiet=False))
        note = "" if found.curve is None else _BENEFIT + (_AFTER if found.curve_after is not None else "")
        chart = "benefit" if found.curve is not None else ""
        context = {"name": chart, "heading": "Net benefit", "tables": made, "sentence": found.sentence, "note": note}
        sections.append(Section("decisions", "Decisions", render(f"{__package__}/pair.html.j2", **context)))
    made = []
    if event is not None:
        made.append(table("confidence", "Of the most probable class", confidence_table(audit), quiet=False))
    if thresholds_say(audit):
        made.append(table("thresholds", "Thresholds on the confidence", threshold_table(audit), quiet=False))
    if audit.mistakes:
        made.append(table("mistakes", "The most confident mistakes", mistake_table(audit), quiet=False))
    heading = "What a threshold buys" if event is None else "The most probable class"
    promise = "" if audit.abstention is None or event is not None else audit.abstention.sentence
    sections.append(pair("coverage", heading, made, sentence=promise, note=of_sample.strip()))
    if audit.fixes is not None:
        made = [table("fixes", "Calibrators", fix_table(audit.fixes))]
        note = f"{audit.fixes.rows:,} rows in five folds, each judged by what was fitted on the other four."
        tried = any(fix.change is not None for fix in audit.fixes.tried)
        fixes = pair("fixes", "What would fix it", made, chart=tried, sentence=audit.fixes.sentence, note=note)
        sections.append(fixes)
    if audit.changes:
        note = "New minus baseline, paired by row; 95 % intervals."
        body = table("baseline", "Against the baseline", change_table(audit), note)
        sections.append(Section("baseline", "Against the baseline", body))
    if audit.operating_point is not None:
        sections.append(Section("next", "For the next training", audit.operating_point.sentence))
    if notes := _notes(audit):
        sections.append(Section("notes", "Methods", render(f"{__package__}/notes.html.j2", notes=notes)))
    return sections


def _verdict(audit: Audit, table: Any) -> Any:
    fixes, event = audit.fixes, audit.event
    figures = [name for name in (_FIGURES if event is None else _EVENT_FIGURES) if name in audit.metrics]
    after = audit.calibrated if event is None else event.calibrated
    return render(
        f"{__package__}/verdict.html.j2",
        sentence=audit.headline,
        where=audit.where,
        action=audit.action,
        why="" if fixes is None or fixes.chosen is None else "On rows that it was not fitted on.",
        formula="" if fixes is None else fixes.formula,
        figures=[_figure(audit, name) for name in figures],
        what="Accuracy against confidence" if event is None else f"How often {event.name} happened",
        after=fixes.recommended if fixes is not None and after is not None else "",
        table=table("metrics", "Metrics", metric_table(audit) if event is None else event_table(event)),
    )


def _figure(audit: Audit, name: str) -> dict[str, str]:
    """One number with its interval, in the digits of the table."""
    found = audit.metrics[name]
    value, low, high = (_text(shown(name, number)) for number in (found.estimate, found.low, found.high))
    chance = "" if found.chance is None else f", {_text(shown(name, found.chance))} by chance"
    return {"title": metric_title(name), "value": value, "span": f"{low} to {high}{chance}"}


def _text(value: Any) -> str:
    return "\N{EN DASH}" if value is None else str(value.text)


def _periods(sentence: str, made: Sequence[Any], of_sample: str) -> Section:
    body = render(f"{__package__}/periods.html.j2", sentence=sentence, note=of_sample.strip(), tables=made)
    return Section("periods", "In the order of time", body)


def _notes(audit: Audit) -> list[str]:
    notes = list(audit.notes)
    names: dict[str, list[str]] = {}
    for name, why in ({} if audit.fixes is None else audit.fixes.left_out).items():
        names.setdefault(why, []).append(name)
    if names:
        reasons = [f"{', '.join(each)} ({why})" for why, each in names.items()]
        notes.append(f"Calibrators that were not tried: {'; '.join(reasons)}.")
    return notes


def _data(audit: Audit) -> dict[str, Any]:
    curve, event = audit.risk_coverage, audit.event
    fixes = () if audit.fixes is None else audit.fixes.tried
    return {
        "reliability": _diagram(audit),
        "coverage": _records({"coverage": curve.coverage, "risk": curve.risk, "low": curve.low, "high": curve.high}),
        "gap": _GAP if event is None else _EVENT_GAP,
        "classes": _lanes(audit.classes),
        "groups": _lanes(audit.shown_groups),
        "periods": [] if audit.periods is None else [_period(part) for part in audit.periods.parts],
        "benefit": _benefit(audit),
        "fixes": [
            {"name": fix.name, "mean": fix.change.mean, "low": fix.change.low, "high": fix.change.high}
            for fix in fixes
            if fix.change is not None and math.isfinite(fix.change.mean)
        ],
        "calibrator": None
        if audit.fixes is None or audit.fixes.calibrator is None
        else audit.fixes.calibrator.record(),
    }


def _benefit(audit: Audit) -> dict[str, Any]:
    found = audit.decisions
    if found is None or found.curve is None:
        return {"points": [], "after": [], "log": False, "threshold": None}
    names = ("thresholds", "net_benefit", "low", "high", "treat_all")
    before, after = (
        [] if curve is None else _records({name.removesuffix("s"): getattr(curve, name) for name in names})
        for curve in (found.curve, found.curve_after)
    )
    log = audit.events[0].rare
    return {"points": before, "after": after, "log": log, "threshold": found.threshold}


def _diagram(audit: Audit) -> dict[str, Any]:
    """The bins before and after, and the flexible curve of an event."""
    event = audit.event
    after = audit.calibrated if event is None else event.calibrated
    curve = None if event is None else event.calibration.curve
    names = {"p": "points", "observed": "observed", "low": "low", "high": "high"}
    return {
        "bins": _bins(audit.reliability if event is None else event.reliability),
        "after": [] if after is None else _bins(after),
        "curve": [] if curve is None else _records({key: getattr(curve, name) for key, name in names.items()}),
        "log": event is not None and event.rare,
        "x": "confidence" if event is None else "predicted probability",
        "y": "accuracy" if event is None else "observed rate",
    }


def _bins(bins: Reliability) -> list[dict[str, Any]]:
    lowest, highest = bins.chance
    names = ("lower", "upper", "confidence", "accuracy", "low", "high")
    columns = {name: getattr(bins, name) for name in names} | {"rows": bins.count}
    return _records(columns | {"lowest": lowest, "highest": highest})


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


def _period(part: Part) -> dict[str, Any]:
    """A point of the panel: the ends of the gap's interval, and of the rate's, which they are measured from."""
    fields = ("name", "rows", "confidence", "accuracy", "gap", "low", "high", "off")
    ends = {"lowest": part.confidence - part.high, "highest": part.confidence - part.low}
    return {name: getattr(part, name) for name in fields} | ends
