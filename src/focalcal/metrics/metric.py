"""What is known of a metric: its formula, name, unit and limits, which way is better, what chance alone gives."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from focalcal.core.arrays import Array, as_array
from focalcal.core.checks import in_unit_interval, label_to_ignore, one_of
from focalcal.core.numerics import at_least_float32
from focalcal.metrics.scan import check_bins
from focalcal.predictions import Predictions
from focalcal.predictions.inputs import Inputs

if TYPE_CHECKING:
    from focalcal.metrics.sources import Source, Statistic


@dataclass(frozen=True, eq=False, repr=False)
class Metric:
    """One number of probabilities (N, K) or (N, K, d1, ...) and labels (N, d1, ...): `metric(probs, labels)`.

    `metric(logits=..., labels=...)` and `metric(predictions)` do as well; what else is taken for scores and labels is
    in `focalcal.predictions.inputs`. The predicted class is the first of equally probable ones. Rows whose label is
    `ignore_index` are left out. `sample_weight` (N,) is how many rows of the population each row stands for: the metric
    is that of the rows repeated so often, only ratios matter, and rows of weight 0 are left out; weights of
    `Predictions` are used unless others are given.

    Attributes:
        name: of the function.
        title: as papers write it.
        source: what of the rows it needs.
        description: of the formula itself.
        unit: "share", which is shown in percent, "nats" or "score".
        limits: the least and the largest value.
        better: "lower", "higher", or None.
        by_chance: a calibration error: labels drawn from the probabilities show what chance alone gives.
        proportion: each row counts 0 or 1, so that the interval is Wilson's.
        in_summary: whether `summary` has it.
        adapter: the name of its torchmetrics class.

    >>> from focalcal.metrics import ece
    >>> isinstance(ece, Metric), ece.title, round(ece([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 4)
    (True, 'ECE', 0.4)
    """

    name: str
    title: str  # as papers write it
    source: Source
    description: str = ""  # of the formula itself unless said here
    unit: Literal["share", "nats", "score"] = "share"  # a share is shown in percent
    limits: tuple[float, float] = (0.0, 1.0)
    better: Literal["lower", "higher"] | None = "lower"
    by_chance: bool = False  # a calibration error: labels drawn from the probabilities show what chance alone gives
    proportion: bool = False  # each row counts 0 or 1, so that the interval is Wilson's
    in_summary: bool = False
    adapter: str = ""  # the name of its torchmetrics class

    def __post_init__(self) -> None:
        """Let it pass for a function."""
        returned = f"A float: {repr(self).partition(': ')[2].rstrip('>')}."
        text = self.description or inspect.getdoc(self.source.of) or ""
        as_function(self, self.name, text, self.source.options, returned)

    def __call__(
        self,
        probs: Any = None,
        labels: Any = None,
        *,
        logits: Any = None,
        confidence: Any = None,
        correct: Any = None,
        classes: Sequence[Any] | None = None,
        positive: Any = None,
        normalize: bool = False,
        sample_weight: Any = None,
        ignore_index: int | None = None,
        **options: Any,
    ) -> float:
        """The metric of whatever `focalcal.predictions.read_inputs` takes for scores and labels."""
        if options:
            self.check_options(options)
        given = self.source.read(
            probs, labels, logits=logits, confidence=confidence, correct=correct, classes=classes, positive=positive,
            normalize=normalize, sample_weight=sample_weight, ignore_index=ignore_index,
        )  # fmt: skip
        self.check_inputs(given)
        return self.source.measure(given, ignore_index, options)

    def check_inputs(self, given: Inputs) -> None:
        """Refuse confidences alone where they are not enough."""
        if given.kind == "outcomes" and self.source.needs_classes:
            raise ValueError(
                f"{self.name} needs the probabilities of all classes, got confidence and correct; "
                "pass probs or logits= and labels"
            )

    def check_options(self, options: dict[str, Any]) -> None:
        """Refuse an option that the metric does not have, and a number of bins that is none."""
        for name in options:
            if name not in self.source.options:
                known = ", ".join(inspect.signature(self).parameters)
                raise TypeError(f"{self.name} has no option {name!r}; it has {known}")
        if "n_bins" in options:
            options["n_bins"] = check_bins(options["n_bins"])

    def bins_option(self, n_bins: int) -> dict[str, Any]:
        """The option `n_bins`, if it has one."""
        return {"n_bins": n_bins} if "n_bins" in self.source.options else {}

    def __reduce__(self) -> str:
        """By name, as functions are pickled."""
        return self.name

    def __repr__(self) -> str:
        """Its name and what to expect of it."""
        better = "" if self.better is None else f", {self.better} is better"
        return f"<metric {self.name}: {self.title}, {self.unit} from {self.limits[0]:g} to {self.limits[1]:g}{better}>"


# What the arguments of every metric mean: its docstring lists those that it has.
_ARGUMENTS = {
    "probs": "(N, K) or (N, K, d1, ...) probabilities, or Predictions; one column, (N,), is of the class `positive`.",
    "labels": "(N,) or (N, d1, ...) classes from 0, or names if `classes` are given; of several labels, (N, L).",
    "logits": "scores before softmax, in the place of `probs`.",
    "confidence": "(N,) the probability of the predicted class, with `correct` in the place of `probs` and `labels`.",
    "correct": "(N,) whether that class is the label.",
    "classes": "the names that labels may have, in the order of the columns.",
    "positive": "the class whose probability a single column is, and whose metrics those of an event are.",
    "normalize": "divide rows by their sums, where these miss 1 by more than rounding.",
    "sample_weight": "(N,) how many rows of the population each row stands for.",
    "ignore_index": "rows of this label are left out.",
    "average": '"mean" over labels, or None for one value per label.',
    "n_bins": "how many bins there are.",
    "convention": "what is said above of the ends.",
    "norm": '"l1" for the mean distance, "l2" for the root of the mean square.',
    "bandwidth": "the width of the kernel; by default the smallest that is no smaller than the error it gives.",
    "k": "how many of the most probable classes may hold the label.",
    "accuracy": "that the answered rows are to have.",
    "knots": "of the flexible curve of the event.",
}


def as_function(entry: Any, name: str, description: str, options: dict[str, Any], returned: str) -> None:
    """Make an entry of the table a function of the package to whoever documents, names, inspects or pickles it."""
    call = inspect.signature(type(entry).__call__)
    common = list(call.parameters.values())[1:-1]
    own = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=v) for n, v in options.items()]
    listed = "\n".join(f"    {each.name}: {_ARGUMENTS[each.name]}" for each in (*common, *own))
    about = {
        "__name__": name,
        "__qualname__": name,
        "__module__": "focalcal.metrics",
        "__doc__": f"{description}\n\nArgs:\n{listed}\n\nReturns:\n    {returned}",
        "__signature__": call.replace(parameters=[*common, *own]),
    }
    for attribute, value in about.items():
        object.__setattr__(entry, attribute, value)


@dataclass(frozen=True, eq=False, repr=False)
class MultilabelMetric:
    """A metric of probabilities (N, L) and labels (N, L) of 0 and 1, or of `Predictions`, label by label.

    `average="mean"` gives the mean over the labels, `average=None` an array of L values. Elements whose label is
    `ignore_index` (unknown, say -1) are left out.
    """

    metric: Metric
    description: str = ""  # that of p against the label unless said here
    own_limits: tuple[float, float] | None = None
    decision: bool = False  # of the decision p > 1/2 and its confidence max(p, 1 - p), in the place of p
    both_outcomes: bool = False  # whether every label must occur both as 0 and as 1

    def __post_init__(self) -> None:
        """Let it pass for a function."""
        description = self.description or f"`{self.metric.name}` of p against the label."
        returned = f"A float, of {self.metric.title}; with average=None an array (L,)."
        as_function(self, f"multilabel_{self.metric.name}", description, self.metric.source.options, returned)

    @property
    def limits(self) -> tuple[float, float]:
        """Those of the metric, or its own."""
        return self.own_limits or self.metric.limits

    def __call__(
        self,
        probs: Any,
        labels: Any = None,
        *,
        average: str | None = "mean",
        ignore_index: int | None = None,
        **options: Any,
    ) -> Any:
        """The mean over the labels, or an array of one value per label."""
        self.metric.check_options(options)
        one_of("average", average, ("mean", None))
        columns = multilabel_columns(probs, labels, ignore_index)
        for at, (_, y) in enumerate(columns):
            if self.both_outcomes and (y == y[0]).all():
                raise ValueError(
                    f"labels must hold both outcomes in every column, got only {int(y[0])} in column {at}; "
                    f"{self.metric.title} compares the two, so leave the column out"
                )
        values = np.array([self.of_column(*column, **options) for column in columns])
        return float(values.mean()) if average == "mean" else values

    def of_column(self, p: Array, y: Array, **options: Any) -> float:
        """Of one label: its probabilities (n,) and outcomes (n,) bool."""
        return self.metric.source.of_outcomes(*self._outcomes(p, y), **options)

    def resample_column(self, p: Array, y: Array, **options: Any) -> Statistic:
        """Of one label in many resamples at once."""
        statistic = self.metric.source.resample_outcomes(*self._outcomes(p, y), **options)
        assert statistic is not None
        return statistic

    def _outcomes(self, p: Array, y: Array) -> tuple[Array, Array]:
        if not self.decision:
            return p, y
        exact = p.astype(np.float64)
        return np.maximum(exact, 1 - exact), (p > 0.5) == y

    def __reduce__(self) -> str:
        """By name, as functions are pickled."""
        return f"multilabel_{self.metric.name}"

    def __repr__(self) -> str:
        """Its name."""
        return f"<metric multilabel_{self.metric.name}>"


def multilabel_elements(probs: Any, labels: Any = None, ignore_index: int | None = None) -> tuple[Array, Array, Array]:
    """Checked probabilities, outcomes (bool) and which of them count (bool), each (N, L)."""
    if isinstance(probs, Predictions):
        if labels is not None or not probs.multilabel:
            raise TypeError("Predictions must be multilabel and hold the labels too; give nothing else beside them")
        probs, labels = probs.probs, probs.labels
    scores, target = as_array("probs", probs), as_array("labels", labels)
    label_to_ignore(ignore_index)
    if scores.dtype.kind != "f":
        raise TypeError(f"probs must be floating point, got {scores.dtype}; convert them, e.g. probs.astype('float32')")
    if scores.ndim != 2 or target.shape != scores.shape:
        raise ValueError(
            f"probs and labels must both be (N, L), got {scores.shape} and {target.shape}; "
            "for one label add a dimension, probs[:, None]"
        )
    if scores.size == 0:
        raise ValueError(f"probs must hold at least one row and one label, got shape {scores.shape}")
    keep = np.ones(target.shape, np.bool_) if ignore_index is None else target != ignore_index
    _refuse("labels", target, keep & (target != 0) & (target != 1), "0 or 1", "or name another value as ignore_index")
    wrong = keep & ~in_unit_interval(scores)
    _refuse("probs", scores, wrong, "probabilities from 0 to 1", "pass sigmoid(logits)")
    return at_least_float32(scores), target == 1, keep


def multilabel_columns(probs: Any, labels: Any = None, ignore_index: int | None = None) -> list[tuple[Array, Array]]:
    """The checked probabilities (n,) and outcomes (n,) bool of each label."""
    scores, target, keep = multilabel_elements(probs, labels, ignore_index)
    if ignore_index is None:
        return [(scores[:, at].copy(), target[:, at].copy()) for at in range(scores.shape[1])]
    empty = np.flatnonzero(~keep.any(0))
    if len(empty):
        raise ValueError(f"labels must leave a row for every label, got only ignore_index in column {int(empty[0])}")
    return [(scores[keep[:, at], at], target[keep[:, at], at]) for at in range(scores.shape[1])]


def _refuse(name: str, values: Array, wrong: Array, rule: str, remedy: str) -> None:
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"{name} must be {rule}, got {values[row, column].item():g} in row {row}, column {column}; {remedy}"
        )
