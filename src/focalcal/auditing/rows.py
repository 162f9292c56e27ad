"""What an audit reads off each row of predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.predictions import Predictions


@dataclass(frozen=True, eq=False)
class AuditRows:
    """How sure each prediction is, (n,), whether it is right, (n,), and its losses.

    predicted  the class of largest probability, (n,); of several labels per row the label that the entry belongs to
    """

    confidence: NDArray[np.float64]
    correct: NDArray[np.bool_]
    predicted: NDArray[np.int64]
    losses: dict[str, NDArray[np.float64]]


def rows_of(predictions: Predictions) -> AuditRows:
    """Of the most probable class; of several labels per row every entry by itself, its probability of yes."""
    probs = predictions.probs.double().cpu()
    labels = predictions.labels.cpu()
    if predictions.multilabel:
        p, y = probs.flatten().numpy(), labels.flatten().numpy().astype(bool)
        with np.errstate(divide="ignore"):
            nll = -np.where(y, np.log(p), np.log1p(-p))
        which = np.tile(np.arange(probs.shape[1]), len(probs))
        return AuditRows(p, y, which, {"nll": nll, "brier": (p - y) ** 2, "error": ((p >= 0.5) != y).astype(float)})
    confidence, predicted = probs.max(1)
    own = probs.gather(1, labels[:, None])[:, 0]
    if predictions.kind == "logits":
        logits = predictions.logits.double().cpu()
        nll = (logits.logsumexp(1) - logits.gather(1, labels[:, None])[:, 0]).numpy()
    else:
        with np.errstate(divide="ignore"):
            nll = -np.log(own.clamp(min=0).numpy())
    brier = ((probs**2).sum(1) - 2 * own + 1).numpy()
    correct = (predicted == labels).numpy()
    return AuditRows(
        confidence.numpy(),
        correct,
        predicted.numpy(),
        {"nll": nll, "brier": brier, "error": (~correct).astype(np.float64)},
    )
