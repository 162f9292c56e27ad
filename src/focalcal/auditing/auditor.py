"""The audit: a verdict, metrics with intervals, where it is worst, what would fix it, and against another model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.auditing.comparison import Change, compare_models
from focalcal.auditing.decisions import Decisions, check_costs, costs_of, decision_metric_names, decisions_of
from focalcal.auditing.diagrams import bins_of, calibrated_bins
from focalcal.auditing.event import Event, event_columns, event_metric_names, events_of
from focalcal.auditing.fixes import Fixes, calibrator_names, compare_fixes
from focalcal.auditing.gates import Gate, Judged
from focalcal.auditing.metric_intervals import metric_intervals, metric_names
from focalcal.auditing.parts import Part, group_families, parts_of
from focalcal.auditing.periods import Periods, periods_of
from focalcal.auditing.record import audit_record, flat_record, log_to
from focalcal.auditing.rows import AuditRows, rows_of
from focalcal.auditing.verdict import Verdict, verdict_of
from focalcal.core.checks import ProbabilityWarning, shown, whole_number
from focalcal.core.display import html_table, ratio
from focalcal.metrics.selective import Mistake, RiskCoverage, Threshold, risk_coverage, thresholds
from focalcal.pages.numbers import Percent, four
from focalcal.posthoc import OperatingPoint, operating_point
from focalcal.posthoc.calibrator_inputs import refuse_probabilities
from focalcal.posthoc.comparison import LEAST_ROWS
from focalcal.posthoc.operating_point import gamma_and_lam
from focalcal.posthoc.selective_threshold import SelectiveThreshold, selective_threshold
from focalcal.predictions import Predictions
from focalcal.predictions.verbalised import OFTEN, constant_note

if TYPE_CHECKING:
    from focalcal.metrics import Interval
    from focalcal.metrics.reliability import Reliability

TrainedWith = str | tuple[float, float]
SURVEY = "Rows count by their weights"
_MISTAKES = 10
_WORST = 3  # groups in a sentence
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ABOUT = ("title", "model", "data", "date")


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What was found. `print` shows the verdict; `html(path)` writes a page; `dict(audit)` is flat, for trackers.

    Attributes:
        verdict: whether confidences can be trusted, and what that rests on.
        metrics: with 95 % intervals and what chance alone gives.
        reliability: the bins of the diagram.
        classes, groups: each by itself, worst first, with intervals corrected for their number; groups if there are
            any.
        risk_coverage, thresholds, mistakes: what a threshold on the confidence buys, and the most confident wrong
            predictions.
        fixes: calibrators, cross-fitted; None if none was asked for or there are too few rows.
        operating_point: for the next training, where it was said how the network was trained.
        changes: against the baseline, if there is one.
        rows: how many.
        n_classes: K; None where only confidences are known.
        events: of two classes the second, or those that were asked for: rates, O/E, slope and more.
        periods: the same in the order of time, if times are known.
        decisions: net benefit of the event, what a threshold flags, and what given costs come to.
        calibrated: the bins after the recommended calibrator, if there is one.
        abstention: the confidence above which at most 5 % of answers are wrong, with a guarantee; None of several
            labels per row and of rows with weights.
        sample: rows that everything but the estimates comes from, of more rows than are looked at one by one.
        notes: what was inferred or left out.
        about: "title", "model", "data" and "date", as far as they are known.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> found = audit(logits=3 * logits, labels=labels, calibrate=None)  # three times too confident
    >>> found.verdict.finding, found.rows
    (<Finding.OVERCONFIDENT: 'over-confident'>, 2000)
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
    events: tuple[Event, ...] = ()
    periods: Periods | None = None
    decisions: Decisions | None = None
    calibrated: Reliability | None = None
    abstention: SelectiveThreshold | None = None
    sample: int | None = None
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """The verdict in a sentence: of two classes on the event, else on the confidence."""
        return self.verdict.sentence if self.event is None else self.event.calibration.sentence

    @property
    def where(self) -> str:
        """For which groups the scores are off beyond chance, worst first, and since which period; "" for none."""
        off = [f"{part.name} ({Percent(part.gap, signed=True).text} points)" for part in self.shown_groups if part.off]
        said = [f"for {', '.join(off[:_WORST])}{f' and {len(off) - _WORST} more' * (len(off) > _WORST)}"] if off else []
        since = "" if self.periods is None else self.periods.since
        return f"Off beyond chance {' and '.join([*said, *[f'since {since}'] * bool(since)])}." if said or since else ""

    @property
    def event(self) -> Event | None:
        """The event of two classes, which the headline is of."""
        return self.events[0] if self.n_classes == 2 and len(self.events) == 1 else None

    @property
    def shown_groups(self) -> tuple[Part, ...]:
        """The groups that the headline's question is asked of: of the event, else of the confidence."""
        return self.groups if self.event is None else self.event.groups

    @property
    def action(self) -> str:
        """The next step in a line: what to apply, and what that does on rows it was not fitted on."""
        fixes, arrow = self.fixes, "\N{RIGHTWARDS ARROW}"
        if fixes is None or fixes.chosen is None:
            return (
                "" if fixes is None else "Leave the probabilities as they are: no calibrator is shown to lower the NLL."
            )
        after = f"ECE {Percent(fixes.raw_ece).text} {arrow} {Percent(fixes.chosen.ece).text}"
        if self.event is not None and self.event.oe_after is not None:
            after = f"O/E {ratio(self.event.calibration.oe.estimate)} {arrow} {ratio(self.event.oe_after)}"
        said = f"Apply {fixes.step}: NLL {four(fixes.raw_nll).text} {arrow} {four(fixes.chosen.nll).text}, {after}."
        caution = "" if self.decisions is None else self.decisions.caution
        return f"{said} {caution}".rstrip()

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
        return audit_record(self)

    def keys(self) -> list[str]:
        """The names of the numbers of `dict(audit)`: `ece`, `ece_low`, `ece_high` and so on."""
        return list(flat_record(self))

    def __getitem__(self, name: str) -> float:
        """One of these numbers."""
        return flat_record(self)[name]

    def log_to(self, tracker: Any) -> None:
        """Log these numbers to `mlflow`, a run of Weights & Biases, or what has `log_metrics` or `log` as they have.

        Where it has `log_text` and `log_dict`, as `mlflow` has, it is given the page and the record, too.
        """
        log_to(self, tracker)

    def page(self) -> str:
        """The page as HTML."""
        from focalcal.auditing.page import audit_page  # the page kit is loaded where a page is asked for

        return audit_page(self)

    def html(self, path: Any) -> None:
        """Write a page that needs nothing else."""
        from focalcal.auditing.page import write_audit_page

        write_audit_page(self, path)

    def pdf(self, path: Any) -> None:
        """Write the page as PDF, by a Chromium, Chrome or Edge that is installed."""
        from focalcal.pages.pdf import write_pdf

        write_pdf(self.page(), path)

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.headline)}</p>{html_table(self.frame())}"

    def __repr__(self) -> str:
        """The verdict and the metrics."""
        width = max(map(len, self.metrics))
        lines = [f"  {name:<{width}}  {interval}" for name, interval in self.metrics.items()]
        fix = [] if self.fixes is None else [self.fixes.sentence]
        return "\n".join([self.headline, *lines, *fix])


