"""Error bars: the bootstrap over rows, for every metric, without a loop over rows or resamples.

A resample is a weight for each row. Nearly every metric is a function of sums over rows, so a batch of resamples is
one product of a sparse matrix with their weights; AdaECE and smECE go through the cells of a CalibrationSketch, AURC
and AUROC through cumulative weights in the order of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from focalcal.core.arrays import one_of
from focalcal.core.binning import BinSums, even_bin_index
from focalcal.core.scores import scores_and_labels
from focalcal.metrics.detection import aurc, auroc, ranked_input, runs
from focalcal.metrics.ece import (
    adaptive_ece,
    classwise_ece,
    confidence_gap,
    debiased_ece,
    debiased_ece_of,
    ece,
    ece_of,
    mce,
    mce_of,
    rms_ce,
    rms_ce_of,
)
from focalcal.metrics.proper import brier, error, nll, top_k_accuracy
from focalcal.metrics.reliability import check_level
from focalcal.metrics.scan import Scan, scan
from focalcal.metrics.sketch import CELLS, adaptive_ece_of, spread
from focalcal.metrics.smooth import Smoother, smooth_ece, smooth_ece_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Array = np.ndarray[Any, Any]
Weights = Array  # (rows, resamples): how often each row was drawn
_WEIGHTS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Interval:
    """A metric and its confidence interval."""

    estimate: float
    low: float
    high: float
    level: float

    def __str__(self) -> str:
        """The estimate, and the interval in brackets."""
        return f"{self.estimate:.4f} [{self.low:.4f}, {self.high:.4f}]"


def bootstrap(
    metric: Callable[..., float] | Sequence[Callable[..., float]],
    probs: Any,
    labels: Any,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    method: str = "basic",
    seed: int = 0,
    n_bins: int = 15,
    ignore_index: int | None = None,
) -> Any:
    """The interval of a metric of this package, given as the function itself: `bootstrap(ece, probs, labels)`.

    Several metrics at once, `bootstrap([ece, brier], ...)`, share the resamples and give a dict by name. For `auroc`
    pass its scores and positives in place of probabilities and labels. Any other function of (probs, labels) works
    too, called once for each resample.

    A resampled ECE is larger than the estimate as the estimate is larger than the truth: chance adds to gaps.
    "basic", [2 t - q_high, 2 t - q_low] for the estimate t and the quantiles q of the resamples, takes that bias
    off; "percentile" is [q_low, q_high]. Ends that a metric cannot take, below 0, are moved to 0.
    """
    check_level(level)
    one_of("method", method, ("basic", "percentile"))
    if isinstance(resamples, bool) or not isinstance(resamples, int) or resamples < 2:
        raise ValueError(f"resamples must be a whole number >= 2, got {resamples!r}; 1000 is the usual choice")
    metrics = [metric] if callable(metric) else list(metric)
    if not metrics or not all(callable(each) for each in metrics):
        raise TypeError(f"metric must be a metric function or a list of them, got {metric!r}")
    plan = _Plan(metrics, probs, labels, n_bins, ignore_index)
    values = [np.concatenate(parts, 0) for parts in zip(*plan.values(resamples, seed), strict=True)]
    intervals = {}
    for each, resampled in zip(metrics, values, strict=True):
        estimate = float(plan.estimate(each))
        intervals[each.__name__] = _interval(estimate, resampled, level, method, signed=each is confidence_gap)
    return intervals[metrics[0].__name__] if callable(metric) else intervals


def _interval(estimate: float, values: Array, level: float, method: str, *, signed: bool) -> Interval:
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2], method="linear")
        if method == "basic" and np.isfinite(estimate):
            low, high = 2 * estimate - high, 2 * estimate - low
    if not signed:
        low, high = max(low, 0.0), max(high, 0.0)
    return Interval(estimate, float(low), float(high), level)


class _Plan:
    """What is computed once for all resamples."""

    def __init__(
        self, metrics: list[Callable[..., float]], probs: Any, labels: Any, n_bins: int, ignore_index: int | None
    ) -> None:
        self.probs, self.labels, self.n_bins, self.ignore_index = probs, labels, n_bins, ignore_index
        if auroc in metrics:
            if metrics != [auroc]:
                raise ValueError(
                    "auroc takes scores and positives, the other metrics probs and labels; ask for it alone"
                )
            self.rows = len(ranked_input(probs, labels)[0])
            self.resampled = [_auroc(*ranked_input(probs, labels))]
            return
        found = scan(probs, labels, n_bins=n_bins, ignore_index=ignore_index, brier=True, nll=True, rows=True)
        self.rows = found.rows
        self.resampled = [self._resampled(metric, found) for metric in metrics]

    def estimate(self, metric: Callable[..., float]) -> float:
        if metric is auroc:
            return metric(self.probs, self.labels)
        options: dict[str, Any] = {}
        if metric in _KNOWN:
            options["ignore_index"] = self.ignore_index
        if metric in _BINNED or metric in (classwise_ece, adaptive_ece):
            options["n_bins"] = self.n_bins
        return metric(self.probs, self.labels, **options)

    def values(self, resamples: int, seed: int) -> Iterator[list[Array]]:
        """For each batch of resamples a list of (resamples,) values, one for each metric."""
        generator = np.random.default_rng(seed)
        at_once = max(1, min(resamples, _WEIGHTS_AT_ONCE // self.rows))
        for start in range(0, resamples, at_once):
            count = min(at_once, resamples - start)
            drawn = generator.integers(self.rows, size=(self.rows, count))
            drawn *= count
            drawn += np.arange(count)
            weights = np.bincount(drawn.ravel(), minlength=self.rows * count).reshape(self.rows, count)
            weights = weights.astype(np.float64)
            yield [resampled(weights) for resampled in self.resampled]

    def _resampled(self, metric: Callable[..., float], found: Scan) -> Callable[[Weights], Array]:
        if metric in _BINNED:
            return _binned(found, self.n_bins, _BINNED[metric])
        if metric in _MEANS:
            return _mean(_MEANS[metric](found))
        if metric is classwise_ece:
            return _classwise(*self._kept(), self.n_bins)
        if metric is top_k_accuracy:
            return _mean(_in_top(*self._kept(), 5))
        if metric is adaptive_ece:
            return _through_cells(found, lambda moments: adaptive_ece_of(moments, self.n_bins))
        if metric is smooth_ece:
            return _through_cells(found, _smooth)
        if metric is aurc:
            return _aurc(found)
        return _any_metric(metric, *self._kept())

    def _kept(self) -> tuple[Tensor, Tensor]:
        """Probabilities (rows, K) and labels (rows,) without the ignored ones."""
        scores, index = scores_and_labels("probs", self.probs, self.labels, ignore_index=self.ignore_index)
        scores, index = scores.movedim(1, -1).reshape(-1, scores.shape[1]).cpu(), index.flatten().cpu()
        if self.ignore_index is None:
            return scores, index
        keep = index != self.ignore_index
        return scores[keep], index[keep]


def _sum_matrix(cells: Array, columns: int, values: Array) -> Any:
    """(columns, rows) sparse: value of each row in its cell, so that the product with weights is their sums."""
    rows = len(cells)
    return sparse.csr_array((values, (cells, np.arange(rows))), shape=(columns, rows))


def _binned(found: Scan, n_bins: int, of: Callable[[BinSums], Tensor]) -> Callable[[Weights], Array]:
    assert found.confidence is not None
    assert found.correct is not None
    cells = even_bin_index(found.confidence, n_bins).numpy()
    confidence, correct = found.confidence.double().numpy(), found.correct.double().numpy()
    matrices = [_sum_matrix(cells, n_bins, values) for values in (np.ones_like(confidence), confidence, correct)]

    def resampled(weights: Weights) -> Array:
        value: Array = of(BinSums(*(torch.from_numpy((m @ weights).T.copy()) for m in matrices))).numpy()
        return value

    return resampled


def _mean(values: Array) -> Callable[[Weights], Array]:
    infinite = ~np.isfinite(values)
    finite = np.where(infinite, 0.0, values)

    def resampled(weights: Weights) -> Array:
        mean = finite @ weights / len(values)
        if infinite.any():  # 0 * inf would be NaN
            mean[weights[infinite].any(0)] = np.inf
        return mean

    return resampled


def _classwise(probs: Tensor, labels: Tensor, n_bins: int) -> Callable[[Weights], Array]:
    rows, classes = probs.shape
    cells = (torch.arange(classes) * n_bins + even_bin_index(probs.flatten(), n_bins).view(rows, classes)).numpy()
    residual = probs.double().numpy().copy()
    residual[np.arange(rows), labels.numpy()] -= 1
    where = (cells.ravel(), np.repeat(np.arange(rows), classes))
    matrix = sparse.csr_array((residual.ravel(), where), shape=(classes * n_bins, rows))

    def resampled(weights: Weights) -> Array:
        value: Array = np.abs(matrix @ weights).sum(0) / (rows * classes)
        return value

    return resampled


def _in_top(probs: Tensor, labels: Tensor, k: int) -> Array:
    own = probs.gather(1, labels.unsqueeze(1))
    earlier = torch.arange(probs.shape[1]) < labels.unsqueeze(1)
    hit: Array = (((probs > own) | ((probs == own) & earlier)).sum(1) < k).double().numpy()
    return hit


def _through_cells(found: Scan, of: Callable[[Array], Array]) -> Callable[[Weights], Array]:
    assert found.confidence is not None
    assert found.correct is not None
    occupied, cells = np.unique(even_bin_index(found.confidence, CELLS).numpy(), return_inverse=True)
    f, a = found.confidence.double().numpy(), found.correct.double().numpy()
    matrices = [_sum_matrix(cells, len(occupied), values) for values in (np.ones_like(f), f, a, f * f, f * a)]

    def resampled(weights: Weights) -> Array:
        moments = np.zeros((weights.shape[1], 5, CELLS))
        for at, matrix in enumerate(matrices):
            moments[:, at, occupied] = (matrix @ weights).T
        return of(moments)

    return resampled


def _smooth(moments: Array) -> Array:
    return smooth_ece_of(Smoother(lambda n: spread(moments, n)), len(moments))[0]


def _auroc(scores: Array, positives: Array) -> Callable[[Weights], Array]:
    order = np.argsort(scores, kind="stable")
    start, outcome = runs(scores[order]), positives[order, None]

    def resampled(weights: Weights) -> Array:
        ordered = weights[order]
        wins = np.add.reduceat(ordered * outcome, start, axis=0)
        losses = np.add.reduceat(ordered * (1 - outcome), start, axis=0)
        below = losses.cumsum(0) - losses
        pairs = wins.sum(0) * losses.sum(0)
        with np.errstate(invalid="ignore"):  # a resample without one of the outcomes has no AUROC
            value = (wins * (below + losses / 2)).sum(0) / pairs
        possible: Array = value[pairs > 0]
        return possible

    return resampled


def _aurc(found: Scan) -> Callable[[Weights], Array]:
    assert found.confidence is not None
    assert found.correct is not None
    confidence, wrong = found.confidence.numpy(), ~found.correct.numpy()
    order = np.argsort(-confidence, kind="stable")
    start, failed = runs(confidence[order]), wrong[order, None].astype(float)
    harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, len(order) + 1)))

    def resampled(weights: Weights) -> Array:
        ordered = weights[order]
        size = np.add.reduceat(ordered, start, axis=0)
        errors = np.add.reduceat(ordered * failed, start, axis=0)
        first = (size.cumsum(0) - size).astype(int)
        before = errors.cumsum(0) - errors
        rise = harmonic[first + size.astype(int)] - harmonic[first]
        slope = before - np.divide(errors * first, size, out=np.zeros_like(errors), where=size > 0)
        value: Array = (errors + slope * rise).sum(0) / len(order)
        return value

    return resampled


def _any_metric(metric: Callable[..., float], probs: Tensor, labels: Tensor) -> Callable[[Weights], Array]:
    def resampled(weights: Weights) -> Array:
        drawn = (torch.from_numpy(np.repeat(np.arange(len(w)), w.astype(int))) for w in weights.T)
        return np.array([float(metric(probs[rows], labels[rows])) for rows in drawn])

    return resampled


def _rows(values: Tensor | None) -> Array:
    assert values is not None
    array: Array = values.double().numpy()
    return array


_BINNED: dict[Any, Callable[[BinSums], Tensor]] = {
    ece: ece_of,
    mce: mce_of,
    rms_ce: rms_ce_of,
    debiased_ece: debiased_ece_of,
}
_MEANS: dict[Any, Callable[[Scan], Array]] = {
    nll: lambda found: _rows(found.row_nll),
    brier: lambda found: _rows(found.row_brier),
    error: lambda found: 1 - _rows(found.correct),
    confidence_gap: lambda found: _rows(found.confidence) - _rows(found.correct),
}
_KNOWN: set[Any] = {
    *_BINNED, *_MEANS, classwise_ece, adaptive_ece, smooth_ece, aurc, top_k_accuracy,
}  # fmt: skip
