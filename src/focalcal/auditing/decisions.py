"""What acting on the probabilities is worth: net benefit over thresholds, what a threshold flags, and what it costs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.checks import between_zero_and_one
from focalcal.core.display import percent
from focalcal.metrics import compare_costs, decision_cost, flagged_at, net_benefit
from focalcal.metrics.decision_cost import DecisionCost, cost_matrix
from focalcal.metrics.net_benefit import THRESHOLDS, DecisionCurve, Flagged
from focalcal.pages.numbers import four

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.auditing.event import Event
    from focalcal.auditing.fixes import Fixes
    from focalcal.auditing.rows import Design
    from focalcal.metrics import Interval
    from focalcal.predictions import Predictions

_SHARES = (0.01, 0.05, 0.1, 0.2)  # of rows that are flagged, where no threshold is asked for
_POINTS = 60  # of the curve of a rare event


@dataclass(frozen=True, eq=False)
class Decisions:
    """Of an event, or of the costs of all classes.

    curve, curve_after  net benefit over thresholds, before and after the recommended calibrator
    threshold           that was asked for, or that the costs ask for; None of several classes, or without either
    flagged             what is flagged at it, or, without one, where 1, 5, 10 and 20 % of rows are
    before, after       costs of the decisions, on the rows that calibrators were compared on if there are any
    change              after minus before per 1,000 rows, paired by row
    calibrator          the name of the recommended one
    """

    curve: DecisionCurve | None
    curve_after: DecisionCurve | None
    threshold: float | None
    flagged: tuple[Flagged, ...]
    before: DecisionCost | None
    after: DecisionCost | None
    change: Interval | None
    calibrator: str | None

    @property
    def sentence(self) -> str:
        """What to do at these costs, and what calibration saves."""
        if self.before is None:
            return ""
        cost = self.before.per_1000
        said = f"Decisions by these costs cost {four(cost.estimate).text} per 1,000 rows"
        if self.threshold is not None:
            said = f"At these costs act from a probability of {percent(self.threshold)} on: that costs " + (
                f"{four(cost.estimate).text} per 1,000 rows"
            )
        said += f" (95 % interval {four(cost.low).text} to {four(cost.high).text})"
        if self.after is not None and self.change is not None:
            change = self.change
            said += (
                f", and {four(self.after.per_1000.estimate).text} after {self.calibrator} (change "
                f"{change.estimate:+.4g}, {change.low:+.4g} to {change.high:+.4g})"
            )
        same = f"; the same decision for every row costs {four(self.before.constant.estimate).text}"
        best = self.before.best_threshold
        found = ""
        if best is not None and self.before.best_per_1000 is not None:
            act = "never to act" if np.isinf(best) else f"to act from {percent(best)} on"
            found = f" Best on these very rows was {act}, {four(self.before.best_per_1000).text} per 1,000."
        return f"{said}{same}.{found}" + (f" {self.caution}" if self.caution else "")

    @property
    def caution(self) -> str:
        """Where the recommended calibrator, which is chosen by the NLL, does not lower the cost."""
        if self.change is None or self.change.estimate <= 0:
            return ""
        name = f"The calibrator that lowers the NLL, {self.calibrator},"
        if self.change.low > 0:
            return f"{name} raises the cost of these decisions: for them leave the probabilities as they are."
        return f"{name} is not shown to lower the cost of these decisions."

    def metrics(self) -> dict[str, Interval]:
        """What gates may ask of: the cost, and, at a threshold that is known, what it flags."""
        found = {} if self.before is None else {"cost_per_1000": self.before.per_1000}
        if self.threshold is not None:
            at = self.flagged[0]
            found |= {"flagged": at.flagged, "precision": at.precision, "recall": at.recall}
        return found

    def record(self) -> dict[str, Any]:
        """As plain values."""
        costs = {"before": self.before, "after": self.after}
        names = ("per_1000", "constant", "constant_decision", "best_threshold", "best_per_1000", "flagged")
        return {
            "sentence": self.sentence,
            "threshold": self.threshold,
            "net_benefit": None if self.curve is None else self.curve.frame(),
            "net_benefit_after": None if self.curve_after is None else self.curve_after.frame(),
            "flagged": [asdict(at) for at in self.flagged],
            "costs": {
                when: None if cost is None else {name: _plain(getattr(cost, name)) for name in names}
                for when, cost in costs.items()
            },
            "change": None if self.change is None else asdict(self.change),
        }


def _plain(value: Any) -> Any:
    return asdict(value) if hasattr(value, "estimate") else value


def costs_of(cost: Any) -> Any:
    """A mapping or a matrix as it is; text such as "fp=1,fn=20", or the path of a file with one line per label."""
    if not isinstance(cost, str | os.PathLike):
        return cost
    text = os.fspath(cost)
    if "=" in text:
        pairs = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
        try:
            return {name.strip(): float(value) for name, value in pairs.items()}
        except ValueError:
            raise ValueError(f"cost must be such as fp=1,fn=20, or the name of a file, got {text!r}") from None
    if not Path(text).is_file():
        raise ValueError(f"cost must be such as fp=1,fn=20, or the name of a file with a matrix, got {text!r}")
    try:
        return np.loadtxt(text, delimiter=",", ndmin=2)
    except ValueError:
        raise ValueError(
            f"{text} must hold a matrix of numbers, one line per label and one column per decision with commas; "
            "leave names out"
        ) from None


def check_costs(cost: Any, threshold: Any, classes: int, events: int) -> None:
    """Refuse costs that do not fit the classes, and a threshold without an event."""
    size = classes if cost is None else len(cost_matrix(cost))
    if size != classes and not (isinstance(cost, Mapping) and events):
        raise ValueError(
            f"cost must be a matrix of {classes} lines and columns for {classes} classes, got {size}; or name an event "
            "for the costs of a false alarm and a miss"
        )
    if threshold is not None:
        between_zero_and_one("threshold", threshold, remedy="it is a probability of the event")
        if not events:
            raise ValueError(f"threshold needs an event, got {threshold:g} for {classes} classes; name it by event")


def decision_metric_names(cost: Any, threshold: Any, events: int) -> list[str]:
    """What gates may ask of."""
    at = ["flagged", "precision", "recall"] if events and (cost is not None or threshold is not None) else []
    return ["cost_per_1000"] * (cost is not None) + at


def decisions_of(
    predictions: Predictions, event: Event | None, design: Design, fixes: Fixes | None, cost: Any, threshold: Any
) -> Decisions | None:
    """Of the event, and of what costs were given; None if there is neither."""
    if event is None and cost is None:
        return None
    of_event: dict[str, Any] = {} if event is None else {"positive": event.column}
    matrix = None if cost is None else cost_matrix(cost)
    if matrix is not None and len(matrix) != 2:
        of_event = {}
    whole = _given(predictions.probs.astype(np.float64), predictions.labels, design)
    compared, calibrated = whole, None
    if fixes is not None and fixes.after is not None:
        places = fixes.compared.places
        compared = _given(whole["probs"][places], predictions.labels[places], fixes.compared.design)
        calibrated = compared | {"probs": fixes.after}
    before = after = change = curve = curve_after = None
    flagged: tuple[Flagged, ...] = ()
    if matrix is not None:
        before = decision_cost(**compared, cost=matrix, **of_event)
        threshold = before.threshold if threshold is None else threshold
        if calibrated is not None:
            after = decision_cost(**calibrated, cost=matrix, **of_event)
            change = compare_costs(before, after)
    if event is not None:
        p = event.probability
        at = _thresholds(p, event)
        curve = net_benefit(**whole, thresholds=at, **of_event)
        curve_after = None if calibrated is None else net_benefit(**calibrated, thresholds=at, **of_event)
        asked = [threshold] if threshold is not None else np.unique(np.quantile(p, [1 - share for share in _SHARES]))
        flagged = tuple(flagged_at(**whole, threshold=float(each), **of_event) for each in asked if 0 < float(each) < 1)
    name = None if fixes is None or calibrated is None else fixes.step
    return Decisions(curve, curve_after, threshold, flagged, before, after, change, name)


def _given(probs: NDArray[np.float64], labels: NDArray[np.int64], design: Design) -> dict[str, Any]:
    return {"probs": probs, "labels": labels, "sample_weight": design.weights, "clusters": design.clusters}


def _thresholds(p: NDArray[np.float64], event: Event) -> NDArray[np.float64]:
    """From 1 % to the largest probability; of a rare event as far around its rate, evenly in the logarithm."""
    most = float(np.clip(np.quantile(p, 0.9999), 0.02, 0.99))
    rate = event.calibration.observed_rate.estimate
    if event.rare:
        return np.geomspace(max(1e-6, rate / 10), max(most, 2 * rate), _POINTS)
    return np.array([each for each in THRESHOLDS if each <= max(most, 0.05)])