def audit(
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    confidence: Any = None,
    correct: Any = None,
    groups: Any = None,
    weights: Any = None,
    clusters: Any = None,
    times: Any = None,
    positive: Any = None,
    event: Any = None,
    multilabel: bool = False,
    top1: bool = False,
    calibrate: Sequence[str] | str | None = "auto",
    baseline: Predictions | None = None,
    trained_with: TrainedWith | None = None,
    cost: Any = None,
    threshold: float | None = None,
    class_names: Sequence[str] | None = None,
    about: Mapping[str, str] | None = None,
    gates: Sequence[Gate] = (),
    resamples: int | None = None,
    seed: int = 0,
) -> Audit:
    """Look at held-out predictions and say how far their confidences can be trusted.

    Args:
        probs: `Predictions`, whose groups, weights, clusters, times and ids are used, or (N, K) probabilities, or
            `logits=`.
        labels: (N,), in any form that `Predictions` take.
        logits: (N, K), in place of probs.
        confidence: (N,), how sure each prediction is, where no more is known.
        correct: (N,), whether each prediction is right.
        groups: the name of a group for each row, or several, {"site": ..., "age": ...}, whose intersections are looked
            at, too.
        weights: how many rows of the population each row stands for.
        clusters: what rows of one patient or customer share: they are resampled together.
        times: when each row was predicted, for a panel in the order of time.
        positive: of one column of scores, the class that it is of.
        event: the class, or of more than two classes those, whose probability is audited against the rest; of two
            classes the second unless it is named, or none with False.
        multilabel: True where every column is a yes-or-no question of its own.
        top1: of two columns the second is the confidence, and the label whether it is right.
        calibrate: "auto" for every calibrator, a name or names of CALIBRATORS, or None.
        baseline: another model's predictions of the same rows in the same order.
        trained_with: the loss of the network, "ce" or (gamma, lam): what to train with next is said where this is
            known.
        cost: of mistakes, {"fp": 1, "fn": 20} of an event or a matrix (K, K), cost[label][decision]; or as text.
        threshold: of an event, from which on to act; by default that of the costs.
        class_names: one per class; by default those of the predictions, or their numbers.
        about: "title", "model", "data" and "date" of the page.
        gates: that the result will be asked for: one whose metric it does not have is refused at once.
        resamples: of the bootstrap; by default 1,000, of more than 10,000 rows fewer, 200 at least.
        seed: of the bootstrap and of folds.

    Returns:
        What was found: print it, write its page, or read its fields.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> audit(logits=logits, labels=labels, calibrate=None).verdict.low < 0  # calibrated, as far as rows can tell
    True
    """
    about_rows = {"groups": groups, "weights": weights, "clusters": clusters, "times": times}
    arrays = {"logits": logits, "labels": labels, "positive": positive}
    predictions = probs
    if confidence is not None or correct is not None:
        if any(other is not None for other in (probs, *arrays.values())):
            raise TypeError("confidence and correct take the place of scores and labels; give one or the other")
        predictions = Predictions(confidence=confidence, correct=correct, split="audit", **about_rows)
    elif not isinstance(probs, Predictions) or multilabel or any(v is not None for v in (arrays | about_rows).values()):
        predictions = Predictions(
            probs=probs, split="audit", multilabel=multilabel, classes=class_names, **arrays, **about_rows
        )
    top1 = predictions.top1 if top1 is False else top1  # else `check_request` judges it
    check_request(
        predictions, calibrate=calibrate, class_names=class_names, gates=gates, top1=top1, event=event, cost=cost,
        threshold=threshold, about=about,
    )  # fmt: skip
    if predictions.kind == "logits" and not predictions.multilabel:
        refuse_probabilities(predictions.scores)
    if baseline is not None:
        _check_baseline(predictions, baseline)
    if resamples is None:
        resamples = min(1000, max(200, 10_000_000 // predictions.n))
    loss = None if trained_with is None else loss_of(trained_with)
    whole_number("resamples", resamples, least=100, most=10**7, remedy="1000 is usual")
    rows = rows_of(predictions, top1=top1)
    names = _names(predictions.classes if class_names is None else class_names, predictions.n_classes)
    metrics = metric_intervals(predictions, top1=top1, resamples=resamples, seed=seed)
    notes = _design_notes(predictions) + list(predictions.provenance.get("notes", ()))
    if top1 and predictions.n >= LEAST_ROWS and not predictions.provenance.get("notes"):
        values, times = np.unique(rows.confidence, return_counts=True)
        if times.max() >= OFTEN * predictions.n:
            notes.append(constant_note(float(values[times.argmax()]), float(times.max() / predictions.n)))
    fixes = point = None
    if calibrate is not None:
        tried = calibrator_names(calibrate)
        fixes = compare_fixes(predictions, names=tried, trained_with=_focal(loss), top1=top1, seed=seed)
        notes += _fix_notes(fixes, predictions)
    if not predictions.multilabel and not top1:
        point = _operating_point(predictions, loss, notes)
    families, said = group_families(predictions)
    notes += said
    sure, right, design = rows.confidence, rows.correct, rows.design
    columns = event_columns(predictions, event, names, top1=top1)
    events = events_of(predictions, columns, names, design, families, fixes, resamples=resamples, seed=seed)
    only = predictions.n_classes == 2 and len(events) == 1
    metrics = {name: value for each in events for name, value in each.metrics(only=only).items()} | metrics
    classes = () if rows.predicted is None else parts_of([(names, rows.predicted)], sure, right, design)
    cost = costs_of(cost)
    headed = events[0] if events and (only or isinstance(cost, Mapping) or threshold is not None) else None
    decisions = decisions_of(predictions, headed, design, fixes, cost, threshold)
    metrics |= {} if decisions is None else decisions.metrics()
    periods = None
    if predictions.times is not None and not predictions.multilabel:
        p, happened = (events[0].probability, predictions.labels == columns[0]) if only else (sure, right)
        periods = periods_of(predictions.times, p, happened, design, families, rare=only and events[0].rare)
    return Audit(
        verdict=verdict_of(rows, metrics["ece"]),
        metrics=metrics,
        reliability=bins_of(sure, right, design),
        calibrated=None if predictions.multilabel else calibrated_bins(fixes, rows),
        classes=tuple(classes),
        groups=tuple(parts_of(families, sure, right, design) if families else ()),
        events=events,
        periods=periods,
        decisions=decisions,
        risk_coverage=risk_coverage(sure, right, design.weights),
        abstention=_abstention(predictions, rows),
        thresholds=tuple(thresholds(sure, right, design.weights)),
        mistakes=() if predictions.multilabel else tuple(_mistakes(predictions, rows, names)),
        fixes=fixes,
        operating_point=point,
        changes=() if baseline is None else tuple(compare_models(rows, rows_of(baseline, top1=top1), seed)),
        rows=predictions.n,
        n_classes=None if top1 else predictions.n_classes,
        notes=tuple(notes),
        about=_about(predictions, about),
    )


def loss_of(trained_with: TrainedWith) -> tuple[float, float]:
    """(gamma, lam) of "ce", of a pair, or of text such as "3,1"."""
    if isinstance(trained_with, str):
        gamma, comma, lam = trained_with.partition(",")
        try:
            trained_with = (0.0, 0.0) if trained_with.lower() == "ce" else (float(gamma), float(lam) if comma else 0.0)
        except ValueError:
            raise ValueError(
                f"trained_with must be ce, or the loss's gamma and lam such as 3,1, got {trained_with!r}; leave it out "
                "where the network was trained by another loss"
            ) from None
    return gamma_and_lam(trained_with)


def _about(predictions: Predictions, given: Mapping[str, str] | None) -> dict[str, str]:
    """What is given, and the model and the data that the predictions' provenance names."""
    known = {name: str(predictions.provenance[name]) for name in ("model", "data") if name in predictions.provenance}
    return known | dict(given or {})


def _design_notes(predictions: Predictions) -> list[str]:
    """What was made of weights and clusters."""
    notes = []
    if predictions.weights is not None and not predictions.multilabel:
        weights = predictions.weights
        effective = weights.sum() ** 2 / (weights**2).sum()
        notes.append(
            f"{SURVEY}, which are taken for those of a survey: {predictions.n:,} rows stand for "
            f"{weights.sum():,.6g}, and tell as much as {effective:,.0f} of equal weight."
        )
    if predictions.clusters is not None:
        number = len(np.unique(predictions.clusters))
        notes.append(f"Intervals are over {number:,} clusters, whose rows were resampled together.")
    return notes


def _fix_notes(fixes: Fixes | None, predictions: Predictions) -> list[str]:
    if fixes is None:
        return ["Too few rows or clusters, or labels of one class, to compare calibrators."]
    notes = []
    if fixes.compared.said:
        notes.append(f"Calibrators were compared on {fixes.compared.said}.")
    if fixes.zeros:
        notes.append(f"Probabilities have {fixes.zeros}; metrics take them as they are.")
    if predictions.multilabel:
        notes.append("Each calibrator is one for all labels; MultilabelCalibration can fit one per label.")
    return notes


def check_request(
    predictions: Predictions,
    *,
    calibrate: Sequence[str] | str | None = "auto",
    class_names: Sequence[str] | None = None,
    gates: Sequence[Gate] = (),
    top1: bool = False,
    event: Any = None,
    cost: Any = None,
    threshold: float | None = None,
    about: Mapping[str, str] | None = None,
    **_others: Any,
) -> None:
    """Refuse options of `audit` that do not fit the predictions, of which a few rows are enough."""
    calibrator_names(calibrate)
    names = _names(predictions.classes if class_names is None else class_names, predictions.n_classes)
    if not isinstance(top1, bool):
        raise TypeError(f"top1 must be True or False, got {shown(top1)}; it says that columns are wrong and right")
    if top1 and (predictions.multilabel or predictions.n_classes != 2):
        raise ValueError(f"top1 must be of two columns, wrong and right, got {predictions.n_classes}; leave it out")
    if not isinstance(gates, list | tuple) or not all(isinstance(gate, Gate) for gate in gates):
        raise TypeError(f"gates must be a list of Gate, got {shown(gates)}; make them by Gate.parse('ece > 0.05')")
    columns = event_columns(predictions, event, names, top1=top1)
    check_costs(costs_of(cost), threshold, predictions.n_classes, len(columns))
    of_decisions = decision_metric_names(cost, threshold, len(columns))
    for gate in gates:
        gate.check([*event_metric_names(columns, names), *of_decisions, *metric_names(predictions, top1=top1)])
    if predictions.multilabel and (predictions.weights is not None or predictions.clusters is not None):
        raise ValueError("weights and clusters are for one label per row; leave them out of predictions of several")
    if about is not None and (not isinstance(about, Mapping) or not set(about) <= set(_ABOUT)):
        raise ValueError(f"about must hold {', '.join(_ABOUT)} and no more, got {shown(about)}")


def _abstention(predictions: Predictions, rows: AuditRows) -> SelectiveThreshold | None:
    """Of one row per cluster, since the promise needs independent rows."""
    if predictions.multilabel or rows.design.weights is not None:
        return None
    if rows.design.clusters is None:
        return selective_threshold(rows.confidence, rows.correct)
    first = np.unique(rows.design.clusters, return_index=True)[1]
    return selective_threshold(rows.confidence[first], rows.correct[first])


def _names(given: Sequence[str] | None, classes: int) -> list[str]:
    if given is None:
        return [str(k) for k in range(classes)]
    names = [str(name) for name in given]
    if len(names) != classes:
        raise ValueError(
            f"class_names must hold one name per class, {classes}, got {len(names)}; in the order of the columns"
        )
    return names


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
    same = baseline.labels.shape == predictions.labels.shape
    if predictions.top1 and baseline.top1:  # labels say who is right, and both may have ids
        known = predictions.ids is not None and baseline.ids is not None
        same = same and (not known or np.array_equal(np.asarray(predictions.ids), np.asarray(baseline.ids)))
    else:
        same = same and bool((baseline.labels == predictions.labels).all())
    if not same or baseline.multilabel != predictions.multilabel:
        raise ValueError(
            f"baseline must hold the same rows in the same order, got {baseline.n} rows whose labels are not those of "
            f"the {predictions.n} rows audited; sort both by id"
        )
