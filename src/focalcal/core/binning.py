"""Confidence bins: edges, membership and the sums every binned statistic is made of.

Bins are (lo, hi], the first one closed at both ends, so that every confidence in [0, 1] has one bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

Array = np.ndarray[Any, Any]

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def per_bin(total: Array, count: Array) -> Array:
    """The mean in each bin, 0 in an empty one."""
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0)


def equal_width_edges(bins: int) -> Float[Array, " bins+1"]:
    """k / bins for k = 0 .. bins, in float64."""
    return np.arange(bins + 1) / bins


def equal_mass_edges(
    confidence: Float[Array, " n"], bins: int, weights: Float[Array, " n"] | None = None
) -> Float[Array, " bins+1"]:
    """The sorted confidences, interpolated at ranks 0, n/bins, ..., n (the last clamps to the largest).

    The rule of AdaECE in Mukhoti et al. (2020), "Calibrating deep neural networks using focal loss". A confidence of
    weight w > 0 counts as w equal ones; if the least weight is below one, ranks are counted in its multiples.
    """
    if weights is None:
        ordered = np.sort(confidence)
        count, place = len(ordered), np.asarray
    else:
        order = np.argsort(confidence)
        ordered, ends = confidence[order], np.cumsum(weights[order]) / min(1.0, weights.min())
        count, place = ends[-1], partial(_row_at, ends)
    last = count - 1
    rank = np.minimum(np.arange(bins + 1) * count / bins, last)
    below = rank.astype(np.int64)
    low, high = (ordered[place(at)].astype(np.float64) for at in (below, np.minimum(below + 1, last)))
    edges: Array = low + (rank - below) * (high - low)
    # Between two neighbouring floats rounding may reach the upper one, which lies beyond the edge.
    return np.where(low < high, np.minimum(edges, np.nextafter(high, low)), edges)


def _row_at(ends: Array, rank: Array) -> Array:
    """The row that holds a rank, if row i holds those from ends[i - 1] to below ends[i]."""
    return np.searchsorted(ends, rank, side="right").clip(max=len(ends) - 1)


def bin_index(confidence: Float[Array, " *n"], edges: Float[Array, " bins+1"]) -> Int[Array, " *n"]:
    """The bin (lo, hi] of each confidence; what lies outside the edges goes to the nearest bin."""
    return np.searchsorted(edges[1:-1], confidence.astype(edges.dtype, copy=False), side="left")


def even_bin_index(values: Float[Array, " *n"], bins: int) -> Int[Array, " *n"]:
    """`bin_index` for `equal_width_edges(bins)` without a search: value * bins tells, but at edges."""
    near = np.multiply(values, bins, dtype=np.float64)
    index: Array = near.astype(np.int64).clip(0, bins - 1)
    doubtful = np.abs(near - np.rint(near)) <= 1e-14 * bins
    if doubtful.any():
        index[doubtful] = bin_index(values[doubtful], equal_width_edges(bins))
    return index


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums per bin (the last dimension), each float64, from which every binned error follows.

    `+` merges: the sums over a whole are the sums over its parts.

    Attributes:
        count: of the rows, (bins,).
        confidence: their sum.
        correct: how many are right.

    >>> half = BinSums(np.array([2.0]), np.array([1.5]), np.array([1.0]))
    >>> (half + half).correct
    array([2.])
    """

    count: Float[Array, " bins"]
    confidence: Float[Array, " bins"]
    correct: Float[Array, " bins"]

    def __add__(self, other: BinSums) -> BinSums:
        """The sums over both sets of examples."""
        return BinSums(self.count + other.count, self.confidence + other.confidence, self.correct + other.correct)

    def add_(self, other: BinSums) -> None:
        """Add the other sums to these, in place."""
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine += theirs

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """Count, confidence and correct."""
        return self.count, self.confidence, self.correct

    @property
    def gap(self) -> Float[Array, " bins"]:
        """Mean confidence minus accuracy, 0 in an empty bin."""
        return per_bin(self.confidence - self.correct, self.count)


def bin_sums(confidence: Float[Array, " n"], correct: Bool[Array, " n"], edges: Float[Array, " bins+1"]) -> BinSums:
    """Count, confidence and correctness, summed in float64 over each bin."""
    return sums_at(bin_index(confidence, edges), confidence, correct, len(edges) - 1)


def sums_at(
    index: Int[Array, " n"],
    confidence: Float[Array, " n"],
    correct: Bool[Array, " n"],
    bins: int,
    weights: Float[Array, " n"] | None = None,
) -> BinSums:
    """The same for bins whose numbers are known, each row as often as it weighs."""
    if weights is not None:
        return BinSums(*(np.bincount(index, weights * part, bins) for part in (1.0, confidence, correct)))
    counts = np.bincount(2 * index + correct, minlength=2 * bins).reshape(bins, 2)  # whether right is the last bit
    return BinSums(
        counts.sum(1).astype(np.float64), np.bincount(index, confidence, bins), counts[:, 1].astype(np.float64)
    )
