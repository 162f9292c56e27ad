"""The tables of an audit, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from focalcal.metrics import METRICS
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from focalcal.auditing.auditor import Audit
    from focalcal.auditing.fixes import Fixes
    from focalcal.auditing.parts import Part


def metric_table(audit: Audit) -> Table:
    """One row per metric: estimate, 95 % interval, and what chance alone gives."""
    found = audit.metrics
    return Table(
        {
            "metric": [METRICS[name].title if name in METRICS else name for name in found],
            "estimate": [interval.estimate for interval in found.values()],
            "low": [interval.low for interval in found.values()],
            "high": [interval.high for interval in found.values()],
            "by chance": [interval.chance for interval in found.values()],
        },
        digits=4,
        missing="",
    )


def part_table(parts: Sequence[Part]) -> Table:
    """One row per class or group, worst first."""
    return Table(
        {
            "name": [part.name for part in parts],
            "rows": [part.rows for part in parts],
            "confidence %": [100 * part.confidence for part in parts],
            "accuracy %": [100 * part.accuracy for part in parts],
            "gap": [100 * part.gap for part in parts],
            "low": [100 * part.low for part in parts],
            "high": [100 * part.high for part in parts],
        }
    )


def threshold_table(audit: Audit) -> Table:
    """One row per wanted accuracy."""
    return Table(
        {
            "wanted accuracy %": [100 * threshold.wanted for threshold in audit.thresholds],
            "keep confidence from": [threshold.confidence for threshold in audit.thresholds],
            "rows kept %": [100 * threshold.coverage for threshold in audit.thresholds],
            "accuracy %": [100 * threshold.accuracy for threshold in audit.thresholds],
            "its lower end": [100 * threshold.low for threshold in audit.thresholds],
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
    """One row per calibrator, best first; the recommended one stands out."""
    changes = [fix.change for fix in fixes.tried]
    chosen = [fix.name == fixes.recommended for fix in fixes.tried]
    return Table(
        {
            "calibrator": [fix.name for fix in fixes.tried],
            "NLL": [fix.nll for fix in fixes.tried],
            "change": [None if change is None else change.mean for change in changes],
            "low": [None if change is None else change.low for change in changes],
            "high": [None if change is None else change.high for change in changes],
            "Brier": [fix.brier for fix in fixes.tried],
            "ECE %": [100 * fix.ece for fix in fixes.tried],
        },
        bold={"calibrator": chosen},
    )


def change_table(audit: Audit) -> Table:
    """One row per metric that both models have."""
    return Table(
        {
            "metric": [METRICS[change.metric].title for change in audit.changes],
            "new": [change.new for change in audit.changes],
            "baseline": [change.old for change in audit.changes],
            "difference": [change.new - change.old for change in audit.changes],
            "low": [change.low for change in audit.changes],
            "high": [change.high for change in audit.changes],
            "finding": [change.finding for change in audit.changes],
        }
    )
