"""Calibration of an event's probability as a statistician reports it: numbers with intervals, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy.special import expit, ndtr

from focalcal.core.arrays import Array
from focalcal.core.checks import whole_number
from focalcal.core.display import Displayed, percent, ratio
from focalcal.metrics.bootstrap import NULL_DRAWS, Interval, interval
from focalcal.metrics.bootstrap_statistics import Draw
from focalcal.metrics.corp import Corp, corp_of
from focalcal.metrics.event_curve import COARSEST, FINEST, CurveErrors, EventCells, EventCurve, EventDraws
from focalcal.metrics.event_metrics import citl_of, recalibration
from focalcal.metrics.event_rows import NEVER_LESS_THAN, bounded, read_sampled_event
from focalcal.metrics.proper import binary_brier, binary_nll
from focalcal.metrics.ranking import auroc_influence
from focalcal.metrics.robust import Robust
from focalcal.predictions.inputs import InputOptions, Inputs

if TYPE_CHECKING:
    from focalcal.metrics.bootstrap import Interval

CURVE = ("ici", "e50", "e90", "emax")


@dataclass(frozen=True)
class Spiegelhalter:
    """z = sum (y - p)(1 - 2 p) / sqrt(sum (1 - 2 p)^2 p (1 - p)), normal for a calibrated model, and its p value.

    Attributes:
        z: the statistic.
        p: of the two-sided test.

    >>> round(event_calibration([0.1, 0.2, 0.2, 0.3, 0.6, 0.8], [0, 0, 1, 1, 0, 1]).spiegelhalter.p, 2)
    0.28
    """

    z: float
    p: float


@dataclass(frozen=True, eq=False, repr=False)
class EventCalibration(Displayed):
    """How well the probability p of one event agrees with what happened, y; intervals at `level`.

    Attributes:
        event: the name of the class, if labels were names.
        rows, events: how many rows count, and in how many of them the event happened, whatever they weigh.
        clusters: how many clusters the rows come in; None if each row is taken for independent.
        weighted: whether rows have weights.
        level: of the intervals.
        predicted_rate, observed_rate, oe: mean p, mean y, and y by p: above 1 events are under-predicted.
        slope, intercept: of logit P(y = 1) = intercept + slope logit p; 1 and 0 are calibrated.
        citl: calibration in the large: the intercept with the slope fixed at 1.
        ici, e50, e90, emax: mean, median, 90 % quantile and maximum over rows of |p - c(p)|, c the flexible curve.
        brier, nll: mean (p - y)^2, half of the two-class score, and mean -log p or -log(1 - p); their decompositions
            are `corp.brier` and `corp.nll`.
        auroc: the chance that a row with the event has the higher p.
        spiegelhalter: the test of calibration by Spiegelhalter (1986).
        curve, corp: the flexible curve with its pointwise interval, and the isotonic one.
        notes: what is undefined, and why; what was bounded.

    >>> found = event_calibration([0.1, 0.2, 0.2, 0.3, 0.6, 0.8], [0, 0, 1, 1, 0, 1])
    >>> found.events, round(found.predicted_rate.estimate, 3)
    (3, 0.367)
    """

    event: Any
    rows: int
    events: int
    clusters: int | None
    weighted: bool
    level: float
    predicted_rate: Interval
    observed_rate: Interval
    oe: Interval
    slope: Interval
    intercept: Interval
    citl: Interval
    ici: Interval
    e50: Interval
    e90: Interval
    emax: Interval
    brier: Interval
    nll: Interval
    auroc: Interval
    spiegelhalter: Spiegelhalter
    curve: EventCurve
    corp: Corp
    notes: tuple[str, ...] = ()

    @property
    def intervals(self) -> dict[str, Interval]:
        """Every number that has an interval, by its name: what gates are asked of."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Interval)}

    @property
    def sentence(self) -> str:
        """The finding in words, with the numbers that it rests on."""
        return event_sentence(self)

    def frame(self) -> dict[str, list[Any]]:
        """One row per number."""
        found = self.intervals.values()
        columns: dict[str, list[Any]] = {"metric": list(self.intervals)}
        return columns | {
            name: [getattr(value, name) for value in found] for name in ("estimate", "low", "high", "chance")
        }

    def __str__(self) -> str:
        """The sentence, the numbers and the notes."""
        width = max(map(len, self.intervals))
        lines = [f"  {name:<{width}}  {value}" for name, value in self.intervals.items()]
        test = f"  Spiegelhalter's z {self.spiegelhalter.z:.2f}, p = {self.spiegelhalter.p:.3g}"
        return "\n".join([self.sentence, *lines, test, *self.notes])


