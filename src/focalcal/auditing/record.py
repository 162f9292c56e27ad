"""An audit as plain values: nested for JSON, flat for trackers of experiments."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from focalcal.core.checks import shown

if TYPE_CHECKING:
    from focalcal.auditing.auditor import Audit
    from focalcal.auditing.fixes import Fixes
    from focalcal.auditing.parts import Part

SCHEMA = 1  # raised when a key changes its meaning or goes; keys are added within a schema


def audit_record(audit: Audit) -> dict[str, Any]:
    """Everything as plain values; the keys are documented in docs/guide/audit.md."""
    verdict = audit.verdict
    return {
        "schema": SCHEMA,
        "about": dict(audit.about),
        "headline": audit.headline,
        "where": audit.where,
        "action": audit.action,
        "rows": audit.rows,
        "sample": audit.sample,
        "classes": audit.n_classes,
        "verdict": {"finding": str(verdict.finding), "sentence": verdict.sentence}
        | {name: getattr(verdict, name) for name in ("gap", "low", "high")},
        "metrics": {name: asdict(interval) for name, interval in audit.metrics.items()},
        "events": [event.record() for event in audit.events],
        "per_class": _parts(audit.classes),
        "per_group": _parts(audit.groups),
        "per_period": None
        if audit.periods is None
        else {
            "unit": audit.periods.unit,
            "sentence": audit.periods.sentence,
            "periods": _parts(audit.periods.parts),
            "trends": [asdict(trend) | {"moved": trend.moved} for trend in audit.periods.trends],
        },
        "decisions": None if audit.decisions is None else audit.decisions.record(),
        "thresholds": [asdict(threshold) for threshold in audit.thresholds],
        "abstention": None
        if audit.abstention is None
        else asdict(audit.abstention) | {"sentence": audit.abstention.sentence},
        "mistakes": [asdict(mistake) for mistake in audit.mistakes],
        "fixes": None if audit.fixes is None else _fixes(audit.fixes),
        "operating_point": None if audit.operating_point is None else audit.operating_point.record(),
        "baseline": [asdict(change) | {"finding": change.finding} for change in audit.changes],
        "notes": list(audit.notes),
    }


def flat_record(audit: Audit) -> dict[str, float]:
    """Numbers by name, `ece`, `ece_low`, `ece_high` and so on: what trackers of experiments take as metrics."""
    numbers: dict[str, float] = {"rows": float(audit.rows)}
    for name, interval in audit.metrics.items():
        key = name.replace("[", "_of_").replace("]", "")
        numbers |= {key: interval.estimate, f"{key}_low": interval.low, f"{key}_high": interval.high}
    if audit.fixes is not None and audit.fixes.chosen is not None:
        chosen = audit.fixes.chosen
        numbers |= {"calibrated_nll": chosen.nll, "calibrated_brier": chosen.brier, "calibrated_ece": chosen.ece}
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}


def log_to(audit: Audit, tracker: Any) -> None:
    """See `Audit.log_to`."""
    numbers = flat_record(audit)
    if hasattr(tracker, "log_metrics"):  # MLflow, Comet, Lightning's loggers
        tracker.log_metrics(numbers)
    elif hasattr(tracker, "log"):  # a run of Weights & Biases, or wandb itself
        tracker.log(numbers)
    else:
        raise TypeError(
            f"tracker must have log_metrics or log, as mlflow and a run of wandb have, got {shown(tracker)}; or log "
            "dict(audit) yourself"
        )
    if hasattr(tracker, "log_text"):
        tracker.log_text(audit.page(), "audit.html")
    if hasattr(tracker, "log_dict"):
        tracker.log_dict(audit_record(audit), "metrics.json")


def _parts(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    return [asdict(part) | {"gap": part.gap, "off": part.off} for part in parts]


def _fixes(fixes: Fixes) -> dict[str, Any]:
    return {
        "recommended": fixes.recommended,
        "sentence": fixes.sentence,
        "formula": fixes.formula,
        "rows": fixes.rows,
        "compared_on": fixes.compared.said,
        "raw": {"nll": fixes.raw_nll, "brier": fixes.raw_brier, "ece": fixes.raw_ece},
        "impossible": list(fixes.impossible),
        "left_out": fixes.left_out,
        "calibrator": None if fixes.calibrator is None else fixes.calibrator.record(),
        "tried": [
            {"name": fix.name, "nll": fix.nll, "brier": fix.brier, "ece": fix.ece}
            | ({} if fix.change is None else {"low": fix.change.low, "high": fix.change.high})
            for fix in fixes.tried
        ],
    }
