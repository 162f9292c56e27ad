"""Error bars for sigmoid outputs: rows are resampled, all labels of a row together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from focalcal.core.checks import one_of
from focalcal.metrics.bootstrap import NULL_DRAWS, UNIT, check_request, interval
from focalcal.metrics.bootstrap_statistics import (
    Adaptive,
    Array,
    Binned,
    Draw,
    Mean,
    RankedPairs,
    RiskCoverage,
    Smooth,
    batches,
    row_weights,
)
from focalcal.metrics.ece import debiased_ece_of, ece_of, mce_of, rms_ce_of
from focalcal.metrics.multilabel import (
    multilabel_adaptive_ece,
    multilabel_aurc,
    multilabel_auroc,
    multilabel_brier,
    multilabel_confidence_gap,
    multilabel_debiased_ece,
    multilabel_ece,
    multilabel_elements,
    multilabel_error,
    multilabel_mce,
    multilabel_nll,
    multilabel_rms_ce,
    multilabel_smooth_ece,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Statistic = Callable[[Draw], Array]


def multilabel_bootstrap(
    metric: Callable[..., Any],
    probs: Any,
    labels: Any,
    *,
    average: str | None = "mean",
    resamples: int = 1000,
    level: float = 0.95,
    method: str = "adjusted",
    seed: int = 0,
    n_bins: int = 15,
    ignore_index: int | None = None,
) -> Any:
    """The interval of a multilabel metric's mean over the labels, or with `average=None` a list, one for each label.

    As `bootstrap`, for `multilabel_bootstrap(multilabel_ece, probs, labels)`.
    """
    check_request(resamples, level, method, seed)
    one_of("average", average, ("mean", None))
    if metric not in _STATISTICS:
        known = ", ".join(each.__name__ for each in _STATISTICS)
        raise TypeError(f"metric must be one of {known}, got {getattr(metric, '__name__', metric)!r}")
    options: dict[str, Any] = {"n_bins": n_bins} if metric in _WITH_BINS else {}
    estimate = metric(probs, labels, average=None, ignore_index=ignore_index, **options)
    scores, outcomes, keep = (t.numpy() for t in multilabel_elements(probs, labels, ignore_index))
    chosen = [np.flatnonzero(keep[:, at]) for at in range(keep.shape[1])]
    columns = [(scores[rows, at].astype(np.float64), outcomes[rows, at]) for at, rows in enumerate(chosen)]
    statistics = [_STATISTICS[metric](p, y, n_bins) for p, y in columns]

    resampled = [
        np.stack([statistic(Draw(weights[rows])) for statistic, rows in zip(statistics, chosen, strict=True)])
        for weights in row_weights(len(scores), len(scores), resamples, seed)
    ]
    null: list[Array] = []
    if metric in _CALIBRATION_ERRORS:
        null = [
            np.stack([statistic(draw) for statistic, draw in zip(statistics, draws, strict=True)])
            for draws in _drawn_outcomes(columns, min(resamples, NULL_DRAWS), seed)
        ]
    values = np.concatenate(resampled, 1)
    by_chance = np.concatenate(null, 1) if null else None
    limits = _LIMITS.get(metric, UNIT)
    if average == "mean":
        means = None if by_chance is None else by_chance.mean(0)
        return interval(float(estimate.mean()), values.mean(0), means, level, method, limits)
    return [
        interval(float(each), values[at], None if by_chance is None else by_chance[at], level, method, limits)
        for at, each in enumerate(estimate)
    ]


def _drawn_outcomes(columns: list[tuple[Array, Array]], draws: int, seed: int) -> Iterator[list[Draw]]:
    """For each label every row, with outcomes drawn from its probability."""
    generator = np.random.default_rng([seed, 1])
    for count in batches(max(len(p) for p, _ in columns), draws):
        yield [
            Draw(np.ones((len(p), 1)), correct=(generator.random((len(p), count)) < p[:, None]).astype(np.float64))
            for p, _ in columns
        ]


def _binned(of: Any) -> Callable[[Array, Array, int], Statistic]:
    return lambda p, y, n_bins: Binned(p, y.astype(np.float64), n_bins, of)


def _mean(value: Callable[[Array, Array], Array]) -> Callable[[Array, Array, int], Statistic]:
    return lambda p, y, n_bins: Mean(value(p, y))


def _log_loss(p: Array, y: Array) -> Array:
    scores, outcome = torch.from_numpy(p).clamp(0, 1), torch.from_numpy(y)
    loss: Array = -torch.where(outcome, scores.log(), torch.log1p(-scores)).numpy()
    return loss


_STATISTICS: dict[Any, Callable[[Array, Array, int], Statistic]] = {
    multilabel_ece: _binned(ece_of),
    multilabel_mce: _binned(mce_of),
    multilabel_rms_ce: _binned(rms_ce_of),
    multilabel_debiased_ece: _binned(debiased_ece_of),
    multilabel_adaptive_ece: lambda p, y, n_bins: Adaptive(p, y.astype(np.float64), n_bins),
    multilabel_smooth_ece: lambda p, y, n_bins: Smooth(p, y.astype(np.float64)),
    multilabel_confidence_gap: _mean(lambda p, y: p - y),
    multilabel_nll: _mean(_log_loss),
    multilabel_brier: _mean(lambda p, y: (p - y) ** 2),
    multilabel_error: _mean(lambda p, y: ((p > 0.5) != y).astype(np.float64)),
    multilabel_auroc: lambda p, y, n_bins: RankedPairs(p, y.astype(np.float64)),
    multilabel_aurc: lambda p, y, n_bins: RiskCoverage(np.maximum(p, 1 - p), ((p > 0.5) == y).astype(np.float64)),
}
_WITH_BINS: set[Any] = {
    multilabel_ece, multilabel_mce, multilabel_rms_ce, multilabel_debiased_ece, multilabel_adaptive_ece,
}  # fmt: skip
_CALIBRATION_ERRORS: set[Any] = {*_WITH_BINS, multilabel_smooth_ece}
_LIMITS: dict[Any, tuple[float, float]] = {multilabel_nll: (0.0, math.inf), multilabel_confidence_gap: (-1.0, 1.0)}
