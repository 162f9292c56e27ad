"""The flexible calibration curve of an event: logistic regression on a restricted cubic spline of the log odds.

Its distances from the diagonal, |p - c(p)| over the rows, are ICI (their mean), E50, E90 and Emax. Harrell (2015),
"Regression modeling strategies"; Austin and Steyerberg (2019), "The integrated calibration index".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from focalcal.core.arrays import Array
from focalcal.metrics.bootstrap_statistics import Draw
from focalcal.metrics.event_cells import EventCells
from focalcal.metrics.logistic import fit_logistic
from focalcal.metrics.robust import Robust

KNOTS = {3: (0.1, 0.5, 0.9), 4: (0.05, 0.35, 0.65, 0.95), 5: (0.05, 0.275, 0.5, 0.725, 0.95)}  # Harrell's quantiles
_POINTS = 101


@dataclass(frozen=True, eq=False)
class EventCurve:
    """The curve at `points`, and its pointwise interval.

    Attributes:
        points: probabilities at which it is known, from the least to the largest of the rows, dense at both ends.
        observed: the share of events there, by the curve.
        low, high: its pointwise interval.
        knots: of the spline, on the log odds.

    >>> from focalcal.metrics import event_calibration
    >>> p = np.linspace(0.05, 0.95, 400)
    >>> curve = event_calibration(p, (np.arange(400) * 0.618 % 1 < p).astype(int)).curve
    >>> bool(np.abs(curve.observed - curve.points).max() < 0.1)
    True
    """

    points: Array
    observed: Array
    low: Array
    high: Array
    knots: Array


def spline_basis(log_odds: Array, knots: Array) -> Array:
    """1, x and the restricted cubic terms of x, (n, max(2, knots)), linear beyond the outer knots.

    Term j is ((x - t_j)+^3 - (x - t_{k-1})+^3 (t_k - t_j) / (t_k - t_{k-1}) + (x - t_k)+^3 (t_{k-1} - t_j) /
    (t_k - t_{k-1})) / (t_k - t_1)^2. Without three different knots it is 1 and x; of one value 1 alone.
    """
    if len(log_odds) == 0 or (len(knots) == 1 and np.ptp(log_odds) == 0):
        return np.ones((len(log_odds), 1))
    columns = [np.ones_like(log_odds), log_odds]
    if len(knots) >= 3:
        before, last = knots[-2], knots[-1]
        cube = [np.maximum(log_odds - knot, 0) ** 3 for knot in knots]
        for at, knot in enumerate(knots[:-2]):
            term = cube[at] - cube[-2] * (last - knot) / (last - before) + cube[-1] * (before - knot) / (last - before)
            columns.append(term / (last - knots[0]) ** 2)
    return np.stack(columns, 1)


def knots_of(log_odds: Array, weights: Array, count: int) -> Array:
    """Harrell's quantiles of the log odds, those that differ."""
    return np.unique(weighted_quantile(log_odds, weights, np.array(KNOTS[count])))


def weighted_quantile(values: Array, weights: Array, at: Array) -> Array:
    """The least value that has at least the share `at` of the weights at or below it."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    place = np.searchsorted(reached, at * reached[-1] * (1 - 1e-12))
    found: Array = values[order][place.clip(max=len(values) - 1)]
    return found


class CurveErrors:
    """ICI, E50, E90 and Emax, (4, resamples), around the curve through knots that are those of the rows as they are."""

    def __init__(self, cells: EventCells, knots: int = 4) -> None:
        self.cells, self._knots = cells, knots
        self.knots = knots_of(cells.log_odds, cells.weights, knots)
        self.design = spline_basis(cells.log_odds, self.knots)
        if self.design.shape[1] > 2 and np.linalg.matrix_rank(self.design) < self.design.shape[1]:
            self.design = self.design[:, :2]
        self.whole = fit_logistic(self.design, *cells.sums(Draw(cells.own[:, None])))

    def __call__(self, draw: Draw) -> Array:
        """One column per resample."""
        return self.of(*self.cells.sums(draw))

    def of(self, count: Array, events: Array) -> Array:
        """The same of the rows and events of each cell, (cells, resamples)."""
        start = self.whole.coef[0] if np.abs(self.whole.coef).max() < 30 else None
        return self.at(fit_logistic(self.design, count, events, start=start).coef, count)

    def at(self, coef: Array, count: Array) -> Array:
        """The same of curves with these coefficients, (resamples, columns)."""
        error = np.abs(self.cells.p[:, None] - expit(self.design @ coef.T))
        count = np.broadcast_to(count, error.shape)
        there = np.where(count > 0, error, -np.inf)
        order = np.argsort(there, axis=0)
        ordered, reached = np.take_along_axis(there, order, 0), np.take_along_axis(count, order, 0).cumsum(0)
        total = reached[-1]

        def quantile(share: float) -> Any:
            place = (reached < share * total * (1 - 1e-12)).sum(0).clip(max=len(ordered) - 1)
            return np.take_along_axis(ordered, place[None], 0)[0]

        return np.stack([(count * error).sum(0) / total, quantile(0.5), quantile(0.9), ordered[-1]])

    def curve(self, robust: Robust) -> EventCurve:
        """With its pointwise interval, robust."""
        x, coef, columns = self.cells.x, self.whole.coef[0], self.design.shape[1]
        rows = spline_basis(x, self.knots)[:, :columns]
        score = rows * (self.cells.own * (self.cells.outcome - expit(rows @ coef)))[:, None]
        covariance = robust.covariance(score @ np.linalg.pinv(self.whole.information[0], hermitian=True))
        points = _grid(x)
        at = spline_basis(points, self.knots)[:, :columns]
        eta = at @ coef
        half = robust.quantile * np.sqrt(np.einsum("ni,ij,nj->n", at, covariance, at).clip(0))
        return EventCurve(expit(points), expit(eta), expit(eta - half), expit(eta + half), self.knots)


def _grid(log_odds: Array) -> Any:
    """Log odds from the least to the largest, even in themselves and even in the probability."""
    low, high = float(log_odds.min()), float(log_odds.max())
    even = np.linspace(expit(low), expit(high), _POINTS)[1:-1]
    with np.errstate(divide="ignore"):
        as_odds = np.log(even) - np.log1p(-even)
    inner = as_odds[(as_odds > low) & (as_odds < high)]
    return np.unique(np.concatenate([np.linspace(low, high, _POINTS), inner]))
