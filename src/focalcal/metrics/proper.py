"""Proper scores, and the error they are read beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core.binning import BinSums
from focalcal.core.checks import one_of, simplex_miss, warn_of_rounding, whole_number
from focalcal.core.numerics import at_least_float32
from focalcal.core.scores import scores_and_labels
from focalcal.metrics.ece import gap_of
from focalcal.metrics.row_batches import flat_pieces
from focalcal.metrics.scan import scan

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def nll(probs: Any = None, labels: Any = None, *, logits: Any = None, ignore_index: int | None = None) -> float:
    """Mean negative log-likelihood in nats, -log p_y. From probabilities, p_y = 0 gives inf, never a clipped number;
    from `logits` it is finite wherever they are.
    """
    found = scan(probs, labels, logits=logits, n_bins=1, ignore_index=ignore_index, nll=True)
    assert found.nll is not None
    return found.nll / found.rows


def brier(probs: Any, labels: Any, *, ignore_index: int | None = None) -> float:
    """Mean over rows of sum_k (p_k - 1[k = y])^2, between 0 and 2. Brier (1950); the sum is over all classes."""
    found = scan(probs, labels, n_bins=1, ignore_index=ignore_index, brier=True)
    assert found.brier is not None
    return found.brier / found.rows


def error(probs: Any, labels: Any, *, ignore_index: int | None = None) -> float:
    """The share of rows, between 0 and 1, whose most probable class (the first of equal ones) is not the label."""
    found = scan(probs, labels, n_bins=1, ignore_index=ignore_index)
    return found.wrong / found.rows


def top_k_accuracy(probs: Any, labels: Any, *, k: int | None = None, ignore_index: int | None = None) -> float:
    """The share of rows whose label is among the k most probable classes; of equal ones the first come first.

    `k` is 5 unless told, or all classes where there are fewer.
    """
    scores, index = scores_and_labels("probs", probs, labels, ignore_index=ignore_index)
    k = checked_k(k, scores.shape[1])
    hits, rows, miss = 0, 0, 0.0
    for piece, own, row_of in flat_pieces(scores, index, ignore_index):
        miss = max(miss, simplex_miss("probs", at_least_float32(piece), row_of, piece.dtype))
        hits += int(in_top(piece, own, k).sum())
        rows += len(own)
    if rows == 0:
        raise ValueError(f"labels must leave a row to look at, got only ignore_index = {ignore_index}")
    warn_of_rounding("probs", miss)
    return hits / rows


def checked_k(k: int | None, classes: int) -> int:
    """The k of `top_k_accuracy`."""
    if k is None:
        return min(5, classes)
    return whole_number("k", k, least=1, most=classes, remedy=f"there are {classes} classes")


def in_top(probs: Float[Tensor, "n k"], labels: Int[Tensor, " n"], k: int) -> Bool[Tensor, " n"]:
    """Whether each label is among the k most probable classes."""
    own = probs.gather(1, labels.unsqueeze(1))
    earlier = torch.arange(probs.shape[1], device=probs.device) < labels.unsqueeze(1)
    return ((probs > own) | ((probs == own) & earlier)).sum(1) < k


@dataclass(frozen=True)
class Murphy:
    """brier = calibration + refinement + within_bins, and refinement = uncertainty - resolution.

    calibration is what a map of the score alone could gain; refinement is what it could not. within_bins is what
    binning hides: the spread of the scores inside a bin, less twice its covariance with the outcomes. It vanishes
    when all scores in a bin are equal.
    """

    brier: float
    calibration: float
    refinement: float
    resolution: float
    uncertainty: float
    within_bins: float


def murphy(
    probs: Any, labels: Any, *, n_bins: int = 15, of: str = "confidence", ignore_index: int | None = None
) -> Murphy:
    """The Murphy decomposition of the Brier score over bins.

    of = "confidence": the score is the confidence and the outcome whether the prediction is right, the score whose
    calibration the paper bounds. of = "classes": every class's probability against whether it is the label, summed
    over the classes, so that `brier` is the multiclass Brier score.

    Murphy (1973); the within-bin terms from Stephenson, Coelho & Jolliffe (2008).
    """
    one_of("of", of, ("confidence", "classes"))
    classwise = of == "classes"
    found = scan(
        probs, labels, n_bins=n_bins, ignore_index=ignore_index, brier=classwise, classes=classwise, rows=not classwise
    )
    if classwise:
        assert found.brier is not None
        assert found.classes is not None
        return murphy_of(found.classes, found.brier / found.rows)
    assert found.confidence is not None
    assert found.correct is not None
    return murphy_of(found.bins, float((found.confidence.double() - found.correct.double()).square().mean()))


def murphy_of(bins: BinSums, brier: float) -> Murphy:
    """From the sums over (..., bins), added up over the leading dimensions, and the score itself."""
    count, _, correct = bins.arrays
    weight = count / count.sum(-1, keepdims=True)
    accuracy = correct / np.maximum(count, 1)
    base = correct.sum(-1, keepdims=True) / count.sum(-1, keepdims=True)
    calibration = float((weight * gap_of(bins) ** 2).sum())
    resolution = float((weight * (accuracy - base) ** 2).sum())
    uncertainty = float((base * (1 - base)).sum())
    refinement = float((weight * accuracy * (1 - accuracy)).sum())
    return Murphy(brier, calibration, refinement, resolution, uncertainty, brier - calibration - refinement)
