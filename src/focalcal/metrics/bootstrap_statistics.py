"""Metrics of many resamples at once, each from what was computed of the rows once and for all.

A resample is a weight for each row, or other labels for the same rows. Nearly every metric is a function of sums over
rows, so a batch of resamples is a product of a sparse matrix with their weights; ranks go through cumulative weights
in the order of the scores, which all metrics of ranks share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from focalcal.core.arrays import Array
from focalcal.core.binning import BinSums, even_bin_index
from focalcal.metrics.cells import CELLS, equal_mass_error
from focalcal.metrics.smooth import Smoother, smooth_ece_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_AT_ONCE = 1 << 20  # weights
_IN_CACHE = 1 << 17  # weights, several arrays of which are read again before they leave the cache


@dataclass(frozen=True)
class Draw:
    """A batch of resamples: how often each row counts, (rows, resamples) or (rows, 1) for all alike; and, where the
    labels are drawn too, the labels and whether the prediction is right, (rows, resamples).
    """

    weights: Array
    labels: Array | None = None
    correct: Array | None = None

    def right(self, actual: Array) -> Array:
        """How often each row counts as right, given which rows really are."""
        return self.weights * actual[:, None] if self.correct is None else self.weights * self.correct

    def pieces(self) -> Iterator[Draw]:
        """The same resamples, a few at a time, so that one metric after another finds them in the cache."""
        resamples = (self.weights if self.correct is None else self.correct).shape[1]
        step = max(8, _IN_CACHE // len(self.weights))
        for start in range(0, resamples, step):
            some = slice(start, start + step)
            weights = self.weights if self.weights.shape[1] == 1 else np.ascontiguousarray(self.weights[:, some])
            labels = None if self.labels is None else np.ascontiguousarray(self.labels[:, some])
            correct = None if self.correct is None else np.ascontiguousarray(self.correct[:, some])
            yield Draw(weights, labels, correct)


def row_weights(units: int, rows: int, resamples: int, seed: int) -> Iterator[Array]:
    """How often each of the units is drawn, (units, some resamples), as many with replacement as there are.

    Batches are as large as so many rows allow.
    """
    generator = np.random.default_rng([seed, 0])
    for count in batches(rows, resamples):
        drawn = generator.integers(units, size=(units, count))
        drawn *= count
        drawn += np.arange(count)
        weights = np.bincount(drawn.ravel(), minlength=units * count).reshape(units, count)
        yield weights.astype(np.float64)


def batches(rows: int, resamples: int) -> list[int]:
    """How many resamples to take at once, time after time."""
    at_once = max(1, min(resamples, _AT_ONCE // rows))
    return [min(at_once, resamples - start) for start in range(0, resamples, at_once)]


def _sum_matrix(cells: Array, columns: int, values: Array) -> Any:
    """(columns, rows): each row's value in its cell, so that the product with weights is the sums over cells."""
    return sparse.csr_array((values, (cells, np.arange(len(cells)))), shape=(columns, len(cells)))


class Binned:
    """A function of the sums over confidence bins."""

    def __init__(self, confidence: Array, correct: Array, n_bins: int, of: Callable[[BinSums], Array]) -> None:
        self._correct = correct
        cells = even_bin_index(confidence, n_bins)
        self._count = _sum_matrix(cells, n_bins, np.ones_like(confidence))
        self._confidence = _sum_matrix(cells, n_bins, confidence)
        self._of = of

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        right = self._count @ draw.right(self._correct)
        sums = (self._count @ draw.weights, self._confidence @ draw.weights, right)
        return self._of(BinSums(*(part.T for part in sums)))


class MeanOfRows:
    """The mean of a value of each row."""

    def __init__(self, values: Array) -> None:
        self._infinite = ~np.isfinite(values)
        self._finite = np.where(self._infinite, 0.0, values)

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        mean: Array = self._finite @ draw.weights / draw.weights.sum(0)
        if self._infinite.any():  # 0 * inf would be NaN
            mean[draw.weights[self._infinite].any(0)] = np.inf
        return mean


