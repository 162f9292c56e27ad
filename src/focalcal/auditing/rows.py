"""What an audit reads off each row of predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch.nn.functional import cross_entropy

from focalcal.metrics.proper import binary_brier, binary_error, binary_nll, row_brier, row_nll

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
    probs = predictions.probs.double().cpu()
    labels = predictions.labels.cpu()
    if top1:
        p, y = probs[:, 1], labels.bool()
        losses = {"nll": binary_nll(p, y), "brier": binary_brier(p, y), "error": (~y).double()}
        return AuditRows(p.numpy(), y.numpy(), None, {name: values.numpy() for name, values in losses.items()})
    if predictions.multilabel:
        p, y = probs.flatten(), labels.flatten().bool()
        scores = {"nll": binary_nll, "brier": binary_brier, "error": binary_error}
        which = np.tile(np.arange(probs.shape[1]), len(probs))
        return AuditRows(p.numpy(), y.numpy(), which, {name: of(p, y).numpy() for name, of in scores.items()})
    if predictions.kind == "logits":
        logits = predictions.logits.double().cpu()
        probs, nll = logits.softmax(1), cross_entropy(logits, labels, reduction="none")
    else:
        nll = row_nll(probs, labels)
    confidence, predicted = probs.max(1)
    correct = (predicted == labels).numpy()
    of_rows = {"nll": nll.numpy(), "brier": row_brier(probs, labels).numpy(), "error": (~correct).astype(np.float64)}
    return AuditRows(confidence.numpy(), correct, predicted.numpy(), of_rows)
