"""Error bars: the bootstrap over rows, for every metric, without a loop over rows or resamples.

Chance alone opens gaps between confidence and accuracy, so that a calibration error is too large, a resampled one
larger still, and 0 is out of reach of both: the interval between two quantiles of the resamples misses the truth
nearly always. Two things are done about it. The interval is symmetric, t - h to t + h, where the resamples differ from
the estimate t by no more than h as often as the level says (Hall 1988). And labels are drawn from the probabilities
themselves, which shows what a perfectly calibrated model would get by chance; unless the estimate exceeds that, the
interval begins at 0. (Broecker & Smith 2007, "Increasing the reliability of reliability diagrams", draw outcomes so.)
benchmarks/interval_coverage.py measures how often the truth is inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from focalcal.core.arrays import one_of
from focalcal.core.scores import scores_and_labels
from focalcal.metrics.detection import aurc, auroc, ranked_input
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
from focalcal.metrics.resampled import (
    Adaptive,
    Array,
    Binned,
    Classwise,
    Draw,
    Mean,
    RankedPairs,
    RiskCoverage,
    Rowwise,
    Smooth,
    in_top,
)
from focalcal.metrics.scan import scan
from focalcal.metrics.smooth import smooth_ece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from focalcal.metrics.scan import Scan

METHODS = ("symmetric", "basic", "percentile")
_AT_ONCE = 1 << 20  # weights
NULL_DRAWS = 200  # of labels: enough for a mean and one quantile


@dataclass(frozen=True)
class Interval:
    """A metric and its confidence interval; for a calibration error also what chance alone would show."""

    estimate: float
    low: float
    high: float
    level: float
    chance: float | None = None  # the mean over labels drawn from the probabilities; None for other metrics

    def __str__(self) -> str:
        """The estimate, the interval in brackets, and what chance alone would show."""
        by_chance = "" if self.chance is None else f", {self.chance:.4f} by chance"
        return f"{self.estimate:.4f} [{self.low:.4f}, {self.high:.4f}]{by_chance}"


def bootstrap(
    metric: Callable[..., float] | Sequence[Callable[..., float]],
    probs: Any,
    labels: Any,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    method: str = "symmetric",
    seed: int = 0,
    n_bins: int = 15,
    ignore_index: int | None = None,
) -> Any:
    """The interval of a metric of this package, given as the function itself: `bootstrap(ece, probs, labels)`.

    Several metrics at once, `bootstrap([ece, brier], ...)`, share the resamples and give a dict by name. For `auroc`
    pass its scores and positives in place of probabilities and labels; for the multilabel metrics there is
    `multilabel_bootstrap`. Any other function of (probs, labels) works too, called once for each resample.

    `method`: "symmetric", "basic" ([2 t - q_high, 2 t - q_low] for quantiles q of the resamples) or "percentile"
    ([q_low, q_high]). The last is here for comparison.
    """
    check_request(resamples, level, method)
    metrics = [metric] if callable(metric) else list(metric)
    if not metrics or not all(callable(each) for each in metrics):
        raise TypeError(f"metric must be a metric function or a list of them, got {metric!r}")
    if any(each.__name__.startswith("multilabel_") for each in metrics):
        raise TypeError("metric is one of several labels a row; use multilabel_bootstrap for it")
    plan = _Plan(metrics, probs, labels, n_bins, ignore_index)
    drawn = [np.concatenate(parts) for parts in zip(*plan.values(plan.resampled_rows(resamples, seed)), strict=True)]
    errors = [each in CALIBRATION_ERRORS for each in metrics]
    null: list[Array | None] = [None] * len(metrics)
    if any(errors):
        chosen = [at for at, is_error in enumerate(errors) if is_error]
        parts = plan.values(plan.drawn_labels(min(resamples, NULL_DRAWS), seed), chosen)
        for at, values in zip(chosen, zip(*parts, strict=True), strict=True):
            null[at] = np.concatenate(values)
    intervals = {
        each.__name__: interval(
            float(plan.estimate(each)), drawn[at], null[at], level, method, signed=each is confidence_gap
        )
        for at, each in enumerate(metrics)
    }
    return intervals[metrics[0].__name__] if callable(metric) else intervals


def check_request(resamples: int, level: float, method: str) -> None:
    """Refuse a number of resamples, a level or a method that makes no sense."""
    check_level(level)
    one_of("method", method, METHODS)
    if isinstance(resamples, bool) or not isinstance(resamples, int) or resamples < 2:
        raise ValueError(f"resamples must be a whole number >= 2, got {resamples!r}; 1000 is the usual choice")


def interval(
    estimate: float, values: Array, null: Array | None, level: float, method: str, *, signed: bool = False
) -> Interval:
    """From the estimate, its resamples and, for a calibration error, its values under drawn labels.

    A metric that is not `signed` cannot be negative, and neither are the ends of its interval.
    """
    tails = [0.5 - level / 2, 0.5 + level / 2]
    values = values[~np.isnan(values)]
    if not (np.isfinite(values).all() and np.isfinite(estimate)):
        # An infinite log-likelihood: no sums or differences, only the order of the values.
        low, high = np.quantile(values, tails, method="inverted_cdf")
        return Interval(estimate, float(low), float(high), level)
    low, high = np.quantile(values, tails)
    if method == "symmetric":
        half = np.quantile(np.abs(values - estimate), level)
        low, high = estimate - half, estimate + half
    elif method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    chance = None
    if null is not None:
        chance = float(null.mean())
        if method != "percentile" and estimate <= np.quantile(null, tails[1]):
            low = 0.0
    if not signed:
        low, high = max(low, 0.0), max(high, 0.0)
    return Interval(estimate, float(low), float(high), level, chance)


def row_weights(rows: int, resamples: int, seed: int) -> Iterator[Array]:
    """How often each row is drawn, (rows, some resamples), when as many as there are are drawn with replacement."""
    generator = np.random.default_rng([seed, 0])
    for count in batches(rows, resamples):
        drawn = generator.integers(rows, size=(rows, count))
        drawn *= count
        drawn += np.arange(count)
        weights = np.bincount(drawn.ravel(), minlength=rows * count).reshape(rows, count)
        yield weights.astype(np.float64)


def batches(rows: int, resamples: int) -> list[int]:
    """How many resamples to take at once, time after time."""
    at_once = max(1, min(resamples, _AT_ONCE // rows))
    return [min(at_once, resamples - start) for start in range(0, resamples, at_once)]


class _Plan:
    """What is computed once for all resamples."""

    def __init__(
        self, metrics: list[Callable[..., float]], probs: Any, labels: Any, n_bins: int, ignore_index: int | None
    ) -> None:
        self.probs, self.labels, self.n_bins, self.ignore_index = probs, labels, n_bins, ignore_index
        self.statistics: list[Callable[[Draw], Array]]
        if auroc in metrics:
            if metrics != [auroc]:
                raise ValueError("auroc takes scores and positives, other metrics probs and labels; ask for it alone")
            scores, positives = ranked_input(probs, labels)
            self.rows = len(scores)
            self.statistics = [RankedPairs(scores, positives)]
            return
        found = scan(probs, labels, n_bins=n_bins, ignore_index=ignore_index, brier=True, nll=True, rows=True)
        self.rows = found.rows
        self.statistics = [self._statistic(metric, found) for metric in metrics]

    def _statistic(self, metric: Callable[..., float], found: Scan) -> Callable[[Draw], Array]:
        pair = _rows(found.confidence), _rows(found.correct)
        if metric in _BINNED:
            return Binned(*pair, self.n_bins, _BINNED[metric])
        if metric in _MEANS:
            return Mean(_MEANS[metric](found))
        if metric is classwise_ece:
            return Classwise(*self.kept(), self.n_bins)
        if metric is top_k_accuracy:
            return Mean(in_top(*self.kept(), 5))
        if metric is adaptive_ece:
            return Adaptive(*pair, self.n_bins)
        if metric is smooth_ece:
            return Smooth(*pair)
        if metric is aurc:
            return RiskCoverage(*pair)
        return Rowwise(metric, *self.kept())

    def estimate(self, metric: Callable[..., float]) -> float:
        options: dict[str, Any] = {}
        if metric in _KNOWN:
            options["ignore_index"] = self.ignore_index
        if metric in _BINNED or metric in (classwise_ece, adaptive_ece):
            options["n_bins"] = self.n_bins
        return metric(self.probs, self.labels, **options)

    def kept(self) -> tuple[Tensor, Tensor]:
        """Probabilities (rows, K) and labels (rows,) without the ignored ones."""
        scores, index = scores_and_labels("probs", self.probs, self.labels, ignore_index=self.ignore_index)
        scores, index = scores.movedim(1, -1).reshape(-1, scores.shape[1]).cpu(), index.flatten().cpu()
        if self.ignore_index is None:
            return scores, index
        keep = index != self.ignore_index
        return scores[keep], index[keep]

    def values(self, draws: Iterator[Draw], chosen: list[int] | None = None) -> Iterator[list[Array]]:
        """For each batch of resamples a list of (resamples,) values, one for each metric."""
        statistics = self.statistics if chosen is None else [self.statistics[at] for at in chosen]
        for draw in draws:
            yield [statistic(draw) for statistic in statistics]

    def resampled_rows(self, resamples: int, seed: int) -> Iterator[Draw]:
        """As many rows as there are, drawn with replacement."""
        return (Draw(weights) for weights in row_weights(self.rows, resamples, seed))

    def drawn_labels(self, resamples: int, seed: int) -> Iterator[Draw]:
        """Every row, with labels drawn from its probabilities."""
        generator = np.random.default_rng([seed, 1])
        probs, _ = self.kept()
        cumulative = probs.double().cumsum(1).numpy()
        cumulative /= cumulative[:, -1:]
        predicted = probs.max(1).indices.numpy()[:, None]
        for count in batches(self.rows, resamples):
            uniform = generator.random((self.rows, count))
            labels = np.zeros((self.rows, count), dtype=np.int64)
            for k in range(cumulative.shape[1] - 1):
                labels += uniform >= cumulative[:, k, None]
            yield Draw(weights=np.ones((self.rows, 1)), labels=labels, correct=(labels == predicted).astype(np.float64))


def _rows(values: Tensor | None) -> Array:
    assert values is not None
    array: Array = values.to(torch.float64).numpy()
    return array


_BINNED: dict[Any, Any] = {ece: ece_of, mce: mce_of, rms_ce: rms_ce_of, debiased_ece: debiased_ece_of}
_MEANS: dict[Any, Callable[[Scan], Array]] = {
    nll: lambda found: _rows(found.row_nll),
    brier: lambda found: _rows(found.row_brier),
    error: lambda found: 1 - _rows(found.correct),
    confidence_gap: lambda found: _rows(found.confidence) - _rows(found.correct),
}
CALIBRATION_ERRORS: set[Any] = {*_BINNED, classwise_ece, adaptive_ece, smooth_ece}
_KNOWN: set[Any] = {*CALIBRATION_ERRORS, *_MEANS, aurc, top_k_accuracy}
