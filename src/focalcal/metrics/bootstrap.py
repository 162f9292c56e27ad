"""Error bars: the bootstrap over rows, for every metric, without a loop over rows or resamples.

Chance alone opens gaps between confidence and accuracy, so that a calibration error is too large, a resampled one
larger still, and 0 is out of reach of both: the interval between two quantiles of the resamples misses the truth
nearly always. Therefore labels are also drawn from the probabilities themselves, which shows what a perfectly
calibrated model would get by chance. For an estimate t with the upper quantile q of its resamples the interval
"adjusted" ends at q and begins at the smaller of 2 t - q and t - chance (chance adds no more than this on average,
since |gap + noise| <= |gap| + |noise|), or at 0 unless t exceeds what chance gives. Broecker & Smith (2007),
"Increasing the reliability of reliability diagrams", draw outcomes so. Other metrics have the symmetric interval:
t - h to t + h, where resamples differ from t by no more than h as often as the level says (Hall 1988).
A share of rows (error, top-k accuracy) has the Wilson interval. benchmarks/interval_coverage.py measures how often
the truth is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Unpack

import numpy as np

from focalcal.core.arrays import Array, is_tensor, like_given
from focalcal.core.checks import one_of, rounding_collected, whole_number
from focalcal.core.display import Displayed
from focalcal.metrics.bootstrap_statistics import Classwise, Draw, Rowwise, batches, row_weights
from focalcal.metrics.event_metrics import FromEvent, OfOutcomeDraws
from focalcal.metrics.event_rows import event_of, read_event_scores
from focalcal.metrics.metric import Metric, MultilabelMetric
from focalcal.metrics.ranking import Ranked, auroc, auroc_of, ranked_input
from focalcal.metrics.reliability import check_level, wilson
from focalcal.metrics.row_weights import cluster_numbers, counted_probs, kept_weights
from focalcal.metrics.scan import check_bins, scan_inputs
from focalcal.metrics.table import AUROC
from focalcal.predictions import Predictions
from focalcal.predictions.field_checks import checked_weights
from focalcal.predictions.inputs import InputOptions, Inputs, read_inputs

Function = Callable[..., float]
METHODS = ("adjusted", "basic", "percentile")
NULL_DRAWS = 200  # of labels: enough for a mean and one quantile


@dataclass(frozen=True, repr=False)
class Interval(Displayed):
    """A metric and its confidence interval; for a calibration error also what chance alone would show.

    Attributes:
        estimate: of the metric.
        low: the lower end.
        high: the upper one.
        level: of the interval.
        chance: what a calibrated model would show on as many rows, None of other metrics.

    >>> from focalcal.metrics import error
    >>> bootstrap(error, [[0.9, 0.1]] * 4, [0, 0, 0, 1]).estimate
    0.25
    """

    estimate: float
    low: float
    high: float
    level: float
    chance: float | None = None  # the mean over labels drawn from the probabilities; None for other metrics

    def __float__(self) -> float:
        """The estimate, for who logs one number."""
        return self.estimate

    def __str__(self) -> str:
        """The estimate, the interval in brackets, and what chance alone would show."""
        by_chance = "" if self.chance is None else f", {self.chance:.4f} by chance"
        return f"{self.estimate:.4f} [{self.low:.4f}, {self.high:.4f}]{by_chance}"


def bootstrap(
    metric: Function | Sequence[Function] | Mapping[str, Function],
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    resamples: int = 1000,
    level: float = 0.95,
    method: str = "adjusted",
    clusters: Any = None,
    seed: int = 0,
    n_bins: int = 15,
    ignore_index: int | None = None,
    **inputs: Unpack[InputOptions],
) -> Any:
    """The interval of a metric of this package, given as the function itself: `bootstrap(ece, probs, labels)`.

    Several metrics at once, in a list or a mapping by name, share the resamples and give a dict. Options go through
    `functools.partial(top_k_accuracy, k=3)`. For `auroc` pass its scores and positives in place of probabilities and
    labels; for the multilabel metrics there is `multilabel_bootstrap`. Any other function of (probs, labels) works too,
    called once for each resample.

    Rows are taken for independent. Where they are not, `clusters` (one name per row) has whole clusters resampled, by
    default those of `Predictions`; the pixels of an image are a cluster by themselves. `method`: "adjusted", "basic"
    ([2 t - q_high, 2 t - q_low] for the quantiles q of the resamples) or "percentile" ([q_low, q_high]), the last for
    comparison.

    Args:
        metric: a function of this package, several in a list or a mapping by name, or any function of (probs, labels).
        probs: (N, K), or in any other form of `focalcal.predictions.read_inputs`, `Predictions` among them.
        labels: (N,), class indices or names.
        logits: in place of probs.
        resamples: of the bootstrap.
        level: of the intervals.
        method: "adjusted", "basic" or "percentile".
        clusters: (N,), names of rows that are not independent of each other.
        seed: of the bootstrap.
        n_bins: how many bins.
        ignore_index: rows with this label are left out.
        inputs: those of `focalcal.predictions.read_inputs`.

    Returns:
        Its estimate and interval, or a dict of several.

    >>> from focalcal.metrics import error
    >>> found = bootstrap(error, [[0.9, 0.1]] * 100, [0] * 80 + [1] * 20)
    >>> found.estimate, found.low < 0.2 < found.high
    (0.2, True)
    """
    check_request(resamples, level, method, seed)
    metrics = _by_name(metric)
    if isinstance(probs, Predictions) and clusters is None:
        clusters = probs.clusters
    if auroc in metrics.values():
        if len(metrics) > 1:
            raise ValueError("auroc takes scores and positives, other metrics probs and labels; ask for it alone")
        weights = inputs.get("sample_weight")
        weights = None if weights is None else checked_weights(weights, len(np.asarray(labels)), "sample_weight")
        given = Inputs("outcomes", *ranked_input(probs, labels), weights=weights)
        cluster = cluster_numbers(clusters, given)
        if weights is not None:
            keep = weights > 0
            given = given._replace(scores=given.scores[keep], labels=given.labels[keep], weights=kept_weights(given))
    elif _all_events(metrics):
        whole, column = read_event_scores(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
        cluster, given = cluster_numbers(clusters, whole, ignore_index), event_of(whole, column, ignore_index)
    else:
        given = read_inputs(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
        cluster = cluster_numbers(clusters, given, ignore_index)
        scores = probs if logits is None else logits
        if is_tensor(scores):  # so that a function of the caller's own is given tensors
            metrics = {name: own if _entry(own) else _of_tensors(own, scores) for name, own in metrics.items()}
    plan = _Plan(metrics, given, cluster, check_bins(n_bins), ignore_index)
    with rounding_collected():  # the plan has looked at every row, and said what there was to say
        resampled = plan.values(plan.resampled_rows(resamples, seed))
        drawn = [np.concatenate(parts) for parts in zip(*resampled, strict=True)]
        null = plan.null(min(resamples, NULL_DRAWS), seed)
        estimates = {name: float(plan.estimate(name)) for name in plan.metrics}
    intervals = {}
    for at, (name, entry) in enumerate(plan.entries.items()):
        estimate = estimates[name]
        if entry is not None and entry.proportion and method == "adjusted" and plan.cluster_of is None:
            rows = np.array(plan.rows if plan.own is None else plan.effective(estimate, drawn[at]))
            low, high = wilson(estimate * rows, rows, level)
            intervals[name] = Interval(estimate, float(low), float(high), level)
        else:
            limits = (-np.inf, np.inf) if entry is None else entry.limits
            intervals[name] = interval(estimate, drawn[at], null.get(at), level, method, limits)
    return next(iter(intervals.values())) if callable(metric) else intervals


def _by_name(metric: Any) -> dict[str, Function]:
    """The metrics asked for."""
    if isinstance(metric, Mapping):
        named = dict(metric)
    else:
        metrics = [metric] if callable(metric) else [] if isinstance(metric, str) else list(metric)
        named = {getattr(_function(each), "__name__", repr(each)): each for each in metrics}
        if len(named) < len(metrics):
            raise ValueError(f"metric has several functions of one name among {list(named)}; give a mapping by name")
    if not named or not all(callable(each) for each in named.values()):
        raise TypeError(f"metric must be a metric function, a list or a mapping of them, got {metric!r}")
    if any(isinstance(_function(each), MultilabelMetric) for each in named.values()):
        raise TypeError("metric is one of several labels per row; use multilabel_bootstrap for it")
    return named


def _function(metric: Any) -> Any:
    return metric.func if isinstance(metric, partial) and not metric.args else metric


def _of_tensors(function: Function, like: Any) -> Function:
    """The function, given tensors on the device of `like` in the place of arrays."""
    return lambda probs, labels: function(like_given(like, probs), like_given(like, labels))


def _entry(metric: Any) -> Metric | None:
    """The entry of the table that a metric is; None for any other function."""
    function = _function(metric)
    return AUROC if function is auroc else function if isinstance(function, Metric) else None


def _all_events(metrics: dict[str, Function]) -> bool:
    """Whether every metric is one of an event, so that `positive` may name its class."""
    entries = [_entry(metric) for metric in metrics.values()]
    return all(entry is not None and isinstance(entry.source, FromEvent) for entry in entries)


def check_request(resamples: int, level: float, method: str, seed: int) -> None:
    """Refuse a number of resamples, a level, a method or a seed that makes no sense."""
    check_level(level)
    one_of("method", method, METHODS)
    whole_number("resamples", resamples, least=2, most=10**7, remedy="1000 is the usual choice")
    whole_number("seed", seed, least=0, remedy="the same one gives the same interval")


def interval(
    estimate: float, values: Array, null: Array | None, level: float, method: str, limits: tuple[float, float]
) -> Interval:
    """From the estimate, its resamples and, for a calibration error, its values under drawn labels.

    `limits` are the least and the largest value that the metric can take, beyond which no end may lie.
    """
    tails = [0.5 - level / 2, 0.5 + level / 2]
    values = values[~np.isnan(values)]
    if np.isnan(estimate) or not len(values):
        return Interval(estimate, *limits, level)  # nothing is known of what has no value
    if not (np.isfinite(values).all() and np.isfinite(estimate)):
        # An infinite log-likelihood: no sums or differences, only the order of the values.
        low, high = np.quantile(values, tails, method="inverted_cdf")
        return Interval(estimate, float(low), float(high), level)
    low, high = np.quantile(values, tails)
    chance = None if null is None else float(null.mean())
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    elif method == "adjusted" and chance is not None:
        high = max(high, estimate)
        low = min(2 * estimate - high, estimate - chance)
    elif method == "adjusted":
        half = np.quantile(np.abs(values - estimate), level)
        low, high = estimate - half, estimate + half
    if null is not None and method != "percentile" and estimate <= np.quantile(null, tails[1]):
        low = 0.0
    least, largest = limits
    low, high = min(max(low, least), largest), min(max(high, least), largest)
    return Interval(estimate, float(low), float(high), level, chance)


class _Plan:
    """What is computed once for all resamples."""

    def __init__(
        self, metrics: dict[str, Function], given: Inputs, cluster: Array | None, n_bins: int, ignore_index: int | None
    ) -> None:
        self.metrics, self.given, self.n_bins, self.ignore_index = metrics, given, n_bins, ignore_index
        self.cluster_of = cluster  # the cluster of each row that counts; None where each is its own
        self.entries = {name: _entry(metric) for name, metric in metrics.items()}
        for entry in self.entries.values():
            if entry is not None:
                entry.check_inputs(given)
            elif given.kind == "outcomes":
                raise ValueError("a function of your own needs probs and labels, got confidence and correct")
        if AUROC in self.entries.values():
            self.rows, self.own = len(given.labels), given.weights
            self.statistics: list[Callable[[Draw], Array]] = [Ranked(auroc_of, given.scores, given.labels)]
            return
        self.sums = scan_inputs(given, n_bins=n_bins, ignore_index=ignore_index, brier=True, nll=True, rows=True)
        self.rows, self.own = self.sums.rows, self.sums.weights
        self.statistics = [self._statistic(name) for name in metrics]
        ranked: list[Any] = [statistic for statistic in self.statistics if isinstance(statistic, Ranked)]
        for each in ranked:
            each.ranking = ranked[0].ranking  # of the same rows

    def effective(self, share: float, drawn: Array) -> float:
        """How many rows of equal weight would give a share as much spread as its resamples have."""
        assert self.own is not None
        spread, variance = float(drawn.var()), share * (1 - share)
        return variance / spread if spread > 0 and variance > 0 else float(self.own.sum())

    def _statistic(self, name: str) -> Callable[[Draw], Array]:
        """The metric of many resamples at once, or else of one after the other."""
        entry, statistic = self.entries[name], None
        if entry is not None:
            options = self._options(name)
            if isinstance(entry.source, FromEvent):
                statistic = entry.source.resample_event(self.event, **options)
                return statistic if self.given.kind == "outcomes" else OfOutcomeDraws(statistic, self.event)
            if options.keys() <= entry.source.options.keys():
                statistic = entry.source.resample(self.sums, lambda: self.kept, **options)
        if statistic is None and self.own is not None:
            raise ValueError(
                "sample_weight is for metrics with options that can be resampled at once, got weights for a function "
                f"of your own or other options, {name}; leave the weights out, or repeat the rows"
            )
        return Rowwise(self.metrics[name], *self.kept) if statistic is None else statistic

    @cached_property
    def event(self) -> Inputs:
        """The rows of the event that is the second of two classes."""
        return FromEvent.event(self.given, self.ignore_index)

    def _options(self, name: str) -> dict[str, Any]:
        """What the metric was given by `functools.partial`, and the number of bins unless that is among it."""
        entry = self.entries[name]
        assert entry is not None
        return {**entry.bins_option(self.n_bins), **getattr(self.metrics[name], "keywords", {})}

    def estimate(self, name: str) -> float:
        """The metric of the rows as they are."""
        metric, entry = self.metrics[name], self.entries[name]
        if entry is None:
            return metric(*self.kept)
        if entry is AUROC:
            return metric(self.given.scores, self.given.labels, sample_weight=self.own)
        options = self._options(name)
        if not options.keys() <= entry.source.options.keys():
            return metric(*self.kept)
        return entry.source.measure(self.given, self.ignore_index, options)

    @cached_property
    def kept(self) -> tuple[Array, Array]:
        """Probabilities (rows, K) and labels (rows,) without the ignored ones."""
        return counted_probs(self.given, self.ignore_index)

    def values(self, draws: Iterator[Draw], chosen: list[int] | None = None) -> Iterator[list[Array]]:
        """For each batch of resamples a list of (resamples,) values, one for each metric."""
        statistics = self.statistics if chosen is None else [self.statistics[at] for at in chosen]
        for draw in draws:
            for piece in draw.pieces():
                yield [statistic(piece) for statistic in statistics]

    def resampled_rows(self, resamples: int, seed: int) -> Iterator[Draw]:
        """As many rows, or clusters of them, as there are, drawn with replacement."""
        cluster, own = self.cluster_of, self.own
        units = self.rows if cluster is None else int(cluster.max()) + 1
        for times in row_weights(units, self.rows, resamples, seed):
            drawn = times if cluster is None else times[cluster]
            yield Draw(drawn if own is None else drawn * own[:, None])

    def null(self, draws: int, seed: int) -> dict[int, Array]:
        """The values of the calibration errors under drawn labels, by their position among the metrics."""
        chosen = [
            at
            for at, entry in enumerate(self.entries.values())
            if entry is not None and entry.by_chance and not isinstance(self.statistics[at], Rowwise)
        ]
        if not chosen:
            return {}
        parts = zip(*self.values(self.drawn_labels(draws, seed), chosen), strict=True)
        return {at: np.concatenate(values) for at, values in zip(chosen, parts, strict=True)}

    def drawn_labels(self, draws: int, seed: int) -> Iterator[Draw]:
        """Every row, right with the probability it says; for the classwise error with labels from all its classes."""
        generator = np.random.default_rng([seed, 1])
        confidence = self.sums.outcomes[0].astype(np.float64)[:, None]
        cumulative = None
        if any(isinstance(statistic, Classwise) for statistic in self.statistics):
            # Row r's distribution function, moved to (r, r + 1]: one sorted list serves all rows.
            cumulative = self.kept[0].cumsum(1, dtype=np.float64)
            cumulative /= cumulative[:, -1:]
            cumulative += np.arange(self.rows)[:, None]
        for count in batches(self.rows, draws):
            correct = (generator.random((self.rows, count)) < confidence).astype(np.float64)
            labels = None
            if cumulative is not None:
                places = generator.random((self.rows, count)) + np.arange(self.rows)[:, None]
                flat = np.searchsorted(cumulative.ravel(), places, side="left")
                first = np.arange(self.rows)[:, None] * cumulative.shape[1]
                labels = np.clip(flat - first, 0, cumulative.shape[1] - 1)
            own = np.ones(self.rows) if self.own is None else self.own
            yield Draw(own[:, None], labels, correct)
