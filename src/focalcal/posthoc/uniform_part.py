"""A uniform part in probabilities: w in (1 - w) p + w / K, so that no wrong row costs an infinite likelihood."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from focalcal.core.chunks import row_chunks
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.cross_fit import FOLDS
from focalcal.posthoc.ensemble import mixture_weights
from focalcal.posthoc.estimator import clone
from focalcal.posthoc.stratified_folds import stratified_folds

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_ONE_MORE = 0.1  # the weight of a row of which p says nothing: none was seen, which is no proof that none will come


def uniform_part(own: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"], classes: int) -> float:
    """w > 0 with the largest likelihood of rows whose label has probability `own` (n,), and of a tenth of a row more.

    That row has p_y = 0, so that w is at least .1 / (n + .1).

    >>> round(uniform_part(np.array([0.9, 0.8, 0.9, 0.0]), np.ones(4), 2), 3)
    0.635
    """
    likelihoods = np.full((len(own) + 1, 2), 1 / classes)
    likelihoods[:, 0] = np.append(own, 0.0)
    return float(mixture_weights(likelihoods, np.append(weights, _ONE_MORE))[0][1])


def cross_fitted_uniform_part(
    calibrator: Calibrator,
    logits: Float[np.ndarray, "n k"],
    labels: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
) -> float:
    """`uniform_part` of rows that clones of the calibrator were not fitted on; a fold that leaves one class is skipped.

    Without any such fold it is that of one more row alone.
    """
    logits, labels, weights, fold = stratified_folds(logits, labels, weights, FOLDS)
    own, judged = np.ones(len(labels)), weights > 0
    for at in range(fold.max() + 1):
        held = fold == at
        if len(np.unique(labels[~held])) < 2:
            judged[held] = False
            continue
        fresh = clone(calibrator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            fresh._fit(logits[~held], labels[~held], weights[~held])
        for start, rows in row_chunks(logits[held]):
            places = np.flatnonzero(held)[start : start + len(rows)]
            own[places] = fresh._probs(rows.astype(np.float64))[np.arange(len(rows)), labels[places]]
    return uniform_part(own[judged], weights[judged], logits.shape[1])
