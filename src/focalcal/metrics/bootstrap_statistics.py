"""Metrics of many resamples at once, each from what was computed of the rows once and for all.

A resample is a weight for each row, or other labels for the same rows. Nearly every metric is a function of sums over
rows, so a batch of resamples is a product of a sparse matrix with their weights; AdaECE goes through the cells of a
sketch, ranks through cumulative weights in the order of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from focalcal.core.arrays import Array
from focalcal.core.binning import BinSums, even_bin_index
from focalcal.metrics.detection import generalised_risk, optimal_aurc, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_AT_ONCE = 1 << 20  # weights


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


def _over_runs(values: Array, start: Array) -> Array:
    """Sums over runs of equal scores; where none are equal, which is usual, the values themselves."""
    return values if len(start) == len(values) else np.add.reduceat(values, start, axis=0)


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


class Mean:
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
            counts = np.bincount(own.ravel(), minlength=columns * drawn).reshape(columns, drawn)
        residual = self._sums @ draw.weights - counts
        return self._of(np.moveaxis(residual.reshape(*self._shape, -1), -1, 0), draw.weights.sum(0))


class Moments:
    """Sums of 1, f, a, f^2 and f a over equal parts of [0, 1], for confidences f and correctness a."""

    def __init__(self, confidence: Array, correct: Array) -> None:
        self._f, self._correct = confidence, correct
        self._matrices: dict[int, tuple[Array, list[Any]]] = {}

    def of(self, draw: Draw, intervals: int) -> Array:
        """(resamples, 5, intervals)."""
        if intervals not in self._matrices:
            f = self._f
            occupied, cells = np.unique(even_bin_index(f, intervals), return_inverse=True)
            powers = [_sum_matrix(cells, len(occupied), values) for values in (np.ones_like(f), f, f * f)]
            self._matrices[intervals] = occupied, powers
        occupied, (ones, f, ff) = self._matrices[intervals]
        right = draw.right(self._correct)
        moments = np.zeros((right.shape[1], 5, intervals))
        sums = (ones @ draw.weights, f @ draw.weights, ones @ right, ff @ draw.weights, f @ right)
        for at, part in enumerate(sums):
            moments[:, at, occupied] = part.T
        return moments


class Cells:
    """A function of moments over cells of confidence, which it is given as `moments(cells)`."""

    def __init__(self, confidence: Array, correct: Array, of: Callable[[Callable[[int], Array]], Array]) -> None:
        self._moments, self._of = Moments(confidence, correct), of

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        return self._of(lambda cells: self._moments.of(draw, cells))


class RankedPairs:
    """`auroc`; `undefined` of a resample without one of the outcomes."""

    def __init__(self, scores: Array, positives: Array, undefined: float = np.nan) -> None:
        self._undefined = undefined
        self._order = np.argsort(scores, kind="stable")
        self._start, self._positive = runs(scores[self._order]), positives[self._order, None]

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        weights = draw.weights[self._order]
        wins = _over_runs(weights * self._positive, self._start)
        losses = _over_runs(weights * (1 - self._positive), self._start)
        pairs = wins.sum(0) * losses.sum(0)
        won = (wins * (losses.cumsum(0) - losses / 2)).sum(0)
        value: Array = np.divide(won, pairs, out=np.full_like(won, self._undefined), where=pairs > 0)
        return value


class RiskCoverage:
    """`aurc`; see `binary_aurc` for the sum over a run of equal confidences."""

    def __init__(self, confidence: Array, correct: Array) -> None:
        self._order = np.argsort(-confidence, kind="stable")
        self._start, self._wrong = runs(confidence[self._order]), 1 - correct[self._order, None]

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        weights = draw.weights[self._order]
        size = _over_runs(weights, self._start)
        errors = _over_runs(weights * self._wrong, self._start)
        end = size.cumsum(0).astype(int)
        first = end - size.astype(int)
        harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, end[-1].max() + 1)))
        rise = harmonic[end] - harmonic[first]
        before = errors.cumsum(0) - errors
        slope = before - np.divide(errors * first, size, out=np.zeros_like(errors), where=size > 0)
        value: Array = (errors + slope * rise).sum(0) / size.sum(0)
        return value


class ExcessRiskCoverage(RiskCoverage):
    """`e_aurc`."""

    def __init__(self, confidence: Array, correct: Array) -> None:
        super().__init__(confidence, correct)
        self._correct = correct

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        best = optimal_aurc(draw.right(self._correct).sum(0), draw.weights.sum(0))
        value: Array = np.maximum(super().__call__(draw) - best, 0.0)
        return value


class GeneralisedRiskCoverage(RankedPairs):
    """`augrc`."""

    def __init__(self, confidence: Array, correct: Array) -> None:
        super().__init__(confidence, correct, undefined=0.5)
        self._accuracy = Mean(correct)

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        value: Array = generalised_risk(super().__call__(draw), self._accuracy(draw))
        return value


class Coverage:
    """`coverage`, at its usual accuracy."""

    def __init__(self, confidence: Array, correct: Array, accuracy: float = 0.95) -> None:
        self._order, self._least = np.argsort(-confidence, kind="stable"), accuracy
        self._start, self._wrong = runs(confidence[self._order]), 1 - correct[self._order, None]

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        weights = draw.weights[self._order]
        accepted = _over_runs(weights, self._start).cumsum(0)
        wrong = _over_runs(weights * self._wrong, self._start).cumsum(0)
        enough = 1 - wrong / np.maximum(accepted, 1) >= self._least
        value: Array = (accepted * enough).max(0) / weights.sum(0)
        return value


class Rowwise:
    """Any function of probabilities and labels, called once for each resample."""

    def __init__(self, metric: Callable[..., float], probs: Array, labels: Array) -> None:
        self._metric, self._probs, self._labels = metric, probs, labels

    def __call__(self, draw: Draw) -> Array:
        """One value per resample."""
        drawn = (np.repeat(np.arange(len(w)), w.astype(int)) for w in draw.weights.T)
        return np.array([float(self._metric(self._probs[rows], self._labels[rows])) for rows in drawn])