def event_calibration(
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    clusters: Any = None,
    level: float = 0.95,
    resamples: int = 500,
    seed: int = 0,
    ignore_index: int | None = None,
    **inputs: Unpack[InputOptions],
) -> EventCalibration:
    """Calibration of the probability of one event, with intervals.

    Scores and labels are what `focalcal.predictions.read_inputs` takes. The event is the second of two classes or,
    of more, the one that `positive` names, against the rest; of `confidence` and `correct` that the prediction is
    right. `sample_weight` (N,) is how many rows of the population each row stands for: estimates are those of rows
    repeated so often, only ratios matter, and rows of weight 0 are left out; intervals take each given row, or each
    of the `clusters` (N,), for one observation. Weights and clusters of `Predictions` are used unless others are
    given.

    Rates, O/E, Brier score and AUROC have Wilson's interval at the effective number of rows, slope and intercepts the
    sandwich's, with quantiles of t; ICI, E50, E90 and Emax come from `resamples` of the bootstrap and say what chance
    alone gives. `python benchmarks/interval_coverage.py --event` measures how often the truth is inside.

    Args:
        probs: (N, K), or in any other form of `focalcal.predictions.read_inputs`, `Predictions` among them.
        labels: (N,), class indices or names.
        logits: in place of probs.
        clusters: (N,), names of rows that are not independent of each other.
        level: of the intervals.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        ignore_index: rows with this label are left out.
        inputs: those of `focalcal.predictions.read_inputs`.

    Returns:
        Every figure of the event, with its interval.

    >>> found = event_calibration([0.1, 0.2, 0.2, 0.3, 0.6, 0.8], [0, 0, 1, 1, 0, 1])
    >>> round(found.oe.estimate, 2), round(found.slope.estimate, 2)
    (1.36, 0.57)
    """
    whole_number("resamples", resamples, least=20, most=10**6, remedy="500 is usual")
    whole_number("seed", seed, least=0, most=2**63 - 1, remedy="0 is usual")
    event, robust = read_sampled_event(
        probs, labels, logits=logits, clusters=clusters, level=level, ignore_index=ignore_index, **inputs
    )
    return _result(event, robust, resamples, seed)


def _result(event: Inputs, robust: Robust, resamples: int, seed: int) -> EventCalibration:
    p, y, level = event.scores, event.labels.astype(np.float64), robust.level
    numbers = {**_rates(p, y, robust), **_recalibration(event, robust), **_scores(p, y, robust)}
    fine = CurveErrors(EventCells(event, FINEST))
    return EventCalibration(
        event=None if event.classes is None else event.classes[0],
        rows=len(y),
        events=int(y.sum()),
        clusters=None if robust.cluster is None else robust.units,
        weighted=event.weights is not None,
        level=level,
        **{name: Interval(estimate, low, high, level) for name, (estimate, low, high) in numbers.items()},
        **_distances(event, fine, robust, resamples, seed),
        spiegelhalter=spiegelhalter_of(p, y, robust),
        curve=fine.curve(robust),
        corp=corp_of(p, y, robust.weights, level=level, resamples=min(resamples, 200), seed=seed),
        notes=tuple(_notes(event)),
    )


