"""The flexible calibration curve of an event, and all other logistic regressions on its log odds, many at once.

The curve is a logistic regression on a restricted cubic spline of the log odds, Harrell (2015), "Regression modeling
strategies". Its distances from the diagonal, |p - c(p)| over the rows, are ICI (their mean), E50, E90 and Emax, Austin
and Steyerberg (2019), "The integrated calibration index". Rows are put into cells of equal log odds, of which every fit
is a function; fits are made by Newton's method, for all resamples together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from focalcal.core.arrays import Array
from focalcal.metrics.bootstrap_statistics import Draw, batches, row_weights
from focalcal.metrics.event_rows import bounded
from focalcal.metrics.robust import Robust
from focalcal.predictions.inputs import Inputs

_STEPS = 60  # a separated fit gains about one unit of log odds per step; others end after six
_ENOUGH = 1e-18  # of the Newton decrement: twice what the log-likelihood could still gain, in nats
FINEST = 1 << 16  # cells for one fit; of more rows the log odds of a cell are their mean, which moves a fit by 1e-7
COARSEST = 1 << 10  # cells for many fits
KNOTS = {3: (0.1, 0.5, 0.9), 4: (0.05, 0.35, 0.65, 0.95), 5: (0.05, 0.275, 0.5, 0.725, 0.95)}  # Harrell's quantiles
_POINTS = 101


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients (R, k), the information matrices there (R, k, k), and the Newton decrements (R,).

    The decrement g' H^-1 g is twice the log-likelihood that is left to gain, so that a coefficient is within
    sqrt(decrement) standard errors of the optimum; `converged` where it is below 1e-8.
    """

    coef: Array
    information: Array
    decrement: Array

    @property
    def converged(self) -> Array:
        """Whether each fit is at its optimum, by its own gradient."""
        return self.decrement < 1e-8


def fit_logistic(
    design: Array, count: Array, events: Array, offset: Array | float = 0.0, start: Array | None = None
) -> LogisticFit:
    """The maximum over b of sum_i events_i eta_i - count_i log(1 + exp(eta_i)), eta = offset + design b.

    `design` (n, k); `count` and `events` (n, R), or (n, 1) where they are the same for all R fits; the search begins
    at `start` (k,). Where the maximum lies at infinity (separated outcomes) the fit stops where nothing is left to
    gain: probabilities have converged, coefficients have not.
    """
    fits, columns = max(count.shape[1], events.shape[1]), design.shape[1]
    shift = np.zeros(len(design)) if np.isscalar(offset) else np.asarray(offset, dtype=np.float64)
    pairs = np.triu_indices(columns)
    products = design[:, pairs[0]] * design[:, pairs[1]]
    coef = np.zeros((fits, columns)) if start is None else np.tile(start, (fits, 1))
    information, decrement = np.zeros((fits, columns, columns)), np.full(fits, np.inf)
    active, reached = np.arange(fits), np.full(fits, -np.inf)
    step = np.zeros((fits, columns))
    for _ in range(_STEPS):
        n, y = _chosen(count, active), _chosen(events, active)
        eta = shift[:, None] + design @ coef[active].T
        value = (y * eta).sum(0) - (n * np.logaddexp(0, eta)).sum(0)
        worse = value < reached[active] - 1e-9 * np.abs(reached[active])
        p = expit(eta)
        gradient = (y - n * p).T @ design
        packed = (n * p * (1 - p)).T @ products
        own = np.empty((len(active), columns, columns))
        own[:, pairs[0], pairs[1]] = packed
        own[:, pairs[1], pairs[0]] = packed
        # A ridge of rounding size: where the likelihood is flat the step stays finite.
        ridge = 1e-13 * np.trace(own, axis1=1, axis2=2) + 1e-300
        own_step = np.linalg.solve(own + ridge[:, None, None] * np.eye(columns), gradient[:, :, None])[:, :, 0]
        ahead = active[~worse]
        information[ahead], reached[ahead] = own[~worse], value[~worse]
        decrement[ahead] = (gradient * own_step).sum(1)[~worse]
        step[ahead] = own_step[~worse]
        back = active[worse]
        step[back] /= 2  # the step went too far: half of it is taken back, and half of that
        coef[back] -= step[back]
        done = ~worse & (np.abs(decrement[active]) <= _ENOUGH * np.maximum(1.0, n.sum(0)))
        moving = active[~worse & ~done]
        coef[moving] += step[moving]
        active = active[~done]
        if not len(active):
            break
    return LogisticFit(coef, information, np.abs(decrement))


def _chosen(values: Array, fits: Array) -> Array:
    return values if values.shape[1] == 1 else values[:, fits]


