"""Cross-fitting: every row is judged by what was fitted on rows of other folds."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from focalcal.core.checks import ProbabilityWarning
from focalcal.posthoc.calibrator import CalibrationWarning
from focalcal.posthoc.estimator import clone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jaxtyping import Bool, Float, Int

    from focalcal.core.arrays import Labels, PerRow, Scores
    from focalcal.posthoc.calibrator import Calibrator

FOLDS = 5
Fitted = TypeVar("Fitted")


def row_folds(rows: int, folds: int = FOLDS, *, seed: int | None = None) -> list[Int[np.ndarray, " m"]]:
    """Disjoint folds of 0 .. rows - 1, the first ones larger by one where they cannot be equal.

    In the order of the rows, or with a seed in that of a permutation.

    >>> [fold.tolist() for fold in row_folds(5, 2)]
    [[0, 1, 2], [3, 4]]
    """
    order = np.arange(rows) if seed is None else np.random.default_rng(seed).permutation(rows)
    return np.array_split(order, folds)


def group_folds(units: Labels, folds: int = FOLDS) -> list[Int[np.ndarray, " m"]]:
    """Folds of rows, those of one unit (0, 1, ...) together; the largest unit first, into the smallest fold."""
    sizes = np.bincount(units)
    fold_of, rows = np.empty(len(sizes), dtype=np.int64), np.zeros(folds)
    for unit in np.argsort(-sizes, kind="stable"):
        fold_of[unit] = rows.argmin()
        rows[fold_of[unit]] += sizes[unit]
    return [np.flatnonzero(fold_of[units] == fold) for fold in range(folds)]


def stratified_folds(
    logits: Float[np.ndarray, "n m"], labels: Labels, weights: PerRow, folds: int, classes: int | None = None
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


def cross_fit(
    rows: int,
    fit: Callable[[Bool[np.ndarray, " n"]], Fitted],
    *,
    folds: int | Sequence[Int[np.ndarray, " m"]] = FOLDS,
    seed: int | None = None,
) -> Iterator[tuple[Int[np.ndarray, " m"], Fitted]]:
    """Each fold, and what `fit` makes of all the rows outside of it, which it is given as a mask.

    `folds` is how many, or the rows of each.
    """
    for fold in row_folds(rows, folds, seed=seed) if isinstance(folds, int) else folds:
        others = np.ones(rows, dtype=bool)
        others[fold] = False
        yield fold, fit(others)


def fitted_quietly(
    calibrator: Calibrator,
    scores: Any,
    labels: Any,
    kind: str,
    weights: Any = None,
    *,
    classes: Sequence[Any] | None = None,
) -> Calibrator:
    """A clone, fitted on scores of that kind, "logits" or "probs", without warnings of the fit or of zeros."""
    fresh: Calibrator = clone(calibrator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", ProbabilityWarning)
        given: dict[str, Any] = {kind: scores}
        if classes is not None:
            given["classes"] = classes
        return fresh.fit(labels=labels, sample_weight=weights, **given)


def cross_fitted_probs(
    calibrator: Calibrator,
    scores: Any,
    labels: Any,
    kind: str = "logits",
    *,
    folds: int | Sequence[Int[np.ndarray, " m"]] = FOLDS,
    weights: Any = None,
) -> Scores:
    """Calibrated probabilities of every row, by clones that were fitted on the other folds; arrays in, array out.

    Folds are consecutive rows unless they are given: permute the rows before. An error of a fit, as where a fold holds
    all rows of a class, is the caller's.
    """
    probs = np.empty(np.shape(scores), dtype=np.float64)

    def fit(others: Bool[np.ndarray, " n"]) -> Calibrator:
        own = None if weights is None else weights[others]
        return fitted_quietly(calibrator, scores[others], labels[others], kind, own)

    for fold, fitted in cross_fit(len(labels), fit, folds=folds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbabilityWarning)
            probs[fold] = fitted.predict_proba(**{kind: scores[fold]})
    return probs
