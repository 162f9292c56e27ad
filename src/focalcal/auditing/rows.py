"""What an audit reads off each row of predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focalcal.core.numerics import log_softmax, softmax
from focalcal.metrics.proper import binary_brier, binary_error, binary_nll, of_label, row_brier, row_nll

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.predictions import Predictions


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


def rows_of(predictions: Predictions, *, top1: bool = False) -> AuditRows:
    """Of the most probable class; of several labels per row every entry by itself, its probability of yes.

    With `top1` the second of two columns is the confidence, and the label whether the prediction is right.
    """
    labels = predictions.labels
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
        return AuditRows(p, y, which, losses | {"error": (~y).astype(np.float64) if top1 else binary_error(p, y)})
    predicted = probs.argmax(1)
    correct = predicted == labels
    of_rows = {"nll": row_nll(probs, labels) if nll is None else nll, "brier": row_brier(probs, labels)}
    return AuditRows(of_label(probs, predicted), correct, predicted, of_rows | {"error": (~correct).astype(np.float64)})
