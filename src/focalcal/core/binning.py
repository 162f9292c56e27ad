"""Confidence bins: edges, membership and the sums every binned statistic is made of.

Bins are (lo, hi], the first one closed at both ends, so that every confidence in [0, 1] has one bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def equal_width_edges(bins: int) -> Float[Tensor, " bins+1"]:
    """k / bins for k = 0 .. bins, in float64."""
    return torch.arange(bins + 1, dtype=torch.float64) / bins


def equal_mass_edges(
    confidence: Float[Tensor, " n"], bins: int, weights: Float[Tensor, " n"] | None = None
) -> Float[Tensor, " bins+1"]:
    """The sorted confidences, interpolated at ranks 0, n/bins, ..., n (the last clamps to the largest).

    The rule of AdaECE in Mukhoti et al. (2020), "Calibrating deep neural networks using focal loss". A confidence of
    weight w > 0 counts as w equal ones; if the least weight is below one, ranks are counted in its multiples.
    """
    values = confidence.detach().cpu().numpy()
    if weights is None:
        ordered = np.sort(values)  # with vector instructions, where torch's sort has none
        count, place = len(ordered), np.asarray
    else:
        order, mass = np.argsort(values), weights.cpu().numpy()
        ordered, ends = values[order], np.cumsum(mass[order]) / min(1.0, mass.min())
        count, place = ends[-1], partial(_row_at, ends)
    last = count - 1
    rank = np.minimum(np.arange(bins + 1) * count / bins, last)
    below = rank.astype(np.int64)
    low, high = (ordered[place(at)].astype(np.float64) for at in (below, np.minimum(below + 1, last)))
    edges = low + (rank - below) * (high - low)
    # Between two neighbouring floats rounding may reach the upper one, which lies beyond the edge.
    edges = np.where(low < high, np.minimum(edges, np.nextafter(high, low)), edges)
    return torch.from_numpy(edges).to(confidence.device)


def _row_at(ends: Array, rank: Array) -> Array:
    """The row that holds a rank, if row i holds those from ends[i - 1] to below ends[i]."""
    return np.searchsorted(ends, rank, side="right").clip(max=len(ends) - 1)


def bin_index(confidence: Float[Tensor, " n"], edges: Float[Tensor, " bins+1"]) -> Int[Tensor, " n"]:
    """The bin (lo, hi] of each confidence; what lies outside the edges goes to the nearest bin."""
    inner = edges[1:-1].contiguous()
    return torch.bucketize(confidence.to(edges.dtype).contiguous(), inner, right=False)


def even_bin_index(values: Float[Tensor, " n"], bins: int) -> Int[Tensor, " n"]:
    """`bin_index` for `equal_width_edges(bins)` without a search: value * bins tells, but at edges."""
    near = values.double() * bins
    index = near.long().clamp_(0, bins - 1)
    doubtful = near.sub_(near.round()).abs_() <= 1e-14 * bins
    if bool(doubtful.any()):
        edges = equal_width_edges(bins).to(values.device)
        index[doubtful] = bin_index(values[doubtful], edges)
    return index


@dataclass(frozen=True, eq=False)
class BinSums:
    """Per bin (the last dimension): how many, the sum of their confidences, how many right, each float64.

    `+` merges: the sums over a whole are the sums over its parts.
    """

    count: Float[Tensor, " bins"]
    confidence: Float[Tensor, " bins"]
    correct: Float[Tensor, " bins"]

    def __add__(self, other: BinSums) -> BinSums:
        """The sums over both sets of examples."""
        return BinSums(self.count + other.count, self.confidence + other.confidence, self.correct + other.correct)

    def add_(self, other: BinSums) -> None:
        """Add the other sums to these, in place."""
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine += theirs

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Count, confidence and correct."""
        return self.count, self.confidence, self.correct

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """Count, confidence and correct as NumPy arrays, on which small sums are faster."""
        count, confidence, correct = self.parts
        if not count.is_cpu:
            count, confidence, correct = count.cpu(), confidence.cpu(), correct.cpu()
        return count.numpy(), confidence.numpy(), correct.numpy()

    @property
    def gap(self) -> Float[Tensor, " bins"]:
        """Mean confidence minus accuracy, 0 in an empty bin."""
        return (self.confidence - self.correct) / self.count.clamp(min=1.0)


def bin_sums(confidence: Float[Tensor, " n"], correct: Tensor, edges: Float[Tensor, " bins+1"]) -> BinSums:
    """Count, confidence and correctness, summed in float64 over each bin."""
    return sums_at(bin_index(confidence, edges), confidence, correct, len(edges) - 1)


def sums_at(index: Int[Tensor, " n"], confidence: Float[Tensor, " n"], correct: Tensor, bins: int) -> BinSums:
    """The same for bins whose numbers are known."""

    code = (2 * index).add_(correct)  # whether right is the last bit
    counts = _bincount(code, None, 2 * bins).double().view(bins, 2)
    return BinSums(counts.sum(1), _bincount(index, confidence.double(), bins), counts[:, 1])


def _bincount(index: Tensor, weights: Tensor | None, length: int) -> Tensor:
    """`torch.bincount`, by NumPy on a CPU, where it is twice as fast."""
    if not index.is_cpu:
        return torch.bincount(index, weights, minlength=length)
    return torch.from_numpy(np.bincount(index.numpy(), None if weights is None else weights.numpy(), length))
