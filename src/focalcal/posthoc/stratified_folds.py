"""Folds that depend on neither the order of rows and classes nor on whether a row has a weight or copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def stratified_folds(
    logits: Float[np.ndarray, "n m"],
    labels: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    folds: int,
    classes: int | None = None,
) -> tuple[Float[np.ndarray, "r m"], Int[np.ndarray, " m"], Float[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """Rows and the fold of each: the same whatever the order of rows and classes, and for weights as for copies.

    There are fewer folds where each would not have four different rows. Rows are sorted by how much their label leads,
    so that all folds have easy and hard ones; `classes` is how many first columns they are, by default all. Equal rows
    are in one fold; so many of them that the folds would not be of one size are dealt to all folds in equal parts.
    """
    rows = np.arange(len(labels))
    others = logits[:, :classes].copy()
    own = others[rows, labels]
    others[rows, labels] = -np.inf
    order = np.lexsort([(logits[:, :classes] ** 2).sum(1), own - others.max(1)])
    logits, labels, weights = logits[order], labels[order], weights[order]
    new = np.r_[True, (labels[1:] != labels[:-1]) | (logits[1:] != logits[:-1]).any(1)]
    logits, labels, weights = logits[new], labels[new], np.add.reduceat(weights, np.flatnonzero(new))
    folds = max(2, min(folds, len(labels) // 4))
    large = weights > weights.sum() / (2 * folds)
    times = np.where(large, folds, 1)
    logits, labels, weights = (np.repeat(values, times, axis=0) for values in (logits, labels, weights / times))
    rng, blocks = np.random.default_rng(0), -(-len(labels) // folds)
    fold = np.concatenate([rng.permutation(folds) for _ in range(blocks)])[: len(labels)]
    parts = np.concatenate([np.arange(copies) if copies > 1 else [-1] for copies in times])
    return logits, labels, weights, np.where(parts >= 0, parts, fold)
