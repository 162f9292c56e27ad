"""What decisions cost: by the least expected cost under the probabilities, by the best threshold, and paired."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from focalcal.core.arrays import Array, as_array
from focalcal.core.checks import finite_at_least, shown
from focalcal.core.display import Displayed, text_table
from focalcal.metrics.bootstrap import Interval
from focalcal.metrics.event_rows import event_of, read_event_scores
from focalcal.metrics.reliability import check_level
from focalcal.metrics.robust import Robust
from focalcal.metrics.row_weights import cluster_numbers, counted_probs, kept_weights
from focalcal.predictions import Predictions
from focalcal.predictions.inputs import InputOptions, Inputs

_NAMES = ("tn", "fp", "fn", "tp")


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCost(Displayed):
    """What decisions cost per 1,000 rows, with intervals.

    Attributes:
        per_1000: of the decision with the least expected cost under the probabilities: of two classes, p >= threshold.
        threshold: that which the costs ask for if p can be trusted; None of more classes.
        constant: of the best decision that is the same for all rows.
        constant_decision: its column.
        best_threshold: that with the least cost on these very rows.
        best_per_1000: its cost, what a calibrator could gain, a little too good because it was chosen on these rows.
        flagged: the share of rows with p >= threshold; None of more classes.
        row_costs, robust: what each row costs, and how sums over the rows are known: `compare_costs` pairs them.

    >>> found = decision_cost([0.02, 0.04, 0.3, 0.9], [0, 1, 0, 1], cost={"fp": 1, "fn": 20})
    >>> found.per_1000.estimate, found.constant_decision
    (5250.0, 1)
    """

    per_1000: Interval
    threshold: float | None
    constant: Interval
    constant_decision: int
    best_threshold: float | None
    best_per_1000: float | None
    flagged: float | None
    row_costs: Array
    robust: Robust

    def frame(self) -> dict[str, list[Any]]:
        """One row per way to decide."""
        rows = [("least expected cost", self.threshold, self.per_1000), ("the same for all", None, self.constant)]
        columns: dict[str, list[Any]] = {"decision": [row[0] for row in rows], "threshold": [row[1] for row in rows]}
        columns |= {
            name: [getattr(row[2], part) for row in rows]
            for name, part in (("per_1000", "estimate"), ("low", "low"), ("high", "high"))
        }
        if self.best_threshold is not None:
            best = ("best threshold on these rows", self.best_threshold, self.best_per_1000, None, None)
            for values, value in zip(columns.values(), best, strict=True):
                values.append(value)
        return columns

    def __str__(self) -> str:
        """The table."""
        shown = {name: ["" if cell is None else cell for cell in cells] for name, cells in self.frame().items()}
        return text_table(shown)


def decision_cost(
    probs: Any = None,
    labels: Any = None,
    *,
    cost: Any,
    logits: Any = None,
    clusters: Any = None,
    level: float = 0.95,
    ignore_index: int | None = None,
    **inputs: Unpack[InputOptions],
) -> DecisionCost:
    """The cost per 1,000 rows of the decisions that probabilities suggest.

    Each row gets the decision d with the least sum_k p_k cost[k, d]; of an event that is to act where p >= (fp - tn) /
    (fp - tn + fn - tp). Elkan (2001).

    Args:
        probs: (N, K), or in any other form of `focalcal.predictions.read_inputs`, `Predictions` among them.
        labels: (N,), class indices or names.
        cost: {"fp": 1, "fn": 20} of one event, with "tp" and "tn" where being right costs something; or a matrix (K,
            K), cost[k, d] of deciding d where the label is k.
        logits: in place of probs.
        clusters: (N,), names of rows that are not independent of each other.
        level: of the intervals.
        ignore_index: rows with this label are left out.
        inputs: those of `event_calibration`.

    Returns:
        The costs with their intervals, and the thresholds.

    >>> found = decision_cost([0.02, 0.04, 0.3, 0.9], [0, 1, 0, 1], cost={"fp": 1, "fn": 20})
    >>> round(found.threshold, 4), found.per_1000.estimate, found.best_threshold
    (0.0476, 5250.0, 0.04)
    """
    check_level(level)
    matrix = cost_matrix(cost)
    if isinstance(probs, Predictions):
        clusters = probs.clusters if clusters is None else clusters
    given, column = read_event_scores(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
    classes = 2 if given.kind == "outcomes" or column is not None else given.scores.shape[1]
    if len(matrix) != classes:
        raise ValueError(
            f"cost must be ({classes}, {classes}) for {classes} classes, got ({len(matrix)}, {len(matrix)}); "
            "name one class with positive= for the costs of one event"
        )
    chances, happened, weights = _classes(given, column, ignore_index, classes)
    cluster = cluster_numbers(clusters, given, ignore_index)
    robust = Robust(weights, cluster, level)
    expected = chances @ matrix
    decision = expected.argmin(1)
    if classes == 2:
        decision = (expected[:, 1] <= expected[:, 0]).astype(np.int64)  # at the threshold: act
    rows = matrix[happened, decision]
    means = [float(robust.weights @ matrix[happened, d]) for d in range(classes)]
    constant = int(np.argmin(means))
    more: tuple[Any, ...] = (None,) * 4
    if classes == 2:
        best = _best_threshold(chances[:, 1], happened, robust.weights, matrix)
        share = float(robust.weights @ (decision == 1) / robust.weights.sum())
        more = (bayes_threshold(matrix), *best, share)
    return DecisionCost(
        per_1000=_per_1000(rows, matrix, robust),
        threshold=more[0],
        constant=_per_1000(matrix[happened, constant], matrix[:, constant], robust),
        constant_decision=constant,
        best_threshold=more[1],
        best_per_1000=more[2],
        flagged=more[3],
        row_costs=rows,
        robust=robust,
    )


def compare_costs(before: DecisionCost, after: DecisionCost) -> Interval:
    """After minus before per 1,000 rows, paired by row: below 0 it saves. The rows must be the same, in one order.

    Args:
        before: of `decision_cost`.
        after: likewise.

    Returns:
        The difference with its interval.

    >>> before = decision_cost([0.02, 0.04, 0.3, 0.9], [0, 1, 0, 1], cost={"fp": 1, "fn": 20})
    >>> after = decision_cost([0.02, 0.3, 0.1, 0.9], [0, 1, 0, 1], cost={"fp": 1, "fn": 20})
    >>> compare_costs(before, after).estimate
    -5000.0
    """
    for name, given in (("before", before), ("after", after)):
        if not isinstance(given, DecisionCost):
            raise TypeError(f"{name} must be a DecisionCost, got {shown(given)}; pass what decision_cost returns")
    if len(before.row_costs) != len(after.row_costs):
        counts = f"{len(before.row_costs)} and {len(after.row_costs)}"
        raise ValueError(f"before and after must be of the same rows, got {counts}; pass both the same labels")
    robust, difference = before.robust, after.row_costs - before.row_costs
    return _per_1000(difference, difference, robust)


def cost_matrix(cost: Any) -> Array:
    """(K, K), checked: finite, none below 0, and of two classes a mistake costs more than being right."""
    if isinstance(cost, Mapping):
        unknown = [name for name in cost if name not in _NAMES]
        if unknown or not {"fp", "fn"} <= cost.keys():
            raise ValueError(f"cost must have fp and fn, and may have tp and tn, got {shown(dict(cost))}")
        cost = [[cost.get("tn", 0), cost["fp"]], [cost["fn"], cost.get("tp", 0)]]
    matrix = as_array("cost", cost).astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(f"cost must be {{'fp': ..., 'fn': ...}} or a matrix (K, K), got shape {matrix.shape}")
    for value in matrix.ravel().tolist():
        finite_at_least("cost", value, 0.0)
    if len(matrix) == 2 and (matrix[0, 1] <= matrix[0, 0] or matrix[1, 0] <= matrix[1, 1]):
        raise ValueError(
            f"cost must be larger for a mistake than for being right, got tn {matrix[0, 0]:g}, fp {matrix[0, 1]:g}, "
            f"fn {matrix[1, 0]:g}, tp {matrix[1, 1]:g}; otherwise one decision is right for every row"
        )
    return matrix


def bayes_threshold(matrix: Array) -> float:
    """The p from which acting has the smaller expected cost."""
    alarm, miss = matrix[0, 1] - matrix[0, 0], matrix[1, 0] - matrix[1, 1]
    return float(alarm / (alarm + miss))


def _classes(given: Inputs, column: Any, ignore_index: int | None, classes: int) -> tuple[Array, Array, Array]:
    """Probabilities (n, K), labels (n,) and weights (n,) of the rows that count."""
    if classes == 2:
        event = event_of(given, column, ignore_index)
        weights = np.ones(len(event.scores)) if event.weights is None else event.weights
        return np.stack([1 - event.scores, event.scores], 1), event.labels.astype(np.int64), weights
    probs, labels = counted_probs(given, ignore_index)
    weights = np.ones(len(labels)) if given.weights is None else kept_weights(given, ignore_index)
    return probs.astype(np.float64), labels, weights


def _per_1000(rows: Array, levels: Array, robust: Robust) -> Interval:
    mean, low, high = (1000 * value for value in robust.mean(rows, levels))
    return Interval(mean, low, high, robust.level)


def _best_threshold(p: Array, happened: Array, weights: Array, matrix: Array) -> tuple[float, float]:
    """The p >= t with the least cost on these rows; of equally good ones that nearest to the threshold of the costs.

    inf is to act on none.
    """
    order = np.argsort(-p, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(p[order])), len(p) - 1)
    acting = (weights * (matrix[happened, 1] - matrix[happened, 0]))[order].cumsum()[ends]
    none = float(weights @ matrix[happened, 0])
    costs, at = np.append(none, none + acting), np.append(math.inf, p[order][ends])
    good = np.flatnonzero(costs <= costs.min() + 1e-12 * weights.sum() * matrix.max())
    aim = bayes_threshold(matrix)
    chosen = good[np.argmin(np.abs(np.minimum(at[good], 2.0) - aim))]
    return float(at[chosen]), float(1000 * costs[chosen] / weights.sum())
