"""Resamples of an event's rows or clusters, and outcomes as a calibrated model would have them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from focalcal.core.arrays import Array
from focalcal.metrics.bootstrap_statistics import Draw, batches, row_weights
from focalcal.metrics.event_curve import CurveErrors
from focalcal.metrics.robust import Robust
from focalcal.predictions.inputs import Inputs


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
        steps: Array = score @ np.linalg.pinv(information, hermitian=True)
        return steps
