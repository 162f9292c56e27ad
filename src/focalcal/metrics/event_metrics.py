"""The numbers of one event's probability: rates, O/E, recalibration on the log odds, distance of the flexible curve.

Each is a function of resamples (`Draw`), of which the rows as they are is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.arrays import Array
from focalcal.core.checks import one_of
from focalcal.metrics.bootstrap_statistics import Draw
from focalcal.metrics.event_curve import COARSEST, FINEST, KNOTS, CurveErrors, EventCells, fit_logistic
from focalcal.metrics.event_rows import event_of, read_event
from focalcal.metrics.sources import Source
from focalcal.predictions.inputs import Inputs

if TYPE_CHECKING:
    from focalcal.metrics.sources import Statistic


class FromEvent(Source):
    """`of(rows, most, **options)` makes a function of resamples from the rows of an event (`read_event`).

    `most` is how many cells of equal log odds it may take the rows to.
    """

    read = staticmethod(read_event)

    @staticmethod
    def event(given: Inputs, ignore_index: int | None) -> Inputs:
        """The rows of the event, of what is not yet those: that the prediction is right, or the second class."""
        return given if given.log_odds is not None else event_of(given, ignore_index=ignore_index)

    @property
    def needs_classes(self) -> bool:
        """The probability of the event is enough."""
        return False

    def measure(self, given: Inputs, ignore_index: int | None, options: dict[str, Any]) -> float:
        """The metric of the rows as they are."""
        event = self.event(given, ignore_index)
        weights = np.ones(len(event.scores)) if event.weights is None else event.weights
        return float(self.of(event, FINEST, **options)(Draw(weights[:, None]))[0])

    def of_outcomes(self, confidence: Array, correct: Array, **options: Any) -> float:
        """The metric of probabilities (n,) and outcomes (n,) bool."""
        return self.measure(read_event(confidence=confidence, correct=correct), None, options)

    def resample_event(self, event: Inputs, **options: Any) -> Statistic:
        """The metric of many resamples at once."""
        return self.of(event, COARSEST, **options)

    def resample_outcomes(self, confidence: Array, correct: Array, **options: Any) -> Statistic:
        """The same of probabilities (n,) and outcomes (n,) bool."""
        return self.resample_event(read_event(confidence=confidence, correct=correct), **options)


class OfOutcomeDraws:
    """A statistic of an event where draws say whether the most probable of two classes is right."""

    def __init__(self, statistic: Statistic, event: Inputs) -> None:
        self._statistic, self._predicted = statistic, (event.scores > 0.5)[:, None]

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        if draw.correct is not None:
            draw = Draw(draw.weights, None, np.where(self._predicted, draw.correct, 1 - draw.correct))
        return self._statistic(draw)


def predicted_rate_of(event: Inputs, most: int) -> Statistic:
    """The mean probability of the event: the expected share of events, E / n."""
    return lambda draw: event.scores @ draw.weights / draw.weights.sum(0)


def observed_rate_of(event: Inputs, most: int) -> Statistic:
    """The share of rows where the event happened, O / n."""
    outcome = event.labels.astype(np.float64)
    return lambda draw: draw.right(outcome).sum(0) / draw.weights.sum(0)


def oe_of(event: Inputs, most: int) -> Statistic:
    """Observed by expected events, sum y / sum p: above 1 events are under-predicted, below 1 over-predicted.

    inf where no event was expected and some happened; nan where none was expected and none happened.
    """
    outcome = event.labels.astype(np.float64)

    def ratio(draw: Draw) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return draw.right(outcome).sum(0) / (event.scores @ draw.weights)

    return ratio


def recalibration(event: Inputs, most: int) -> Callable[[Draw], Array]:
    """Intercept and slope, (2, resamples), of logit P(y = 1) = intercept + slope logit p by maximum likelihood.

    The slope is +-inf where the probabilities separate events from the rest, and both are nan where they are all
    equal or the outcomes are.
    """
    cells = EventCells(event, most)
    design = np.stack([np.ones_like(cells.log_odds), cells.log_odds], 1)

    def fit(draw: Draw) -> Array:
        count, events = np.broadcast_arrays(*cells.sums(draw))
        coef = fit_logistic(design, count, events).coef.T.copy()
        slope = _separated(events > 0, count - events > 0)
        coef[0, slope != 0] = np.nan
        coef[1] = np.where(slope == 0, coef[1], slope)
        return coef

    return fit


def _separated(event: Array, other: Array) -> Array:
    """+-inf where cells (in order, resamples) of events lie all beyond the others, nan without a slope, else 0."""
    last = len(event) - 1
    first_event, first_other = event.argmax(0), other.argmax(0)
    last_event, last_other = last - event[::-1].argmax(0), last - other[::-1].argmax(0)
    above, below = last_other <= first_event, last_event <= first_other
    slope = np.where(above, np.inf, np.where(below, -np.inf, 0.0))
    return np.where(~event.any(0) | ~other.any(0) | (above & below), np.nan, slope)


def slope_of(event: Inputs, most: int) -> Statistic:
    """The calibration slope b of logit P(y = 1) = a + b logit p: below 1 probabilities are too extreme.

    Cox (1958). +-inf where the probabilities separate events from the rest; nan where all probabilities, or all
    outcomes, are equal. Probabilities of 0 and 1 count as 1e-8 from the end, or as the most extreme others beyond that.
    """
    fit = recalibration(event, most)
    return lambda draw: fit(draw)[1]


def intercept_of(event: Inputs, most: int) -> Statistic:
    """The calibration intercept a of logit P(y = 1) = a + b logit p, fitted with the slope b; 0 is calibrated.

    Where there is no slope to fit it is nan. `citl` is the intercept with the slope fixed at 1.
    """
    fit = recalibration(event, most)
    return lambda draw: fit(draw)[0]


def citl_of(event: Inputs, most: int) -> Statistic:
    """Calibration in the large: the intercept a of logit P(y = 1) = a + logit p; above 0 events are under-predicted.

    -inf without an event, inf where there is nothing else. Probabilities of 0 and 1 count as for the slope.
    """
    cells = EventCells(event, most)
    ones = np.ones((len(cells.log_odds), 1))

    def fit(draw: Draw) -> Array:
        count, events = np.broadcast_arrays(*cells.sums(draw))
        shift = fit_logistic(ones, count, events, cells.log_odds).coef[:, 0]
        shift = np.where(events.any(0), shift, -np.inf)
        return np.where((count - events).any(0), shift, np.inf)

    return fit


def _curve_error(event: Inputs, most: int, knots: int, part: int) -> Statistic:
    one_of("knots", knots, KNOTS)
    errors = CurveErrors(EventCells(event, most), knots)
    return lambda draw: errors(draw)[part]


def ici_of(event: Inputs, most: int, knots: int = 4) -> Statistic:
    """The integrated calibration index: the mean over rows of |p - c(p)|, c the flexible calibration curve.

    The curve is a logistic regression on a restricted cubic spline of the log odds with `knots` (3, 4 or 5) at
    Harrell's quantiles. Austin and Steyerberg (2019).
    """
    return _curve_error(event, most, knots, 0)


def e50_of(event: Inputs, most: int, knots: int = 4) -> Statistic:
    """The median over rows of |p - c(p)|, c the curve of `ici`: the least value that half of the rows do not exceed."""
    return _curve_error(event, most, knots, 1)


def e90_of(event: Inputs, most: int, knots: int = 4) -> Statistic:
    """The 90 % quantile over rows of |p - c(p)|, c the curve of `ici`."""
    return _curve_error(event, most, knots, 2)


def emax_of(event: Inputs, most: int, knots: int = 4) -> Statistic:
    """The largest |p - c(p)| of a row, c the curve of `ici`."""
    return _curve_error(event, most, knots, 3)
