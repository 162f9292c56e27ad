"""The audit: a verdict, metrics with intervals, where it is worst, what would fix it, and against another model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.comparison import Change, compare_models
from focalcal.auditing.fixes import Fixes, calibrator_names, compare_fixes
from focalcal.auditing.gates import Gate, Judged
from focalcal.auditing.metric_intervals import metric_intervals, metric_names
from focalcal.auditing.parts import Part, parts_of
from focalcal.auditing.rows import AuditRows, rows_of
from focalcal.auditing.verdict import Verdict, verdict_of
from focalcal.core.checks import ProbabilityWarning, shown, whole_number
from focalcal.core.display import html_table
from focalcal.metrics.binned_errors import sums_between
from focalcal.metrics.reliability import reliability_of
from focalcal.metrics.scan import even_edges
from focalcal.metrics.selective import Mistake, RiskCoverage, Threshold, risk_coverage, thresholds
from focalcal.posthoc import OperatingPoint, operating_point
from focalcal.posthoc.calibrator_inputs import refuse_probabilities
from focalcal.posthoc.operating_point import gamma_and_lam
from focalcal.predictions import Predictions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.metrics import Interval
    from focalcal.metrics.reliability import Reliability

SCHEMA = 1  # of `Audit.record`: raised when a key changes its meaning or goes
_MISTAKES = 10
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What was found. `print` shows the verdict; `html(path)` writes a page.

    metrics          with 95 % intervals and what chance alone gives
    reliability      the bins of the diagram
    classes, groups  each by itself, worst first, with intervals corrected for their number; groups if there are any
    risk_coverage, thresholds, mistakes
                     what a threshold on the confidence buys, and the most confident wrong predictions
    fixes            calibrators, cross-fitted; None if none was asked for or there are too few rows
    operating_point  for the next training, if the network was trained by cross-entropy
    changes          against the baseline, if there is one
    notes            what was inferred or left out
    """

    verdict: Verdict
    metrics: dict[str, Interval]
    reliability: Reliability
    classes: tuple[Part, ...]
    groups: tuple[Part, ...]
    risk_coverage: RiskCoverage
    thresholds: tuple[Threshold, ...]
    mistakes: tuple[Mistake, ...]
    fixes: Fixes | None
    operating_point: OperatingPoint | None
    changes: tuple[Change, ...]
    rows: int
    n_classes: int | None
    notes: tuple[str, ...] = ()

    def check(self, requirement: str, *, on: Judged = "interval") -> bool:
        """Whether the rows are compatible with a requirement such as `ece < 0.05`.

        It is False only if the opposite holds beyond chance, with the whole interval on the wrong side; or, with
        on="estimate", if the estimate is.
        """
        gate = Gate.parse(requirement)
        return not Gate(gate.metric, _OPPOSITE[gate.comparison], gate.bound).holds(self.metrics, on)

    def frame(self) -> dict[str, list[Any]]:
        """One row per metric."""
        found = self.metrics.values()
        return {
            "metric": list(self.metrics),
            "estimate": [interval.estimate for interval in found],
            "low": [interval.low for interval in found],
            "high": [interval.high for interval in found],
            "chance": [interval.chance for interval in found],
        }

    def record(self) -> dict[str, Any]:
        """Everything as plain values, for JSON; the keys are documented in docs/guide/audit.md."""
        fixes = self.fixes
        return {
            "schema": SCHEMA,
            "rows": self.rows,
            "classes": self.n_classes,
            "verdict": {"finding": str(self.verdict.finding), "sentence": self.verdict.sentence}
            | {name: getattr(self.verdict, name) for name in ("gap", "low", "high")},
            "metrics": {name: asdict(interval) for name, interval in self.metrics.items()},
            "per_class": [asdict(part) | {"gap": part.gap, "off": part.off} for part in self.classes],
            "per_group": [asdict(part) | {"gap": part.gap, "off": part.off} for part in self.groups],
            "thresholds": [asdict(threshold) for threshold in self.thresholds],
            "mistakes": [asdict(mistake) for mistake in self.mistakes],
            "fixes": None
            if fixes is None
            else {
                "recommended": fixes.recommended,
                "sentence": fixes.sentence,
                "rows": fixes.rows,
                "impossible": list(fixes.impossible),
                "left_out": fixes.left_out,
                "calibrator": None if fixes.calibrator is None else fixes.calibrator.record(),
                "tried": [
                    {"name": fix.name, "nll": fix.nll, "brier": fix.brier, "ece": fix.ece}
                    | ({} if fix.change is None else {"low": fix.change.low, "high": fix.change.high})
                    for fix in fixes.tried
                ],
            },
            "operating_point": None if self.operating_point is None else self.operating_point.record(),
            "baseline": [asdict(change) | {"finding": change.finding} for change in self.changes],
            "notes": list(self.notes),
        }

    def html(self, path: Any) -> None:
        """Write a page that needs nothing else."""
        from focalcal.auditing.page import write_audit_page  # the page kit is loaded where a page is asked for

        write_audit_page(self, path)

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.verdict.sentence)}</p>{html_table(self.frame())}"

    def __repr__(self) -> str:
        """The verdict and the metrics."""
        width = max(map(len, self.metrics))
        lines = [f"  {name:<{width}}  {interval}" for name, interval in self.metrics.items()]
        fix = [] if self.fixes is None else [self.fixes.sentence]
        return "\n".join([self.verdict.sentence, *lines, *fix])


