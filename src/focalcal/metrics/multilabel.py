"""Sigmoid outputs label by label: a summary, reliability bins, the Murphy decomposition, and error bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.arrays import Array
from focalcal.core.binning import equal_width_edges
from focalcal.core.checks import one_of, shown
from focalcal.core.display import Displayed, shortened
from focalcal.metrics.bootstrap import NULL_DRAWS, check_request, interval
from focalcal.metrics.bootstrap_statistics import Draw, batches, row_weights
from focalcal.metrics.metric import MultilabelMetric, multilabel_columns, multilabel_elements
from focalcal.metrics.murphy import Murphy, murphy_of
from focalcal.metrics.proper import binary_brier
from focalcal.metrics.reliability import Reliability, check_level, reliability_of
from focalcal.metrics.scan import check_bins, scan_of_outcomes
from focalcal.metrics.summary import value_in_summary
from focalcal.metrics.table import MULTILABEL_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator


def multilabel_murphy(
    probs: Any, labels: Any = None, *, n_bins: int = 15, ignore_index: int | None = None
) -> list[Murphy]:
    """The Murphy decomposition of each label's Brier score.

    Args:
        probs: (N, L), of yes, or multi-label `Predictions`.
        labels: (N, L), 0 or 1.
        n_bins: how many bins.
        ignore_index: rows with this label are left out.

    Returns:
        One decomposition per label.

    >>> rows = [[0.9, 0.2], [0.6, 0.7], [0.3, 0.1], [0.8, 0.4]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> [round(each.brier, 3) for each in multilabel_murphy(*rows)]
    [0.225, 0.125]
    """
    n_bins = check_bins(n_bins)
    columns = multilabel_columns(probs, labels, ignore_index)
    return [murphy_of(scan_of_outcomes(p, y, n_bins).bins, float(binary_brier(p, y).mean())) for p, y in columns]


def multilabel_reliability(
    probs: Any, labels: Any = None, *, n_bins: int = 15, level: float = 0.95, ignore_index: int | None = None
) -> list[Reliability]:
    """p against how often the label is 1, for each label.

    Args:
        probs: (N, L), of yes, or multi-label `Predictions`.
        labels: (N, L), 0 or 1.
        n_bins: how many bins.
        level: of the intervals.
        ignore_index: rows with this label are left out.

    Returns:
        One per label.

    >>> rows = [[0.9, 0.2], [0.6, 0.7], [0.3, 0.1], [0.8, 0.4]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> [int(each.count.sum()) for each in multilabel_reliability(*rows)]
    [4, 4]
    """
    n_bins = check_bins(n_bins)
    check_level(level)
    columns = multilabel_columns(probs, labels, ignore_index)
    return [reliability_of(scan_of_outcomes(p, y, n_bins).bins, equal_width_edges(n_bins), level) for p, y in columns]


@dataclass(frozen=True, eq=False, repr=False)
class MultilabelSummary(Displayed):
    """`values`: the metrics of `summary` that sigmoid outputs have, as arrays of one value per label.

    Each is an attribute too (`found.ece`); `mean` has their means over the labels.

    Attributes:
        rows: how many.
        positives: (L,), rows with each label.
        values: by metric, (L,).
        reliability: the bins of each label.

    >>> rows = [[0.9, 0.2], [0.6, 0.7], [0.3, 0.1], [0.8, 0.4]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> multilabel_summary(*rows).positives
    array([2, 2])
    """

    rows: Array
    positives: Array
    values: dict[str, Array]
    reliability: list[Reliability]

    def __getattr__(self, name: str) -> Array:
        """The metric of that name."""
        return value_in_summary(self, name)

    @property
    def mean(self) -> dict[str, float]:
        """The mean over the labels of every metric."""
        return {name: float(each.mean()) for name, each in self.values.items()}

    def frame(self) -> dict[str, list[Any]]:
        """One row per label."""
        columns = {"label": np.arange(len(self.rows)), "rows": self.rows, "positives": self.positives, **self.values}
        return {name: values.tolist() for name, values in columns.items()}

    def __str__(self) -> str:
        """One line per label, and the mean."""
        lines = [" label     rows positives " + " ".join(f"{name:>14}" for name in self.values)]
        for at in shortened(len(self.rows)):
            if at is None:
                lines.append(f"{'...':>6}")
                continue
            values = " ".join(f"{each[at]:14.4f}" for each in self.values.values())
            lines.append(f"{at:6d} {self.rows[at]:8d} {self.positives[at]:9d} {values}")
        lines.append(f"{'mean':>6} {'':8} {'':9} " + " ".join(f"{value:14.4f}" for value in self.mean.values()))
        return "\n".join(lines)


def multilabel_summary(
    probs: Any, labels: Any = None, *, n_bins: int = 15, level: float = 0.95, ignore_index: int | None = None
) -> MultilabelSummary:
    """`summary`, label by label.

    Args:
        probs: (N, L), of yes, or multi-label `Predictions`.
        labels: (N, L), 0 or 1.
        n_bins: how many bins.
        level: of the intervals.
        ignore_index: rows with this label are left out.

    Returns:
        Metrics as arrays of one value per label.

    >>> rows = [[0.9, 0.2], [0.6, 0.7], [0.3, 0.1], [0.8, 0.4]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> multilabel_summary(*rows).error
    array([0.25, 0.25])
    """
    n_bins = check_bins(n_bins)
    check_level(level)
    columns = multilabel_columns(probs, labels, ignore_index)
    values = {
        name: np.array([entry.of_column(p, y, **entry.metric.bins_option(n_bins)) for p, y in columns])
        for name, entry in MULTILABEL_METRICS.items()
        if entry.metric.in_summary
    }
    return MultilabelSummary(
        rows=np.array([len(y) for _, y in columns]),
        positives=np.array([int(y.sum()) for _, y in columns]),
        values=values,
        reliability=[
            reliability_of(scan_of_outcomes(p, y, n_bins).bins, equal_width_edges(n_bins), level) for p, y in columns
        ],
    )


def multilabel_bootstrap(
    metric: MultilabelMetric,
    probs: Any,
    labels: Any = None,
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

    Rows are resampled, all labels of a row together. Otherwise as `bootstrap`, for
    `multilabel_bootstrap(multilabel_ece, probs, labels)`.

    Args:
        metric: a multilabel one.
        probs: (N, L), of yes, or multi-label `Predictions`.
        labels: (N, L), 0 or 1.
        average: "mean" over the labels, or None for each.
        resamples: of the bootstrap.
        level: of the intervals.
        method: as of `bootstrap`.
        seed: of the bootstrap.
        n_bins: how many bins.
        ignore_index: rows with this label are left out.

    Returns:
        One interval, or a list of them.

    >>> from focalcal.metrics import multilabel_error
    >>> rows = [[0.9, 0.2], [0.6, 0.7], [0.3, 0.1], [0.8, 0.4]], [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> multilabel_bootstrap(multilabel_error, *rows).estimate
    0.25
    """
    check_request(resamples, level, method, seed)
    one_of("average", average, ("mean", None))
    if not isinstance(metric, MultilabelMetric):
        known = ", ".join(f"multilabel_{name}" for name in MULTILABEL_METRICS)
        raise TypeError(f"metric must be one of {known}, got {shown(getattr(metric, '__name__', metric))}")
    options = metric.metric.bins_option(n_bins)
    estimate = metric(probs, labels, average=None, ignore_index=ignore_index, **options)
    scores, outcomes, keep = multilabel_elements(probs, labels, ignore_index)
    chosen = [np.flatnonzero(keep[:, at]) for at in range(keep.shape[1])]
    columns = [(scores[rows, at], outcomes[rows, at]) for at, rows in enumerate(chosen)]
    statistics = [metric.resample_column(p, y, **options) for p, y in columns]

    resampled = [
        np.stack([statistic(Draw(weights[rows])) for statistic, rows in zip(statistics, chosen, strict=True)])
        for weights in row_weights(len(scores), len(scores), resamples, seed)
    ]
    null: list[Array] = []
    if metric.metric.by_chance:
        null = [
            np.stack([statistic(draw) for statistic, draw in zip(statistics, draws, strict=True)])
            for draws in _drawn_outcomes([p for p, _ in columns], min(resamples, NULL_DRAWS), seed)
        ]
    values = np.concatenate(resampled, 1)
    by_chance = np.concatenate(null, 1) if null else None
    limits = metric.limits
    if average == "mean":
        means = None if by_chance is None else by_chance.mean(0)
        return interval(float(estimate.mean()), values.mean(0), means, level, method, limits)
    return [
        interval(float(value), values[at], None if by_chance is None else by_chance[at], level, method, limits)
        for at, value in enumerate(estimate)
    ]


def _drawn_outcomes(columns: list[Array], draws: int, seed: int) -> Iterator[list[Draw]]:
    """For each label every row, with outcomes drawn from its probability."""
    generator = np.random.default_rng([seed, 1])
    for count in batches(max(map(len, columns)), draws):
        yield [
            Draw(np.ones((len(p), 1)), correct=(generator.random((len(p), count)) < p[:, None]).astype(np.float64))
            for p in columns
        ]
