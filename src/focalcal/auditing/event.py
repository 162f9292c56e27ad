"""The events that a model predicts: of two classes the second, or those that were asked for, each against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.diagrams import EVEN, bins_of, rare_edges
from focalcal.auditing.parts import Part, parts_of
from focalcal.core.checks import shown
from focalcal.metrics import EventCalibration, Interval, event_calibration
from focalcal.metrics.reliability import wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.auditing.fixes import Fixes
    from focalcal.auditing.parts import Family
    from focalcal.auditing.rows import Design
    from focalcal.metrics import CalibrationSketch
    from focalcal.metrics.reliability import Reliability
    from focalcal.predictions import Predictions

REPORTED = (
    "observed_rate", "predicted_rate", "oe", "slope", "intercept", "citl", "ici", "e50", "e90", "emax", "auroc",
)  # fmt: skip
RARE = 0.05  # events below this rate are drawn on logarithmic axes


@dataclass(frozen=True, eq=False)
class Event:
    """One class against the rest.

    name         of the class, and its column
    probability  of each row that was looked at
    calibration  rates, O/E, slope, distances of the curve and the rest, with intervals
    reliability  observed rate against predicted probability: even bins, or of rare events bins of equal expectation
    calibrated   the same after the recommended calibrator, on rows it was not fitted on
    oe_after     O/E there
    groups       each by itself, worst first
    """

    name: str
    column: int
    probability: NDArray[np.float64]
    calibration: EventCalibration
    reliability: Reliability
    calibrated: Reliability | None
    oe_after: float | None
    groups: tuple[Part, ...]

    @property
    def rare(self) -> bool:
        """Whether its diagram has logarithmic axes."""
        return 0 < self.calibration.observed_rate.estimate < RARE

    @property
    def finding(self) -> str:
        """ "under-predicted", "over-predicted", "too extreme", "not extreme enough", or "no fault shown"."""
        oe, slope = self.calibration.oe, self.calibration.slope
        if oe.low > 1 or oe.high < 1:
            return "under-predicted" if oe.low > 1 else "over-predicted"
        if slope.high < 1 or slope.low > 1:
            return "too extreme" if slope.high < 1 else "not extreme enough"
        return "no fault shown"

    def metrics(self, *, only: bool) -> dict[str, Interval]:
        """Those that an audit reports, by their names, and of several events with the class: `slope[cat]`."""
        suffix = "" if only else f"[{self.name}]"
        return {f"{name}{suffix}": self.calibration.intervals[name] for name in REPORTED}

    def record(self) -> dict[str, Any]:
        """As plain values."""
        found = self.calibration
        return {
            "event": self.name,
            "finding": self.finding,
            "sentence": found.sentence,
            "rows": found.rows,
            "events": found.events,
            "clusters": found.clusters,
            "oe_after": self.oe_after,
            "metrics": {name: asdict(interval) for name, interval in found.intervals.items()},
            "spiegelhalter": asdict(found.spiegelhalter),
            "brier_parts": asdict(found.corp.brier),
            "nll_parts": asdict(found.corp.nll),
            "per_group": [
                asdict(part)
                | {"predicted": part.confidence, "observed": part.accuracy, "gap": part.gap, "off": part.off}
                for part in self.groups
            ],
            "reliability": {
                name: getattr(self.reliability, name).tolist()
                for name in ("lower", "upper", "count", "confidence", "accuracy", "low", "high")
            },
            "notes": list(found.notes),
        }


def event_columns(predictions: Predictions, event: Any, names: Sequence[str], *, top1: bool) -> list[int]:
    """The columns of the classes that were asked for; of two classes by default the second, else none."""
    if event is False or predictions.multilabel or top1:
        if event is not None and event is not False:
            raise ValueError("event is for one label per row and the probabilities of all classes; leave it out")
        return []
    if event is None:
        return [1] if predictions.n_classes == 2 else []
    asked = list(event) if isinstance(event, list | tuple) else [event]
    place = {name: at for at, name in enumerate(names)}
    for name in asked:
        if str(name) not in place:
            known = ", ".join(names[:20])
            raise ValueError(f"event must name classes, got {shown(name)}; they are {known}")
    return list(dict.fromkeys(place[str(name)] for name in asked))


def event_metric_names(columns: Sequence[int], names: Sequence[str]) -> list[str]:
    """What gates may ask of these events."""
    if len(names) == 2 and len(columns) == 1:
        return list(REPORTED)
    return [f"{name}[{names[k]}]" for k in columns for name in REPORTED]


def events_of(
    predictions: Predictions,
    columns: Sequence[int],
    names: Sequence[str],
    design: Design,
    families: Sequence[Family],
    fixes: Fixes | None,
    *,
    resamples: int,
    seed: int,
) -> tuple[Event, ...]:
    """One per column."""
    probs = predictions.probs if columns else predictions.scores
    return tuple(
        _event(predictions, probs[:, k].astype(np.float64), k, names[k], design, families, fixes, resamples, seed)
        for k in columns
    )


def _event(
    predictions: Predictions,
    p: NDArray[np.float64],
    column: int,
    name: str,
    design: Design,
    families: Sequence[Family],
    fixes: Fixes | None,
    resamples: int,
    seed: int,
) -> Event:
    happened = predictions.labels == column
    positive = column if predictions.classes is None else predictions.classes[column]
    found = event_calibration(predictions, positive=positive, resamples=min(resamples, 500), seed=seed)
    rare = 0 < found.observed_rate.estimate < RARE
    after = oe_after = None
    if fixes is not None and fixes.after is not None:
        own, rows = fixes.after[:, column], fixes.compared
        edges = rare_edges(own, rows.design) if rare else EVEN
        after = bins_of(own, happened[rows.places], rows.design, edges)
        expected = rows.design.mean(own)
        oe_after = rows.design.mean(happened[rows.places].astype(np.float64)) / expected if expected else None
    return Event(
        name=name,
        column=column,
        probability=p,
        calibration=found,
        reliability=bins_of(p, happened, design, rare_edges(p, design) if rare else EVEN),
        calibrated=after,
        oe_after=oe_after,
        groups=tuple(parts_of(families, p, happened, design) if families else ()),
    )


def of_all_rows(event: Event, sketch: CalibrationSketch) -> Event:
    """With rates and O/E of all rows, where the rest is of a sample."""
    sums, rows = sketch.classes, sketch.rows
    happened, expected = float(sums.correct[event.column].sum()), float(sums.confidence[event.column].sum())
    low, high = (float(end) for end in wilson(np.array(happened), np.array(rows)))
    observed = Interval(happened / rows, low, high, 0.95)
    found, predicted = event.calibration, expected / rows
    of_sample = found.predicted_rate
    narrower = (found.rows / rows) ** 0.5
    ends = [predicted + narrower * (end - of_sample.estimate) for end in (of_sample.low, of_sample.high)]
    ratio = Interval(happened / expected, low / predicted, high / predicted, 0.95) if predicted > 0 else found.oe
    whole = replace(
        found,
        rows=rows,
        events=round(happened),
        observed_rate=observed,
        predicted_rate=Interval(predicted, min(ends), max(ends), 0.95),
        oe=ratio,
    )
    return replace(event, calibration=whole)