class Classwise:
    """A function of what is left of (K, bins) sums of each class's probability after its labels, and of the rows."""

    def __init__(self, probs: Array, labels: Array, n_bins: int, of: Callable[[Array, Array], Array]) -> None:
        rows, classes = probs.shape
        self._shape, self._of = (classes, n_bins), of
        self._cells = np.arange(classes) * n_bins + even_bin_index(probs, n_bins)
        columns = classes * n_bins
        where = (self._cells.ravel(), np.repeat(np.arange(rows), classes))
        self._sums = sparse.csr_array((probs.astype(np.float64).ravel(), where), shape=(columns, rows))
        own = np.take_along_axis(self._cells, labels[:, None], 1)[:, 0]
        self._labels = _sum_matrix(own, columns, np.ones(rows))

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        if draw.labels is None:
            counts = self._labels @ draw.weights
        else:
            drawn, columns = draw.labels.shape[1], self._labels.shape[0]
            own = np.take_along_axis(self._cells, draw.labels, 1) * drawn + np.arange(drawn)
            weights = np.broadcast_to(draw.weights, draw.labels.shape).ravel()
            counts = np.bincount(own.ravel(), weights, minlength=columns * drawn).reshape(columns, drawn)
        residual = self._sums @ draw.weights - counts
        return self._of(np.moveaxis(residual.reshape(*self._shape, -1), -1, 0), draw.weights.sum(0))


class AdaptiveCells:
    """AdaECE, by cells of confidence as in a sketch."""

    def __init__(self, confidence: Array, correct: Array, n_bins: int = 15) -> None:
        self._correct, self._n_bins = correct, n_bins
        occupied, cells = np.unique(even_bin_index(confidence, CELLS), return_inverse=True)
        self._count, self._f = (
            _sum_matrix(cells, len(occupied), each) for each in (np.ones_like(confidence), confidence)
        )

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        residual = self._f @ draw.weights - self._count @ draw.right(self._correct)
        return equal_mass_error((self._count @ draw.weights).cumsum(0).T, residual.cumsum(0).T, self._n_bins)


class SmoothNodes:
    """smECE, by what each row gives to the two nodes around its confidence."""

    def __init__(self, confidence: Array, correct: Array) -> None:
        self._f, self._correct = confidence, correct
        self._matrices: dict[int, tuple[Any, Any]] = {}

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        right = draw.right(self._correct)

        def nodes(intervals: int, chosen: Any) -> Array:
            """(resamples, 2, intervals + 1) of the chosen ones: residuals and counts."""
            (count, f), own = self._matrix(intervals), right[:, chosen]
            weights = draw.weights if draw.weights.shape[1] == 1 else draw.weights[:, chosen]
            sums = np.empty((own.shape[1], 2, intervals + 1))
            sums[:, 0], sums[:, 1] = (f @ weights - count @ own).T, (count @ weights).T
            return sums

        return smooth_ece_of(Smoother(nodes), right.shape[1])[0]

    def _matrix(self, intervals: int) -> tuple[Any, Any]:
        if intervals not in self._matrices:
            left, rows = even_bin_index(self._f, intervals), np.arange(len(self._f))
            to_right = self._f * intervals - left
            where = np.concatenate([left, left + 1]), np.concatenate([rows, rows])
            shares = np.concatenate([1 - to_right, to_right])
            count, f = (
                sparse.csr_array((values, where), shape=(intervals + 1, len(rows)))
                for values in (shares, shares * np.tile(self._f, 2))
            )
            self._matrices[intervals] = count, f
        return self._matrices[intervals]


class Rowwise:
    """Any function of probabilities and labels, called once for each resample."""

    def __init__(self, metric: Callable[..., float], probs: Array, labels: Array) -> None:
        self._metric, self._probs, self._labels = metric, probs, labels

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        drawn = (np.repeat(np.arange(len(w)), w.astype(int)) for w in draw.weights.T)
        return np.array([float(self._metric(self._probs[rows], self._labels[rows])) for rows in drawn])
