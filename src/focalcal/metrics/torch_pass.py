"""The pass over a piece of an array in torch operations: without the native kernel, on a GPU, in half precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from focalcal.core.binning import BinSums, even_bin_index, sums_at
from focalcal.core.checks import simplex_miss
from focalcal.core.numerics import at_least_float32
from focalcal.metrics.sums import Scan

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int


def scan_piece(
    probs: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    row_of: Callable[[int], int],
    edges: Tensor,
    wanted: dict[str, bool],
) -> Scan:
    """What `scan` promises of some rows; `row_of` numbers them for an error."""
    given, probs = probs.dtype, at_least_float32(probs)
    miss = simplex_miss("probs", probs, row_of, given)
    bins = len(edges) - 1
    own = probs.gather(1, labels.unsqueeze(1)).squeeze(1)
    confidence = probs.amax(1) if len(probs) else own
    correct = own == confidence
    # Above a half no other class is as large; below, of equal ones the first is predicted.
    doubtful = (correct & (confidence <= 0.51)).nonzero().squeeze(1)
    if len(doubtful):
        rows = probs.index_select(0, doubtful)
        tied = (rows == confidence[doubtful].unsqueeze(1)).sum(1) > 1
        if bool(tied.any()):
            correct[doubtful[tied]] = rows[tied].max(1).indices == labels[doubtful[tied]]
    row_brier = row_nll = None
    if wanted["brier"]:  # nothing cancels: the others' squares are summed without the label's
        squares = (probs * probs).scatter_(1, labels.unsqueeze(1), 0).double()
        # Added up in float64: in float32 a row's sum would depend on how many rows are multiplied at once.
        row_brier = (1 - own.double()).square_() + torch.mv(squares, squares.new_ones(squares.shape[1]))
    if wanted["nll"]:
        row_nll = -own.double().clamp(min=0).log()
    sums = _on_cpu(sums_at(even_bin_index(confidence, bins), confidence, correct, bins))
    values = (confidence, correct, row_brier, row_nll) if wanted["rows"] else (None,) * 4
    return Scan(
        len(labels),
        float(len(labels) - sums.correct.sum()),
        miss,
        sums,
        _on_cpu(_class_sums(probs, labels, edges.to(probs.device))) if wanted["classes"] else None,
        None if row_brier is None else float(row_brier.sum()),
        None if row_nll is None else float(row_nll.sum()),
        *(None if value is None else value.cpu() for value in values),
    )


def _class_sums(probs: Float[Tensor, "n k"], labels: Int[Tensor, " n"], edges: Tensor) -> BinSums:
    """(K, bins) sums of every class's probability; most lie in the first bin, where a column sum will do."""
    classes, bins = probs.shape[1], len(edges) - 1
    above = _nonzero(probs > _largest_below(edges[1], probs.dtype)) if bins > 1 else labels[:0]
    high = probs.flatten()[above].double()
    cell = above % classes * bins + even_bin_index(high, bins)
    own = probs.gather(1, labels.unsqueeze(1)).squeeze(1).double()
    own_cell = labels * bins + even_bin_index(own, bins)

    def total(cells: Tensor, values: Tensor) -> Tensor:
        zeros = torch.zeros(classes * bins, dtype=torch.float64, device=probs.device)
        return zeros.index_add_(0, cells, values).view(classes, bins)

    count, confidence = total(cell, torch.ones_like(high)), total(cell, high)
    count[:, 0] = len(probs) - count[:, 1:].sum(1)
    whole = torch.mv(probs.double().T, torch.ones(len(probs), dtype=torch.float64, device=probs.device))
    confidence[:, 0] = whole - confidence[:, 1:].sum(1)
    return BinSums(count, confidence, total(own_cell, torch.ones_like(own)))


def _largest_below(edge: Tensor, dtype: torch.dtype) -> Tensor:
    """The largest number of the dtype that is no larger than the edge: what exceeds it exceeds the edge."""
    rounded = edge.to(dtype)
    return torch.nextafter(rounded, rounded.new_zeros(())) if rounded.double() > edge else rounded


def _nonzero(mask: Tensor) -> Tensor:
    """Flat positions; NumPy finds them several times faster on a CPU."""
    return torch.from_numpy(np.flatnonzero(mask.numpy())) if mask.is_cpu else mask.flatten().nonzero().squeeze(1)


def _on_cpu(sums: BinSums) -> BinSums:
    return BinSums(*(part.cpu() for part in sums.parts))