def _rates(p: Array, y: Array, robust: Robust) -> dict[str, tuple[float, float, float]]:
    share = robust.weights / robust.weights.sum()
    expected, observed = float(share @ p), float(share @ y)
    found = {"observed_rate": (observed, *robust.share(observed, robust.error(share * (y - observed))))}
    spread = robust.error(share * (p - expected))
    alike = robust.units > 1 and spread <= 1e-15 * expected
    found["predicted_rate"] = (expected, expected, expected) if alike else (expected, *robust.share(expected, spread))
    if expected == 0:
        return found | {"oe": (math.inf,) * 3 if observed else (math.nan, 0.0, math.inf)}
    ratio = observed / expected
    low, high = robust.share(observed, robust.error(share * (y - ratio * p)))
    return found | {"oe": (ratio, low / expected, high / expected)}


def _recalibration(event: Inputs, robust: Robust) -> dict[str, tuple[float, float, float]]:
    """Slope, intercept and calibration in the large; anything is compatible with what has no finite value."""
    whole, y = Draw(robust.weights[:, None]), event.labels.astype(np.float64)
    x = EventCells(event).x
    design = np.stack([np.ones_like(x), x], 1)
    intercept, slope = recalibration(event, FINEST)(whole)[:, 0].tolist()
    shift = float(citl_of(event, FINEST)(whole)[0])
    found = {"slope": (slope, -math.inf, math.inf), "intercept": (intercept, -math.inf, math.inf)}
    if math.isfinite(slope):
        spread = _standard_errors(design, intercept + slope * x, y, robust)
        for name, value, error in (("slope", slope, spread[1]), ("intercept", intercept, spread[0])):
            found[name] = (value, *robust.symmetric(value, error))
    found["citl"] = (shift, -math.inf, math.inf)
    if math.isfinite(shift):
        found["citl"] = (shift, *robust.symmetric(shift, _standard_errors(design[:, :1], x + shift, y, robust)[0]))
    return found


def _standard_errors(design: Array, eta: Array, y: Array, robust: Robust) -> Array:
    """The sandwich's, of a logistic regression at its optimum."""
    fitted = expit(eta)
    inverse = np.linalg.inv((design * (robust.weights * fitted * (1 - fitted))[:, None]).T @ design)
    score = design * (robust.weights * (y - fitted))[:, None]
    return np.sqrt(np.diag(robust.covariance(score @ inverse)))


def _scores(p: Array, y: Array, robust: Robust) -> dict[str, tuple[float, float, float]]:
    """Brier score, log score and AUROC."""
    happened, share = y > 0, robust.weights / robust.weights.sum()
    brier, nll = binary_brier(p, happened), binary_nll(p, happened)
    means = float(share @ brier), float(share @ nll)
    found = {"brier": (means[0], *robust.share(means[0], robust.error(share * (brier - means[0]))))}
    found["nll"] = (math.inf,) * 3  # one infinite row makes the mean of all rows there are infinite
    if math.isfinite(means[1]):
        found["nll"] = (means[1], *robust.positive(means[1], robust.error(share * (nll - means[1]))))
    if happened.all() or not happened.any():
        return found | {"auroc": (math.nan, 0.0, 1.0)}
    area, influence = auroc_influence(p, happened, robust.weights)
    if p.min() == p.max():
        return found | {"auroc": (0.5,) * 3}
    fewest = min(robust.of(happened).effective, robust.of(~happened).effective)
    return found | {"auroc": (area, *robust.share(area, robust.error(influence), fewest))}


def spiegelhalter_of(p: Array, y: Array, robust: Robust) -> Spiegelhalter:
    """The test by rows; with clusters its variance is that of what they add."""
    each = robust.weights * (y - p) * (1 - 2 * p)
    if robust.cluster is None:
        variance = float(np.square(robust.weights * (1 - 2 * p)) @ (p * (1 - p)))
    else:
        variance = float(np.square(np.bincount(robust.cluster, each)).sum())
    if variance == 0:
        return Spiegelhalter(math.nan, math.nan)
    z = float(each.sum()) / math.sqrt(variance)
    return Spiegelhalter(z, float(2 * ndtr(-abs(z))))


