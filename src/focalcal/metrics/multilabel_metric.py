"""A metric for sigmoid outputs: every label a question of its own, p = P(label = 1) against 0 or 1.

What is binned is p itself, not the confidence max(p, 1 - p), in the bins of the single-label metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.arrays import Array, as_array
from focalcal.core.checks import in_unit_interval, label_to_ignore, one_of
from focalcal.core.numerics import at_least_float32
from focalcal.metrics.metric import Metric, as_function
from focalcal.predictions import Predictions

if TYPE_CHECKING:
    from focalcal.metrics.sources import Statistic


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
