"""Rows that weigh differently or belong together: which count, how much, and which are not independent.

A weight is how many rows of the population a row stands for. Estimates are those of the rows repeated so often; only
ratios matter. Weights are scaled to sum to Kish's effective number of rows, (sum w)^2 / sum w^2, so that what knows how
many rows there are (intervals of bins, the debiased error) is not told of more rows than there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from focalcal.core.arrays import Array, as_values
from focalcal.core.numerics import softmax
from focalcal.predictions.inputs import Inputs


def kept_rows(given: Inputs, ignore_index: int | None = None) -> Array | None:
    """Which labels, in a row, are to be looked at and weigh something; None if all are."""
    keep = None if ignore_index is None else given.labels.ravel() != ignore_index
    if given.weights is None or given.weights.all():
        return keep
    some = np.repeat(given.weights > 0, given.labels.size // len(given.weights))
    return some if keep is None else keep & some


def counted_rows(given: Inputs, ignore_index: int | None = None) -> tuple[Array, Array]:
    """Scores (rows, K) and labels (rows,) of those; of confidences and correctness both (rows,)."""
    scores, labels, keep = given.scores, given.labels.ravel(), kept_rows(given, ignore_index)
    if given.kind != "outcomes":
        scores = np.moveaxis(scores, 1, -1).reshape(-1, scores.shape[1])
    return (scores, labels) if keep is None else (scores[keep], labels[keep])


def counted_probs(given: Inputs, ignore_index: int | None = None) -> tuple[Array, Array]:
    """The same with probabilities where logits are given."""
    scores, labels = counted_rows(given, ignore_index)
    return scores if given.kind == "probs" else softmax(scores.astype(np.float64)), labels


def kept_weights(given: Inputs, ignore_index: int | None = None) -> Array:
    """The weights of those, scaled."""
    assert given.weights is not None
    keep = kept_rows(given, ignore_index)
    weights = np.repeat(given.weights, given.labels.size // len(given.weights))
    if keep is not None:
        weights = weights[keep]
    if not len(weights):
        return weights
    weights = weights / weights.max()  # squares of very large or small ones are no numbers
    return weights * (weights.sum() / np.square(weights).sum())


def cluster_numbers(clusters: Any, given: Inputs, ignore_index: int | None = None) -> Array | None:
    """The cluster of each row that counts, from 0; None where each is its own. An image's pixels are a cluster."""
    shape = given.labels.shape
    if clusters is None and len(shape) < 2:
        return None
    names = np.arange(shape[0]) if clusters is None else as_values("clusters", clusters)
    if names.shape not in (shape, shape[:1]):
        allowed = f"{shape[:1]} or {shape}" if len(shape) > 1 else f"{shape}"
        raise ValueError(f"clusters must have shape {allowed}, one name per row, got {names.shape}")
    each = np.broadcast_to(names.reshape(names.shape + (1,) * (len(shape) - names.ndim)), shape).ravel()
    for at, name in enumerate(each.tolist() if each.dtype.kind not in "iub" else ()):
        if name is None or name != name or name == "":  # else all rows without a name were one cluster
            raise ValueError(f"clusters must name the cluster of every row, got {name!r} in row {at}; fill it in")
    keep = kept_rows(given, ignore_index)
    distinct, number = np.unique(each if keep is None else each[keep], return_inverse=True)
    if len(distinct) < 2:
        raise ValueError(
            "clusters must be at least two, got one (an image is a cluster); with one nothing says how far another "
            "would differ: name what can be taken for independent"
        )
    return number