def audit(
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    confidence: Any = None,
    correct: Any = None,
    groups: Any = None,
    positive: Any = None,
    multilabel: bool = False,
    top1: bool = False,
    calibrate: Sequence[str] | str | None = "auto",
    baseline: Predictions | None = None,
    trained_with: tuple[float, float] | None = (0.0, 0.0),
    class_names: Sequence[str] | None = None,
    gates: Sequence[Gate] = (),
    resamples: int | None = None,
    seed: int = 0,
) -> Audit:
    """Look at held-out predictions and say how far their confidences can be trusted.

    probs         `Predictions`, whose groups and ids are used, or (N, K) probabilities, or `logits=`
    labels        (N,); scores and labels in any form that `Predictions` take, with `positive` and `multilabel`
    confidence    (N,) how sure each prediction is, where no more is known, and `correct` whether it is right
    groups        the name of a group for each row
    top1          predictions of two columns are such rows: the second is the confidence, the label whether it is right
    calibrate     "auto" for every calibrator, a name or names of CALIBRATORS, or None
    baseline      another model's predictions of the same rows in the same order
    trained_with  (gamma, lam) of the loss: (0, 0) is cross-entropy; None if it was none of the focal family
    class_names   one per class; by default those of the predictions, or their numbers
    gates         that the result will be asked for: one whose metric it does not have is refused at once
    resamples     of the bootstrap; by default 1,000, of more than 10,000 rows fewer, 200 at least
    """
    arrays = {"logits": logits, "labels": labels, "groups": groups, "positive": positive}
    predictions = probs
    if confidence is not None or correct is not None:
        if any(other is not None for other in (probs, logits, labels, positive)):
            raise TypeError("confidence and correct take the place of scores and labels; give one or the other")
        predictions = Predictions(confidence=confidence, correct=correct, groups=groups, split="audit")
    elif not isinstance(probs, Predictions) or multilabel or any(array is not None for array in arrays.values()):
        predictions = Predictions(probs=probs, split="audit", multilabel=multilabel, classes=class_names, **arrays)
    top1 = top1 or predictions.top1
    check_request(predictions, calibrate=calibrate, class_names=class_names, gates=gates, top1=top1)
    if predictions.kind == "logits" and not predictions.multilabel:
        refuse_probabilities(predictions.scores)
    if baseline is not None:
        _check_baseline(predictions, baseline)
    if resamples is None:
        resamples = min(1000, max(200, 10_000_000 // predictions.n))
    trained_with = None if trained_with is None else gamma_and_lam(trained_with)
    whole_number("resamples", resamples, least=100, most=10**7, remedy="1000 is usual")
    rows = rows_of(predictions, top1=top1)
    names = _names(predictions.classes if class_names is None else class_names, predictions.n_classes)
    metrics = metric_intervals(predictions, top1=top1, resamples=resamples, seed=seed)
    notes: list[str] = []
    fixes = point = None
    if calibrate is not None:
        tried = calibrator_names(calibrate)
        fixes = compare_fixes(predictions, names=tried, trained_with=_focal(trained_with), top1=top1, seed=seed)
        if fixes is None:
            notes.append("Too few rows, or labels of one class, to compare calibrators.")
        elif fixes.rows < predictions.n:
            notes.append(f"Calibrators were compared on a uniform sample of {fixes.rows:,} rows.")
        if fixes is not None and fixes.zeros:
            notes.append(f"Probabilities have {fixes.zeros}; metrics take them as they are.")
        if fixes is not None and predictions.multilabel:
            notes.append("Each calibrator is one for all labels; MultilabelCalibration can fit one per label.")
    if not predictions.multilabel and not top1:
        point = _operating_point(predictions, trained_with, notes)
    groups = [] if predictions.groups is None or predictions.multilabel else _groups(predictions, rows)
    return Audit(
        verdict=verdict_of(rows.confidence, rows.correct, metrics["ece"]),
        metrics=metrics,
        reliability=_reliability(rows),
        classes=() if rows.predicted is None else tuple(_parts(names, rows.predicted, rows)),
        groups=tuple(groups),
        risk_coverage=risk_coverage(rows.confidence, rows.correct),
        thresholds=tuple(thresholds(rows.confidence, rows.correct)),
        mistakes=() if predictions.multilabel else tuple(_mistakes(predictions, rows, names)),
        fixes=fixes,
        operating_point=point,
        changes=() if baseline is None else tuple(compare_models(rows, rows_of(baseline, top1=top1), seed)),
        rows=predictions.n,
        n_classes=None if top1 else predictions.n_classes,
        notes=tuple(notes),
    )


def check_request(
    predictions: Predictions,
    *,
    calibrate: Sequence[str] | str | None = "auto",
    class_names: Sequence[str] | None = None,
    gates: Sequence[Gate] = (),
    top1: bool = False,
    **_others: Any,
) -> None:
    """Refuse options of `audit` that do not fit the predictions, of which a few rows are enough."""
    calibrator_names(calibrate)
    _names(class_names, predictions.n_classes)
    if not isinstance(top1, bool):
        raise TypeError(f"top1 must be True or False, got {shown(top1)}; it says that columns are wrong and right")
    if top1 and (predictions.multilabel or predictions.n_classes != 2):
        raise ValueError(f"top1 must be of two columns, wrong and right, got {predictions.n_classes}; leave it out")
    if not isinstance(gates, list | tuple) or not all(isinstance(gate, Gate) for gate in gates):
        raise TypeError(f"gates must be a list of Gate, got {shown(gates)}; make them by Gate.parse('ece > 0.05')")
    for gate in gates:
        gate.check(metric_names(predictions, top1=top1))


def _reliability(rows: AuditRows) -> Reliability:
    edges = even_edges(15)
    sums = sums_between(rows.confidence, rows.correct, edges)
    return reliability_of(sums, edges)


def _names(given: Sequence[str] | None, classes: int) -> list[str]:
    if given is None:
        return [str(k) for k in range(classes)]
    names = [str(name) for name in given]
    if len(names) != classes:
        raise ValueError(
            f"class_names must hold one name per class, {classes}, got {len(names)}; in the order of the columns"
        )
    return names


def _groups(predictions: Predictions, rows: AuditRows) -> list[Part]:
    names, member = np.unique(np.asarray(predictions.groups), return_inverse=True)
    return _parts(list(names), member, rows)


def _parts(names: Sequence[Any], member: NDArray[np.int64], rows: AuditRows) -> list[Part]:
    return parts_of(names, member, rows.confidence, rows.correct)


def _mistakes(predictions: Predictions, rows: AuditRows, names: Sequence[str]) -> Iterator[Mistake]:
    wrong = np.flatnonzero(~rows.correct)
    worst = wrong[np.argsort(-rows.confidence[wrong], kind="stable")][:_MISTAKES]
    for row in worst.tolist():
        name = row if predictions.ids is None else predictions.ids[row]
        plain = name.item() if isinstance(name, np.generic) else name
        if rows.predicted is None:
            yield Mistake(plain, float(rows.confidence[row]))
        else:
            label = names[int(predictions.labels[row])]
            yield Mistake(plain, float(rows.confidence[row]), names[rows.predicted[row]], label)


def _focal(trained_with: tuple[float, float] | None) -> tuple[float, float] | None:
    """Of a loss with a distortion to undo."""
    return trained_with if trained_with is not None and trained_with[0] > 0 else None


def _operating_point(
    predictions: Predictions, trained_with: tuple[float, float] | None, notes: list[str]
) -> OperatingPoint | None:
    if trained_with is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbabilityWarning)
            return operating_point(predictions, trained_with=trained_with, resamples=200)
    except ValueError as error:
        notes.append(f"No operating point for the next training: {error}")
        return None


def _check_baseline(predictions: Predictions, baseline: Predictions) -> None:
    if not isinstance(baseline, Predictions):
        raise TypeError(f"baseline must be Predictions, got {type(baseline).__name__}; make them of scores and labels")
    same = baseline.labels.shape == predictions.labels.shape and bool((baseline.labels == predictions.labels).all())
    if not same or baseline.multilabel != predictions.multilabel:
        raise ValueError(
            f"baseline must hold the same rows in the same order, got {baseline.n} rows whose labels are not those of "
            f"the {predictions.n} rows audited; sort both by id"
        )
