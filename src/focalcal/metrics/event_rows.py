"""The rows of one event: its probability, its log odds, and whether it happened."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from focalcal.core.arrays import Array, as_array
from focalcal.core.checks import one_class, shown, whole_number
from focalcal.core.numerics import at_least_float32
from focalcal.metrics.reliability import check_level
from focalcal.metrics.robust import Robust
from focalcal.metrics.row_weights import cluster_numbers, counted_rows, kept_weights
from focalcal.metrics.scan import no_rows, scan_inputs
from focalcal.predictions import Predictions
from focalcal.predictions.inputs import Inputs, read_inputs

NEVER_LESS_THAN = 1e-8  # what a probability of 0 counts as on the log odds, unless another one is smaller


def read_event(
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    positive: Any = None,
    ignore_index: int | None = None,
    **inputs: Any,
) -> Inputs:
    """The event's probability (n,), whether it happened (n,) and its log odds, of what `read_inputs` takes.

    Of two columns the event is the second class, of more the one that `positive` names (by its name among the
    classes, else by its number), against all others. Of `confidence` and `correct` it is that the prediction is right.
    """
    given, positive = read_event_scores(
        probs, labels, logits=logits, positive=positive, ignore_index=ignore_index, **inputs
    )
    return event_of(given, positive, ignore_index)


def read_event_scores(
    probs: Any, labels: Any, *, logits: Any = None, positive: Any = None, ignore_index: int | None = None, **inputs: Any
) -> tuple[Inputs, Any]:
    """All scores and labels, checked, and which column is the event unless that is the second of two."""
    scores = probs if logits is None else logits
    columns = positive is not None and scores is not None and not _one_column(scores)
    given = read_inputs(
        probs, labels, logits=logits, positive=None if columns else positive, ignore_index=ignore_index, **inputs
    )
    if given.kind != "outcomes" and not given.checked:
        scan_inputs(given._replace(weights=None), n_bins=1, ignore_index=ignore_index)  # which looks at every row
    return given, positive if columns else None


def read_sampled_event(
    probs: Any,
    labels: Any,
    *,
    logits: Any = None,
    clusters: Any = None,
    level: float = 0.95,
    ignore_index: int | None = None,
    **inputs: Any,
) -> tuple[Inputs, Robust]:
    """The rows of an event, and how far sums over them are known: by weight and cluster, those of `Predictions` too."""
    check_level(level)
    held = probs if isinstance(probs, Predictions) else None
    if held is not None:
        clusters = held.clusters if clusters is None else clusters
    given, column = read_event_scores(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
    event = event_of(given, column, ignore_index)
    cluster = cluster_numbers(clusters, given, ignore_index)
    weights = np.ones(len(event.scores)) if event.weights is None else event.weights
    return event, Robust(weights, cluster, level)


def event_of(inputs: Inputs, positive: Any = None, ignore_index: int | None = None) -> Inputs:
    """The same of checked scores (N, K, ...) and labels (N, ...), or of confidences and correctness."""
    scores, labels = counted_rows(inputs, ignore_index)
    if inputs.kind == "outcomes":
        at, p = 1, scores.astype(np.float64)
        log_odds = _log_ratio(p, 1 - p)
    else:
        at = _column(inputs, positive)
        p, log_odds = _probability(inputs.kind, scores, at)
    happened = labels == at
    if not len(happened):
        raise no_rows(ignore_index)
    weights = None if inputs.weights is None else kept_weights(inputs, ignore_index)
    name = None if inputs.classes is None else (np.asarray(inputs.classes[at]).item(),)
    return Inputs("outcomes", p, happened, name, True, log_odds, weights)


def _probability(kind: str, scores: Array, at: int) -> tuple[Array, Array]:
    """The class's probability and its log odds against the others, from scores (n, K)."""
    if kind == "logits":
        log_odds = _logit_against_others(at_least_float32(scores).astype(np.float64), at)
        return expit(log_odds), log_odds
    p = np.clip(scores[:, at].astype(np.float64), 0, 1)
    other = scores[:, 1 - at].astype(np.float64) if scores.shape[1] == 2 else 1 - p
    return p, _log_ratio(p, np.clip(other, 0, 1))


def bounded(log_odds: Array) -> Array:
    """Log odds with infinite ones at those of 1e-8 (or 1 - 1e-8), or at the most extreme finite ones beyond that."""
    finite = log_odds[np.isfinite(log_odds)]
    end = -float(np.log(NEVER_LESS_THAN))
    low, high = min(-end, finite.min(initial=0.0)), max(end, finite.max(initial=0.0))
    return np.clip(log_odds, low, high)


def _one_column(given: Any) -> bool:
    if hasattr(given, "__focalcal_inputs__"):
        return False
    shape = getattr(given, "shape", None) or as_array("probs", given).shape
    return len(shape) < 2 or shape[1] == 1


def _column(inputs: Inputs, positive: Any) -> int:
    classes = inputs.scores.shape[1]
    if positive is None:
        if classes > 2:
            raise ValueError(f"positive must name the class that is the event, of {classes} classes; e.g. positive=0")
        return 1
    one_class("positive", positive)
    if inputs.classes is None:
        remedy = "it is the event's column, counted from 0"
        return whole_number("positive", positive, least=0, most=classes - 1, remedy=remedy)
    if positive not in inputs.classes:
        known = ", ".join(repr(str(name)) for name in inputs.classes[:20])
        raise ValueError(f"positive must be one of the classes, {known}; got {shown(positive)}")
    return inputs.classes.index(positive)


def _log_ratio(p: Array, rest: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(p) - np.log(rest)


def _logit_against_others(logits: Array, at: int) -> Array:
    """z_k - log sum of exp z over the others, exact where softmax would round to 1."""
    others = np.delete(logits, at, axis=1)
    top = others.max(1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        rest = safe[:, 0] + np.log(np.exp(others - safe).sum(1))
    return logits[:, at] - rest
