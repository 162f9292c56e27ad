"""The tables of an audit: the page, the terminal and the files read the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.event import REPORTED
from focalcal.core.display import ratio
from focalcal.metrics import METRICS
from focalcal.pages.numbers import Percent, Ratio, Rounded, four
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from focalcal.auditing.auditor import Audit
    from focalcal.auditing.decisions import Decisions
    from focalcal.auditing.event import Event
    from focalcal.auditing.fixes import Fixes
    from focalcal.auditing.parts import Part
    from focalcal.auditing.periods import Periods
    from focalcal.metrics import Interval

_RATIOS = ("oe", "slope")
_SHARES = ("flagged", "precision", "recall")
_TITLES = {
    "auroc": "AUROC", "cost_per_1000": "Cost per 1,000 rows", "flagged": "Flagged", "precision": "Precision",
    "recall": "Recall",
}  # fmt: skip


def shown(name: str, value: float | None) -> float | None:
    """A metric as every sentence, figure and table shows it: a share in percent, O/E and slope as ratios."""
    if value is None or np.isnan(value):
        return None
    base = name.partition("[")[0]
    if base in _RATIOS:
        return Ratio(value)
    share = base in _SHARES or (base in METRICS and METRICS[base].unit == "share")
    return Percent(value) if share else four(value)


def metric_title(name: str) -> str:
    """What a metric is called, with the class that it is of."""
    base, bracket, of = name.partition("[")
    title = METRICS[base].title if base in METRICS else _TITLES.get(base, base)
    return title + (f" of {of.removesuffix(']')}" if bracket else "")


def metric_table(audit: Audit) -> Table:
    """One row per metric: estimate, 95 % interval, and what chance alone gives."""
    return _metrics({name: value for name, value in audit.metrics.items() if "[" not in name})


def event_table(event: Event) -> Table:
    """The same of one event among several."""
    return _metrics(event.metrics(only=True))


def events_table(events: Sequence[Event], *, widest: int | None = None) -> Table:
    """One row per event of several: each class against the rest; names as in `part_table`."""
    columns: dict[str, list[Any]] = {
        "event": [_shortened(event.name, widest) for event in events],
        "events": [event.calibration.events for event in events],
    }
    for name in ("observed_rate", "predicted_rate", "oe", "slope", "ici", "auroc"):
        found = [event.calibration.intervals[name] for event in events]
        columns[name] = [shown(name, interval.estimate) for interval in found]
        if name in _RATIOS:
            columns[f"{name} interval"] = [f"{ratio(interval.low)} to {ratio(interval.high)}" for interval in found]
    headings = {name: metric_title(name) for name in columns if name in REPORTED}
    headings |= {f"{name} interval": "95 % interval" for name in _RATIOS}
    return Table(columns | {"finding": [event.finding for event in events]}, headings=headings)


def confidence_table(audit: Audit) -> Table:
    """Beside an event, the metrics of the most probable class."""
    return _metrics(
        {name: value for name, value in audit.metrics.items() if name not in (*REPORTED, *_SHARES, "cost_per_1000")}
    )


def thresholds_say(audit: Audit) -> bool:
    """Whether accuracies are not reached by all rows, or by none, alike."""
    return any(0 < threshold.coverage < 1 for threshold in audit.thresholds)


def _metrics(found: Mapping[str, Interval]) -> Table:
    return Table(
        {
            "metric": [metric_title(name) for name in found],
            "estimate": [shown(name, interval.estimate) for name, interval in found.items()],
            "low": [shown(name, interval.low) for name, interval in found.items()],
            "high": [shown(name, interval.high) for name, interval in found.items()],
            "by chance": [shown(name, interval.chance) for name, interval in found.items()],
        },
        missing="",
    )


def part_table(parts: Sequence[Part], *, event: bool = False, groups: bool = False, widest: int | None = None) -> Table:
    """One row per class, group or period; names of more than `widest` characters lose their middle."""
    sure, right = ("predicted", "observed") if event else ("confidence", "accuracy")
    columns: dict[str, list[Any]] = {
        "name": [_shortened(part.name, widest) for part in parts],
        "rows": [part.rows for part in parts],
        sure: [Percent(part.confidence) for part in parts],
        right: [Percent(part.accuracy) for part in parts],
        "gap": [Percent(part.gap, signed=True) for part in parts],
        "low": [Percent(part.low, signed=True) for part in parts],
        "high": [Percent(part.high, signed=True) for part in parts],
    }
    if groups and len(parts) > 2:
        columns["shrunk"] = [Percent(part.shrunk, signed=True) for part in parts]
    return Table(columns, bold={"name": [part.off for part in parts]})


def _shortened(name: str, widest: int | None) -> str:
    if widest is None or len(name) <= widest:
        return name
    return f"{name[: widest // 2]}...{name[len(name) - (widest - widest // 2 - 3) :]}"


def trend_table(periods: Periods, *, widest: int | None = None) -> Table:
    """One row per trend: what changed from the first period to the last; names as in `part_table`."""
    return Table(
        {
            "change of": [_shortened(trend.what, widest) for trend in periods.trends],
            "points": [Percent(trend.change, signed=True) for trend in periods.trends],
            "low": [Percent(trend.low, signed=True) for trend in periods.trends],
            "high": [Percent(trend.high, signed=True) for trend in periods.trends],
        },
        bold={"change of": [trend.moved for trend in periods.trends]},
    )


def cost_table(found: Decisions) -> Table:
    """One row per way to decide: what 1,000 rows cost."""
    before, after = found.before, found.after
    assert before is not None
    rows: list[tuple[str, float | None, Interval]] = [("as they are", before.threshold, before.per_1000)]
    if after is not None:
        rows.append((f"after {found.calibrator}", after.threshold, after.per_1000))
    rows.append(("the same for every row", None, before.constant))
    columns: dict[str, list[Any]] = {"decision": [name for name, _, _ in rows]}
    if before.threshold is not None:
        columns["act from"] = [None if at is None else Percent(at) for _, at, _ in rows]
    columns["cost"] = [four(cost.estimate) for _, _, cost in rows]
    columns |= {end: [four(getattr(cost, end)) for _, _, cost in rows] for end in ("low", "high")}
    if found.change is not None:
        change = found.change
        columns["change"] = [None, Rounded(change.estimate, "+.4g"), None]
        columns["its interval"] = ["", f"{change.low:+.4g} to {change.high:+.4g}", ""]
    return Table(columns)


def flagged_table(found: Decisions) -> Table:
    """One row per threshold: what acting from it on finds."""
    names = ("flagged", "precision", "recall", "specificity")
    columns: dict[str, list[Any]] = {"act from": [Percent(at.threshold) for at in found.flagged]}
    for name in names:
        cells = [getattr(at, name) for at in found.flagged]
        columns[name] = [Percent(cell.estimate) for cell in cells]
        if name in names[1:3]:
            columns[f"{name} interval"] = [f"{Percent(cell.low).text} to {Percent(cell.high).text}" for cell in cells]
    return Table(columns, headings={f"{name} interval": "95 % interval" for name in names[1:3]})


def threshold_table(audit: Audit) -> Table:
    """One row per wanted accuracy."""
    return Table(
        {
            "wanted accuracy": [Percent(threshold.wanted) for threshold in audit.thresholds],
            "confidence from": [threshold.confidence for threshold in audit.thresholds],
            "rows kept": [Percent(threshold.coverage) for threshold in audit.thresholds],
            "accuracy": [Percent(threshold.accuracy) for threshold in audit.thresholds],
            "lower end": [Percent(threshold.low) for threshold in audit.thresholds],
        },
        digits=4,
    )


def mistake_table(audit: Audit) -> Table:
    """One row per mistake."""
    columns: dict[str, list[Any]] = {
        "row": [str(mistake.row) for mistake in audit.mistakes],
        "confidence": [mistake.confidence for mistake in audit.mistakes],
    }
    if audit.n_classes is not None:
        columns["predicted"] = [mistake.predicted for mistake in audit.mistakes]
        columns["label"] = [mistake.label for mistake in audit.mistakes]
    return Table(columns, digits=5)


def fix_table(fixes: Fixes) -> Table:
    """One row per calibrator, best first; the recommended one stands out. The last is the scores as they are."""
    changes = [fix.change for fix in fixes.tried]
    return Table(
        {
            "calibrator": [*(fix.name for fix in fixes.tried), "as they are"],
            "NLL": [shown("nll", value) for value in (*(fix.nll for fix in fixes.tried), fixes.raw_nll)],
            "change": [*(None if change is None else change.mean for change in changes), None],
            "low": [*(None if change is None else change.low for change in changes), None],
            "high": [*(None if change is None else change.high for change in changes), None],
            "Brier": [shown("brier", value) for value in (*(fix.brier for fix in fixes.tried), fixes.raw_brier)],
            "ECE": [shown("ece", value) for value in (*(fix.ece for fix in fixes.tried), fixes.raw_ece)],
        },
        bold={"calibrator": [*(fix.name == fixes.recommended for fix in fixes.tried), False]},
    )


def change_table(audit: Audit) -> Table:
    """One row per metric that both models have."""
    share = [METRICS[change.metric].unit == "share" for change in audit.changes]

    def column(name: str) -> list[Any]:
        values = [
            change.new - change.old if name == "difference" else getattr(change, name) for change in audit.changes
        ]
        signed = name not in ("new", "old")
        return [Percent(v, signed=signed) if s else v for v, s in zip(values, share, strict=True)]

    return Table(
        {
            "metric": [METRICS[change.metric].title for change in audit.changes],
            "new": column("new"),
            "baseline": column("old"),
            "difference": column("difference"),
            "low": column("low"),
            "high": column("high"),
            "finding": [change.finding for change in audit.changes],
        },
        digits=4,
    )
