"""Confidence bins: edges, membership and the sums every binned statistic is made of.

Bins are (lo, hi], the first one closed at both ends, so that every confidence in [0, 1] has one bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def equal_width_edges(bins: int) -> Float[Tensor, " bins+1"]:
    """k / bins for k = 0 .. bins, in float64."""
    return torch.arange(bins + 1, dtype=torch.float64) / bins


def equal_mass_edges(confidence: Float[Tensor, " n"], bins: int) -> Float[Tensor, " bins+1"]:
    """The sorted confidences, interpolated at ranks 0, n/bins, ..., n (the last clamps to the largest).

    The rule of AdaECE in Mukhoti et al. (2020), "Calibrating deep neural networks using focal loss".
    """
    ordered = _sorted(confidence)
    rank = (torch.arange(bins + 1, dtype=torch.float64, device=ordered.device) * len(ordered) / bins).clamp(
        max=len(ordered) - 1
    )
    below = rank.floor().long()
    above = (below + 1).clamp(max=len(ordered) - 1)
    return ordered[below].double().lerp(ordered[above].double(), rank - below)


def _sorted(values: Tensor) -> Tensor:
    """Ascending; NumPy's sort uses vector instructions where torch's, on a CPU, does not."""
    return torch.from_numpy(np.sort(values.numpy())) if values.is_cpu else values.sort().values


def bin_index(confidence: Float[Tensor, " n"], edges: Float[Tensor, " bins+1"]) -> Int[Tensor, " n"]:
    """The bin (lo, hi] of each confidence; what lies outside the edges goes to the nearest bin."""
    inner = edges[1:-1].contiguous()
    return torch.bucketize(confidence.to(edges.dtype), inner, right=False)


def even_bin_index(values: Float[Tensor, " n"], bins: int) -> Int[Tensor, " n"]:
    """`bin_index` for `equal_width_edges(bins)`, without a search: value * bins is exact but near an edge."""
    near = values.double() * bins
    index = near.clamp(0, bins - 1).long()
    doubtful = ((near - near.round()).abs() <= 1e-14 * bins) & (near < bins - 0.5)
    if bool(doubtful.any()):
        edges = equal_width_edges(bins).to(values.device)
        index[doubtful] = bin_index(values[doubtful], edges)
    return index


@dataclass(frozen=True)
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

    @property
    def weight(self) -> Float[Tensor, " bins"]:
        """The share of the examples in each bin."""
        return self.count / self.count.sum(-1, keepdim=True).clamp(min=1.0)

    @property
    def gap(self) -> Float[Tensor, " bins"]:
        """Mean confidence minus accuracy, 0 in an empty bin."""
        return (self.confidence - self.correct) / self.count.clamp(min=1.0)


def bin_sums(confidence: Float[Tensor, " n"], correct: Tensor, edges: Float[Tensor, " bins+1"]) -> BinSums:
    """Count, confidence and correctness, summed in float64 over each bin."""
    return sums_at(bin_index(confidence, edges), confidence, correct, len(edges) - 1)


def sums_at(index: Int[Tensor, " n"], confidence: Float[Tensor, " n"], correct: Tensor, bins: int) -> BinSums:
    """The same for bins whose numbers are known."""

    def total(values: Tensor) -> Tensor:
        zeros = torch.zeros(bins, dtype=torch.float64, device=confidence.device)
        return zeros.index_add_(0, index, values.double())

    return BinSums(total(torch.ones_like(confidence)), total(confidence), total(correct))