def _distances(event: Inputs, fine: CurveErrors, robust: Robust, resamples: int, seed: int) -> dict[str, Interval]:
    """ICI, E50, E90 and Emax, with the bootstrap's intervals."""
    estimates = fine(Draw(robust.weights[:, None]))[:, 0].tolist()
    draws = EventDraws(CurveErrors(EventCells(event, COARSEST)), event, robust, seed)
    values = np.concatenate(list(draws.resampled(resamples)), 1)
    null = np.concatenate(list(draws.calibrated(min(resamples, NULL_DRAWS))), 1)
    return {
        name: interval(estimates[at], values[at], null[at], robust.level, "adjusted", (0.0, 1.0))
        for at, name in enumerate(CURVE)
    }


def _notes(event: Inputs) -> Iterator[str]:
    """What has no value, and why."""
    p, y = event.scores, event.labels
    assert event.log_odds is not None
    infinite = int(np.count_nonzero(~np.isfinite(event.log_odds)))
    if not y.any() or y.all():
        outcome = "No event happened" if not y.any() else "The event happened in every row"
        yield f"{outcome}: slope, intercept and AUROC are undefined."
    elif np.ptp(bounded(event.log_odds)) == 0:
        yield "All probabilities are equal: the calibration slope and intercept are undefined."
    elif p[y].min() >= p[~y].max() or p[y].max() <= p[~y].min():
        yield "The probabilities separate the events from the rest: the calibration slope is infinite."
    if infinite:
        yield (
            f"{infinite:,} rows have a probability of 0 or 1; slope, intercepts and the curve take them for "
            f"{NEVER_LESS_THAN:g} from the end, or for the most extreme other probability beyond that."
        )


def event_sentence(found: EventCalibration) -> str:
    """On average: expected, observed, O/E; then whether the probabilities are too extreme, by the slope."""
    return " ".join(part for part in (_on_average(found), _spread(found)) if part)


def _within(found: Interval, name: str) -> str:
    return (
        f"({name} {ratio(found.estimate)}, {100 * found.level:g} % interval {ratio(found.low)} to {ratio(found.high)})"
    )


def _on_average(found: EventCalibration) -> str:
    expected, observed, oe = found.predicted_rate.estimate, found.observed_rate.estimate, found.oe
    rows = "1 row" if found.rows == 1 else f"{found.rows:,} rows"
    rows += "" if found.clusters is None else f" in {found.clusters:,} clusters"
    if math.isnan(oe.estimate):
        return f"No event was predicted and none happened in {rows}: every probability is 0."
    if math.isinf(oe.estimate):
        return f"Events are under-predicted: every probability is 0, and {percent(observed)} observed in {rows}."
    seen = f"{percent(observed)} observed" if found.events else f"none observed in {rows}"
    numbers = f"{percent(expected)} expected, {seen} {_within(oe, 'O/E')}"
    if oe.low > 1:
        return f"Events are under-predicted: {numbers}."
    if oe.high < 1:
        return f"Events are over-predicted: {numbers}."
    return f"There is no evidence that events are over- or under-predicted on average: {numbers}."


def _spread(found: EventCalibration) -> str:
    slope = found.slope
    if not math.isfinite(slope.estimate):
        return ""
    within = _within(slope, "calibration slope")
    if slope.high < 0:
        return f"High probabilities go with fewer events {within}: is it the probability of the other class?"
    if slope.high < 1:
        return f"The probabilities are too extreme {within}."
    if slope.low > 1:
        return f"The probabilities are not extreme enough {within}."
    return f"There is no evidence that they are too extreme or not extreme enough {within}."
