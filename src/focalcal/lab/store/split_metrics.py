"""Every number that is kept of a run's predictions on one split, as a flat record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from focalcal.core.arrays import Array
from focalcal.core.numerics import softmax
from focalcal.metrics import auroc, multilabel_summary, summary
from focalcal.predictions import Predictions
from focalcal.theory import ece_chain

MetricRecord = dict[str, float]


def split_metrics(predictions: Predictions, classes: Sequence[str]) -> MetricRecord:
    """The numbers of `summary`; against the true posterior where it is known; of each label where there are several.

    With several labels a metric's name alone is the mean over the labels, and `ece/Hernia` that of one label.
    """
    if predictions.multilabel:
        return _multilabel(predictions, classes)
    measured = summary(predictions).as_dict()
    return {**measured, **(_against_posterior(predictions) if predictions.posterior is not None else {})}


def shift_metrics(shifted: Predictions, clean: Predictions) -> MetricRecord:
    """How well the confidence tells the shifted set from the clean test set, and the mean confidence there.

    auroc: the chance that a clean image has the higher max_k p_k of a clean and a shifted one, ties counting a half.
    """
    inside, outside = _confidence(clean), _confidence(shifted)
    positives = np.repeat([1, 0], [len(inside), len(outside)])
    return {
        "rows": len(shifted),
        "auroc": auroc(np.concatenate([inside, outside]), positives),
        "confidence": float(outside.mean()),
    }


def _confidence(predictions: Predictions) -> Array:
    confidence: Array = _probs(predictions).max(1)
    return confidence


def _probs(predictions: Predictions) -> Array:
    """Float64, each row with the sum 1: in float32 the confidences of sure predictions round to 1 and tie."""
    if predictions.kind == "logits":
        of_logits: Array = softmax(predictions.scores.astype(np.float64))
        return of_logits
    probs = predictions.scores.astype(np.float64)
    normalised: Array = probs / probs.sum(1, keepdims=True)
    return normalised


def _against_posterior(predictions: Predictions) -> MetricRecord:
    """What needs the true posterior eta, with S the confidence and yhat the predicted class.

    posterior_distance   mean total variation, |p - eta|_1 / 2
    confidence_distance  mean |S - eta_yhat|
    posterior_ece        ECE with eta_yhat in the place of the outcomes, so without the noise of labels
    """
    assert predictions.posterior is not None
    probs, eta = _probs(predictions), predictions.posterior.astype(np.float64)
    chain = ece_chain(probs, eta)
    return {
        "posterior_distance": float(np.abs(probs - eta).sum(1).mean() / 2),
        "confidence_distance": chain.confidence_distance,
        "posterior_ece": chain.ece,
    }


def _multilabel(predictions: Predictions, classes: Sequence[str]) -> MetricRecord:
    probs = predictions.probs
    measured = multilabel_summary(probs, predictions.labels)
    record: dict[str, Any] = {"rows": len(predictions), "n_labels": predictions.n_classes, **measured.mean}
    for name in measured.mean:
        record |= {
            f"{name}/{label}": float(value) for label, value in zip(classes, getattr(measured, name), strict=True)
        }
    record |= {f"positives/{label}": int(value) for label, value in zip(classes, measured.positives, strict=True)}
    ranked = [k for k, count in enumerate(measured.positives) if 0 < count < len(predictions)]
    each = {classes[k]: auroc(probs[:, k], predictions.labels[:, k]) for k in ranked}
    if each:  # the mean over the labels that occur and are absent; a small or partial set can lack some
        record["auroc"] = float(np.mean(list(each.values())))
        record["auroc_labels"] = len(each)
    return record | {f"auroc/{label}": value for label, value in each.items()}
