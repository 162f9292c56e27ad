"""Intervals from what each row adds to an estimate, for rows that weigh differently and for rows that come in clusters.

An estimate is its truth plus a sum of influences, one per row. Its variance is the sum of the squares of what the
clusters (or rows, where each is its own) add, times G / (G - 1) for G of them: the sandwich, or Taylor linearisation of
surveys, which holds whatever weights and correlations inside clusters are. Quantiles are those of t with G - 1 degrees
of freedom. A weight is how many rows of the population a row stands for: a row of weight 1,000 is one observation.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from focalcal.core.arrays import Array


class Robust:
    """Intervals at `level`, for rows of these weights (n,) in these clusters (n,), numbered from 0."""

    def __init__(self, weights: Array, cluster: Array | None = None, level: float = 0.95) -> None:
        self.weights, self.cluster, self.level = weights, cluster, level
        self.units = len(weights) if cluster is None else int(cluster.max()) + 1
        of_unit = weights if cluster is None else np.bincount(cluster, weights)
        self.effective = float(of_unit.sum() ** 2 / np.square(of_unit).sum())  # Kish (1965)

    @cached_property
    def quantile(self) -> float:
        """The upper quantile of t."""
        return float(stdtrit(max(self.units - 1, 1), 0.5 + self.level / 2))

    def covariance(self, influence: Array) -> Array:
        """(k, k) of estimates that rows influence so, (n, k); of one unit infinite."""
        if self.units < 2:
            return np.full((influence.shape[1],) * 2, np.inf)
        if self.cluster is not None:
            influence = np.stack([np.bincount(self.cluster, column, self.units) for column in influence.T], 1)
        centred = influence - influence.mean(0)
        return centred.T @ centred * (self.units / (self.units - 1))

    def error(self, influence: Array) -> float:
        """The standard error of an estimate that rows influence so, (n,)."""
        return float(np.sqrt(self.covariance(influence[:, None])[0, 0]))

    def mean(self, values: Array, levels: Array) -> tuple[float, float, float]:
        """The weighted mean of values (n,), each one of a few `levels`, and its interval.

        The mean is the most frequent level plus what the others add, each its share of the rows times its distance.
        Distances from the shares' own intervals are added as their errors are, by squares and correlations (MOVER; Zou
        and Donner 2008): so a rare and costly level, or one not seen, is not taken for known.
        """
        weight = self.weights / self.weights.sum()
        levels = np.unique(levels)
        member = np.searchsorted((levels[1:] + levels[:-1]) / 2, values)
        shares = np.bincount(member, weight, len(levels))
        usual = int(shares.argmax())
        others = np.delete(np.arange(len(levels)), usual)
        distance = levels[others] - levels[usual]
        covariance = self._of_shares(member, weight, shares, others)
        error = np.sqrt(np.diag(covariance))
        ends = np.array([self.share(shares[j], e) for j, e in zip(others, error, strict=True)]).reshape(-1, 2)
        reach = (ends - shares[others, None]) * distance[:, None]
        scale = np.where((error > 0) & np.isfinite(error), error, 1.0)
        scale = np.where(distance < 0, -scale, scale)  # of what is added, whichever way that is
        correlation = np.where(np.isfinite(covariance), covariance, 0.0) / np.outer(scale, scale)
        np.fill_diagonal(correlation, 1.0)
        below, above = reach.min(1, initial=0.0), reach.max(1, initial=0.0)
        estimate = float(levels[usual] + distance @ shares[others])
        low, high = (float(np.sqrt(max(0.0, part @ correlation @ part))) for part in (below, above))
        return estimate, max(float(levels[0]), estimate - low), min(float(levels[-1]), estimate + high)

    def _of_shares(self, member: Array, weight: Array, shares: Array, others: Array) -> Array:
        """The covariance of the shares of levels; of rows without clusters from sums of squared weights per level."""
        if self.cluster is not None or self.units < 2:
            return self.covariance(weight[:, None] * ((member[:, None] == others) - shares[others]))
        squares = np.bincount(member, weight * weight, len(shares))
        own, share = squares[others], shares[others]
        found: Array = (
            np.diag(own) - np.outer(own, share) - np.outer(share, own) + np.outer(share, share) * squares.sum()
        )
        found *= self.units / (self.units - 1)
        return found

    def proportion(self, hit: Array, among: Array) -> tuple[float, float, float]:
        """The share of the rows `among`, (n,) bool, that are `hit`, with its interval; nan and [0, 1] of no rows."""
        if not among.any():
            return float("nan"), 0.0, 1.0
        weight = self.weights * among / (self.weights @ among)
        estimate = float(weight @ hit)
        return estimate, *self.share(estimate, self.error(weight * (hit - estimate)), self.of(among).effective)

    def symmetric(self, estimate: float, error: float) -> tuple[float, float]:
        """The estimate -+ t times its standard error."""
        half = self.quantile * error
        return estimate - half, estimate + half

    def positive(self, estimate: float, error: float) -> tuple[float, float]:
        """The same on the logarithm, for what cannot be negative and has a long upper tail."""
        if estimate == 0 or not np.isfinite(error):
            return 0.0, np.inf
        ratio = np.exp(self.quantile * error / estimate)
        return float(estimate / ratio), float(estimate * ratio)

    def of(self, chosen: Array) -> Robust:
        """The same for some of the rows, (n,) bool."""
        cluster = None if self.cluster is None else np.unique(self.cluster[chosen], return_inverse=True)[1]
        return Robust(self.weights[chosen], cluster, self.level)

    def share(self, estimate: float, error: float, effective: float | None = None) -> tuple[float, float]:
        """Wilson's interval with as many rows as would give this standard error.

        Where that is 0, as of a share of 0, with Kish's number of rows, or `effective` ones. Korn and Graubard (1998)
        did so for Clopper-Pearson's.
        """
        estimate = 1.0 if estimate > 1 - 1e-12 else estimate  # a sum of shares misses 1 by its rounding
        variance = estimate * (1 - estimate)
        n = variance / error**2 if error > 0 and variance > 0 else effective or self.effective
        if self.units < 2 or not n > 0:
            return 0.0, 1.0
        square = self.quantile**2
        centre, scale = estimate + square / (2 * n), 1 + square / n
        half = self.quantile * np.sqrt(variance / n + square / (4 * n * n))
        low = 0.0 if estimate <= 0 else max(0.0, float((centre - half) / scale))
        return low, 1.0 if estimate >= 1 else min(1.0, float((centre + half) / scale))