class EventCells:
    """Of the rows `x` (log odds, bounded), `outcome`, `own` (weights); of the cells `log_odds`, `p` and `weights`."""

    def __init__(self, given: Inputs, most: int = FINEST) -> None:
        assert given.log_odds is not None
        self.x = x = bounded(given.log_odds)
        rows = len(x)
        self.own = np.ones(rows) if given.weights is None else given.weights
        self.outcome = given.labels.astype(np.float64)
        self.place = place = _places(x, self.own, most)
        self.weights = np.bincount(place, self.own)
        if not self.weights.all():  # cells of the finest grid that hold nothing, or rows of no weight
            filled = np.cumsum(self.weights > 0) - 1
            self.place = place = filled.clip(min=0)[place]
            self.weights = self.weights[self.weights > 0]
        self.log_odds = np.bincount(place, self.own * x) / self.weights
        self.p = np.bincount(place, self.own * given.scores) / self.weights
        self._matrix = sparse.csr_array((np.ones(rows), (place, np.arange(rows))), shape=(len(self.weights), rows))

    def sums(self, draw: Draw) -> tuple[Array, Array]:
        """How many rows and how many events each cell has, (cells, resamples)."""
        count: Array = self._matrix @ draw.weights
        events: Array = self._matrix @ draw.right(self.outcome)
        return count, events


def _places(x: Array, weights: Array, most: int) -> Any:
    """The cell of each row: one per distinct value where they are few, else of equal width, then of equal mass."""
    if len(x) <= FINEST:
        values, place = np.unique(x, return_inverse=True)
        if len(values) <= most:
            return place
    else:
        width = np.ptp(x) / FINEST or 1.0
        place = np.minimum((x - x.min()) / width, FINEST - 1).astype(np.int64)
        if most >= FINEST:
            return place
    mass = np.bincount(place, weights)
    merged = np.floor((mass.cumsum() - mass / 2) / mass.sum() * most).astype(np.int64)
    _, merged = np.unique(merged, return_inverse=True)
    return merged[place]


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
    return values[order][place.clip(max=len(values) - 1)]


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


class EventDraws:
    """Values of `errors`, (4, some resamples) at a time."""

    def __init__(self, errors: CurveErrors, event: Inputs, robust: Robust, seed: int) -> None:
        self.errors, self.cells, self.event, self.robust, self.seed = errors, errors.cells, event, robust, seed
        self.plain = robust.cluster is None and event.weights is None

    def resampled(self, resamples: int) -> Iterator[Array]:
        """Of rows, or whole clusters, drawn with replacement."""
        if self.plain:  # rows of one cell and outcome are alike: their numbers are multinomial, however many there are
            generator = np.random.default_rng([self.seed, 0])
            rows, cells = len(self.event.scores), len(self.cells.p)
            shares = np.bincount(self.cells.place + cells * self.event.labels, minlength=2 * cells) / rows
            for some in batches(2 * cells, resamples):
                drawn = generator.multinomial(rows, shares, size=some).T.astype(np.float64)
                yield self.errors.of(drawn[:cells] + drawn[cells:], drawn[cells:])
            return
        own, cluster = self.robust.weights[:, None], self.robust.cluster
        for drawn in row_weights(self.robust.units, len(own), resamples, self.seed):
            yield self.errors(Draw(own * (drawn if cluster is None else drawn[cluster])))

    def calibrated(self, draws: int) -> Iterator[Array]:
        """Of outcomes drawn from the probabilities.

        Of clusters the rows keep how they go together: what an outcome was off the curve (its Pearson residual) moves
        the curve by one Newton step from the diagonal, with a sign drawn for each cluster: the score bootstrap of Kline
        & Santos (2012). A fit to such outcomes, some of them below 0, need not have an optimum where events are rare.
        """
        generator = np.random.default_rng([self.seed, 1])
        p, own = self.event.scores[:, None], self.robust.weights[:, None]
        if self.plain:
            count = np.bincount(self.cells.place)
            for some in batches(len(count), draws):
                events = generator.binomial(count[:, None], self.cells.p[:, None], (len(count), some))
                yield self.errors.of(count[:, None].astype(np.float64), events.astype(np.float64))
            return
        if self.robust.cluster is not None:
            steps = self._steps()
            # Of the columns 1, x, ... the log odds themselves; of one value that value.
            diagonal = np.eye(steps.shape[1])[1:2] if steps.shape[1] > 1 else self.cells.log_odds[:1, None]
            count, _ = self.cells.sums(Draw(own))
            for some in batches(len(steps), draws):
                signs = generator.choice([-1.0, 1.0], (some, self.robust.units))
                yield self.errors.at(diagonal + signs @ steps, count)
            return
        for some in batches(len(p), draws):
            outcome = (generator.random((len(p), some)) < p).astype(np.float64)
            yield self.errors(Draw(own, None, outcome))

    def _steps(self) -> Array:
        """By how much each cluster moves the coefficients of a calibrated model's curve, (clusters, columns)."""
        cluster, design, place, p = self.robust.cluster, self.errors.design, self.cells.place, self.event.scores
        assert cluster is not None
        fitted = np.clip(expit(design @ self.errors.whole.coef[0])[place], 1e-12, 1 - 1e-12)
        off = (self.event.labels - fitted) * np.sqrt(p * (1 - p) / (fitted * (1 - fitted))) * self.robust.weights
        score = np.stack([np.bincount(cluster, off * column[place]) for column in design.T], 1)
        spread = np.bincount(place, self.robust.weights * p * (1 - p), minlength=len(design))
        information = (design * spread[:, None]).T @ design
        return score @ np.linalg.pinv(information, hermitian=True)
