"""Logistic regression on few columns, for many weightings of the same rows at once, by Newton's method.

Recalibration on the log odds, its intercept alone, and the flexible curve are all such fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from focalcal.core.arrays import Array

_STEPS = 60  # a separated fit gains about one unit of log odds per step; others end after six
_ENOUGH = 1e-18  # of the Newton decrement: twice what the log-likelihood could still gain, in nats


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
        converged: Array = self.decrement < 1e-8
        return converged


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
