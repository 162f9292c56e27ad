"""What an audit reads off each row of predictions, how much the row counts, and which rows belong together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from focalcal.core.numerics import log_softmax, softmax
from focalcal.metrics.proper import binary_brier, binary_error, binary_nll, of_label, row_brier, row_nll

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.predictions import Predictions


@dataclass(frozen=True, eq=False)
class Design:
    """How rows were sampled: `weights` (n,) that restore the population, and `clusters` (n,) of rows, from 0; or None.

    Variances are those of weighted sums over independent units: rows, or whole clusters.
    """

    weights: NDArray[np.float64] | None = None
    clusters: NDArray[np.int64] | None = None

    def mean(self, values: NDArray[np.float64]) -> float:
        """Over rows, by their weights."""
        return float(np.average(values, weights=self.weights))

    def spread(self, residuals: NDArray[np.float64], *, independent: bool = False) -> float:
        """The standard error of the mean of what has been centred; with `independent`, were there no clusters."""
        weighted = residuals if self.weights is None else residuals * self.weights
        total = len(residuals) if self.weights is None else float(self.weights.sum())
        if self.clusters is None or independent:
            return math.sqrt(float(np.sum(weighted**2))) / total
        units = np.bincount(self.clusters, weighted)
        return math.sqrt(float(np.sum(units**2)) * len(units) / (len(units) - 1)) / total

    def weighing(self, residuals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights whose sum is the number of independent rows of equal weight that tell as much of the residuals."""
        centred = residuals - self.mean(residuals)
        own = np.ones_like(centred) if self.weights is None else self.weights
        effect = (self.spread(centred) / (self.spread(centred, independent=True) or 1.0)) ** 2
        found: NDArray[np.float64] = own * (own.sum() / (own**2).sum() / max(1.0, effect))
        return found

    def quantile(self, probability: float) -> float:
        """Of the normal distribution, or of Student's t with one degree of freedom less than there are clusters."""
        freedom = math.inf if self.clusters is None else float(self.clusters.max())
        return float(stdtrit(freedom, probability))

    def part(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Design:
        """Of some rows."""
        weights = None if self.weights is None else self.weights[rows]
        clusters = None if self.clusters is None else np.unique(self.clusters[rows], return_inverse=True)[1]
        return Design(weights, clusters)


def design_of(predictions: Predictions) -> Design:
    """Of the predictions' weights, unless all are alike, and clusters."""
    weights: NDArray[Any] | None = predictions.weights
    clusters: NDArray[Any] | None = None
    if predictions.clusters is not None:
        if (unnamed := predictions.clusters == "").any():  # else all of them were one cluster
            raise ValueError(
                f"clusters must name the cluster of every row, got '' in row {int(unnamed.argmax())}; fill it in, or "
                "leave the row out (drop_missing=True, of a command --drop-missing)"
            )
        clusters = np.unique(predictions.clusters, return_inverse=True)[1]
        if not clusters.any():
            raise ValueError(
                f"clusters must be at least two, got {str(predictions.clusters[0])!r} in all {predictions.n:,} rows; "
                "name what the rows of one patient or customer share, or leave clusters out"
            )
    if weights is not None and (weights == weights[0]).all():
        weights = None
    return Design(weights, clusters)


@dataclass(frozen=True, eq=False)
class AuditRows:
    """How sure each prediction is, (n,), whether it is right, (n,), and its losses.

    predicted  the class of largest probability, (n,); of several labels per row the label that the entry belongs to;
               None of top-1 rows, which do not say it
    """

    confidence: NDArray[np.float64]
    correct: NDArray[np.bool_]
    predicted: NDArray[np.int64] | None
    losses: dict[str, NDArray[np.float64]]
    design: Design


def rows_of(predictions: Predictions, *, top1: bool = False) -> AuditRows:
    """Of the most probable class; of several labels per row every entry by itself, its probability of yes.

    With `top1` the second of two columns is the confidence, and the label whether the prediction is right.
    """
    labels, design = predictions.labels, design_of(predictions)
    if predictions.kind == "logits" and not predictions.multilabel:
        logits = predictions.logits.astype(np.float64)
        probs, nll = softmax(logits), -of_label(log_softmax(logits), labels)
    else:
        probs = predictions.probs.astype(np.float64)
        nll = None
    if top1 or predictions.multilabel:
        p, y = (probs[:, 1], labels == 1) if top1 else (probs.ravel(), labels.ravel())
        which = None if top1 else np.tile(np.arange(probs.shape[1]), len(probs))
        losses = {"nll": binary_nll(p, y), "brier": binary_brier(p, y)}
        losses["error"] = (~y).astype(np.float64) if top1 else binary_error(p, y)
        return AuditRows(p, y, which, losses, design)
    predicted = probs.argmax(1)
    correct = predicted == labels
    losses = {"nll": row_nll(probs, labels) if nll is None else nll, "brier": row_brier(probs, labels)}
    losses["error"] = (~correct).astype(np.float64)
    return AuditRows(of_label(probs, predicted), correct, predicted, losses, design)
