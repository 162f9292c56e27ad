"""The pass over an array in NumPy, by pieces: where the native kernel is missing.

What is computed from a piece stays in the cache, whatever the array's size.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.arrays import Array
from focalcal.core.binning import BinSums, even_bin_index, sums_at
from focalcal.core.checks import simplex_miss
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import at_least_float32
from focalcal.metrics.proper import of_label, row_brier, row_nll

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jaxtyping import Bool, Float, Int

    Piece = tuple[Float[Array, "n k"], Int[Array, " n"], Callable[[int], int]]

_POSITIONS_AT_ONCE = 1 << 18  # elements of one image


@dataclass(frozen=True, eq=False)
class Scan:
    """What a pass gives: sums over rows and, where asked for, a value for each row."""

    rows: int
    wrong: float
    miss: float  # how far the sum of a row's probabilities is from one, at most
    bins: BinSums  # (bins,): confidence against correctness
    classes: BinSums | None  # (K, bins): each class's probability against whether it is the label
    brier_sum: float | None
    nll_sum: float | None
    confidence: Float[Array, " rows"] | None
    correct: Bool[Array, " rows"] | None
    row_brier: Float[Array, " rows"] | None
    row_nll: Float[Array, " rows"] | None
    weights: Float[Array, " rows"] | None = None  # None if all count alike

    @property
    def total(self) -> float:
        """How much the rows weigh together."""
        return self.rows if self.weights is None else float(self.weights.sum())

    @property
    def outcomes(self) -> tuple[Float[Array, " rows"], Bool[Array, " rows"]]:
        """The confidence of each row and whether it is right, which must have been asked for."""
        assert self.confidence is not None
        assert self.correct is not None
        return self.confidence, self.correct


def join(parts: Iterable[Scan], most_rows: int) -> Scan:
    """The sums over all parts (of `miss` the largest), the rows of all, which are no more than `most_rows`.

    What lasts is allocated with the first part: a little memory kept of each part, between temporaries that come and
    go, would let the heap grow with their number.
    """
    whole: dict[str, Any] = {}
    filled = 0
    for part in parts:
        for field in fields(Scan):
            value = getattr(part, field.name)
            if isinstance(value, np.ndarray):
                if field.name not in whole:
                    whole[field.name] = np.empty(most_rows, value.dtype)
                whole[field.name][filled : filled + len(value)] = value
            elif field.name not in whole:
                whole[field.name] = value
            elif field.name == "miss":
                whole[field.name] = max(whole[field.name], value)
            elif isinstance(value, BinSums):
                whole[field.name].add_(value)
            elif value is not None:
                whole[field.name] += value
        filled += part.rows
    sums: dict[str, Any] = {name: v[:filled] if isinstance(v, np.ndarray) else v for name, v in whole.items()}
    return Scan(**sums)


def flat_pieces(
    scores: Float[Array, "n k *d"], labels: Int[Array, "n *d"], ignore_index: int | None
) -> Iterator[Piece]:
    """Scores (rows, K) and labels (rows,) without the ignored ones, and which row of the caller's each comes from."""
    for start, piece in row_chunks(scores):
        index = labels[start : start + len(piece)]
        if piece.ndim == 2:
            yield _without_ignored(piece, index, ignore_index, start, 1)
            continue
        maps, targets = piece.reshape(*piece.shape[:2], -1), index.reshape(len(piece), -1)
        step = max(1, _POSITIONS_AT_ONCE // (len(piece) * piece.shape[1]))
        for at in range(0, maps.shape[2], step):
            part = np.moveaxis(maps[:, :, at : at + step], 1, -1).reshape(-1, piece.shape[1])
            target = targets[:, at : at + step]
            yield _without_ignored(part, target.ravel(), ignore_index, start, target.shape[1])


def _without_ignored(rows: Array, labels: Array, ignore_index: int | None, start: int, positions: int) -> Piece:
    keep = None
    if ignore_index is not None and (labels == ignore_index).any():
        keep = np.flatnonzero(labels != ignore_index)
        rows, labels = rows[keep], labels[keep]
    return rows, labels, lambda at: start + (at if keep is None else int(keep[at])) // positions


def scan_piece(
    probs: Float[Array, "n k"],
    labels: Int[Array, " n"],
    row_of: Callable[[int], int],
    edges: Array,
    wanted: dict[str, bool],
) -> Scan:
    """What `scan` promises of some rows; `row_of` numbers them for an error."""
    probs = at_least_float32(probs)
    miss = simplex_miss("probs", probs, row_of)
    bins = len(edges) - 1
    confidence = probs.max(1)
    correct = of_label(probs, labels) == confidence
    # Above a half no other class is as large; below, of equal ones the first is predicted.
    doubtful = np.flatnonzero(correct & (confidence <= 0.51))
    correct[doubtful] = probs[doubtful].argmax(1) == labels[doubtful]
    brier = row_brier(probs, labels) if wanted["brier"] else None
    nll = row_nll(probs, labels) if wanted["nll"] else None
    classes = class_sums(probs, labels, edges) if wanted["classes"] else None
    found = scan_of_rows(confidence, correct, brier, nll, bins, classes=classes, miss=miss)
    return found if wanted["rows"] else replace(found, confidence=None, correct=None, row_brier=None, row_nll=None)


def scan_of_rows(
    confidence: Array,
    correct: Array,
    brier: Array | None,
    nll: Array | None,
    n_bins: int,
    *,
    weights: Array | None = None,
    classes: BinSums | None = None,
    miss: float = 0.0,
) -> Scan:
    """The sums over rows whose values are known, each row as often as it weighs."""
    bins = sums_at(even_bin_index(confidence, n_bins), confidence, correct, n_bins, weights)
    brier_sum, nll_sum = (
        None if each is None else float(each.sum() if weights is None else weights @ each) for each in (brier, nll)
    )
    wrong = float(len(correct) - np.count_nonzero(correct)) if weights is None else float(weights @ ~correct)
    rows = (confidence, correct, brier, nll, weights)
    return Scan(len(correct), wrong, miss, bins, classes, brier_sum, nll_sum, *rows)


def class_sums(
    probs: Float[Array, "n k"], labels: Int[Array, " n"], edges: Array, weights: Float[Array, " n"] | None = None
) -> BinSums:
    """(K, bins) sums of every class's probability; most lie in the first bin, where a column sum will do."""
    classes, bins = probs.shape[1], len(edges) - 1
    above = np.flatnonzero(probs > _largest_below(edges[1], probs.dtype)) if bins > 1 else labels[:0]
    high = probs.ravel()[above].astype(np.float64)
    cell = above % classes * bins + even_bin_index(high, bins)
    own_cell = labels * bins + even_bin_index(of_label(probs, labels), bins)

    def total(cells: Array, values: Array | None = None) -> Array:
        return np.bincount(cells, values, classes * bins).astype(np.float64).reshape(classes, bins)

    own = None if weights is None else weights[above // classes]
    count, confidence = total(cell, own), total(cell, high if own is None else high * own)
    rows = len(probs) if weights is None else weights.sum()
    count[:, 0] = rows - count[:, 1:].sum(1)
    column = probs.sum(0, dtype=np.float64) if weights is None else weights @ probs
    confidence[:, 0] = column - confidence[:, 1:].sum(1)
    return BinSums(count, confidence, total(own_cell, weights))


def _largest_below(edge: Any, dtype: Any) -> Any:
    """The largest number of the dtype that is no larger than the edge: what exceeds it exceeds the edge."""
    rounded = dtype.type(edge)
    return np.nextafter(rounded, dtype.type(0)) if float(rounded) > edge else rounded
