"""The pass over an array in torch operations, by pieces: without the native kernel, on a GPU, in half precision.

What is computed from a piece stays in the cache, whatever the array's size.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core.binning import BinSums, even_bin_index, sums_at
from focalcal.core.checks import simplex_miss
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import at_least_float32
from focalcal.metrics.proper import row_brier, row_nll

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jaxtyping import Bool, Float, Int

    Piece = tuple[Float[Tensor, "n k"], Int[Tensor, " n"], Callable[[int], int]]

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
    confidence: Float[Tensor, " rows"] | None
    correct: Bool[Tensor, " rows"] | None
    row_brier: Float[Tensor, " rows"] | None
    row_nll: Float[Tensor, " rows"] | None

    @property
    def outcomes(self) -> tuple[Float[Tensor, " rows"], Bool[Tensor, " rows"]]:
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
            if isinstance(value, Tensor):
                if field.name not in whole:
                    whole[field.name] = value.new_empty(most_rows)
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
    sums: dict[str, Any] = {name: v[:filled] if isinstance(v, Tensor) else v for name, v in whole.items()}
    return Scan(**sums)


def flat_pieces(
    scores: Float[Tensor, "n k *d"], labels: Int[Tensor, "n *d"], ignore_index: int | None
) -> Iterator[Piece]:
    """Scores (rows, K) and labels (rows,) without the ignored ones, and which row of the caller's each comes from."""
    for start, piece in row_chunks(scores):
        index = labels[start : start + len(piece)]
        if piece.dim() == 2:
            yield _without_ignored(piece, index, ignore_index, start, 1)
            continue
        maps, targets = piece.flatten(2), index.flatten(1)
        step = max(1, _POSITIONS_AT_ONCE // (len(piece) * piece.shape[1]))
        for at in range(0, maps.shape[2], step):
            part = maps[:, :, at : at + step].movedim(1, -1).reshape(-1, piece.shape[1])
            target = targets[:, at : at + step]
            yield _without_ignored(part, target.flatten(), ignore_index, start, target.shape[1])


def _without_ignored(rows: Tensor, labels: Tensor, ignore_index: int | None, start: int, positions: int) -> Piece:
    keep = None
    if ignore_index is not None and bool((labels == ignore_index).any()):
        keep = (labels != ignore_index).nonzero().squeeze(1)
        rows, labels = rows[keep], labels[keep]
    return rows, labels, lambda at: start + (at if keep is None else int(keep[at])) // positions


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
    brier = row_brier(probs, labels) if wanted["brier"] else None
    nll = row_nll(probs, labels) if wanted["nll"] else None
    sums = _on_cpu(sums_at(even_bin_index(confidence, bins), confidence, correct, bins))
    values = (confidence, correct, brier, nll) if wanted["rows"] else (None,) * 4
    return Scan(
        len(labels),
        float(len(labels) - sums.correct.sum()),
        miss,
        sums,
        _on_cpu(_class_sums(probs, labels, edges.to(probs.device))) if wanted["classes"] else None,
        None if brier is None else float(brier.sum()),
        None if nll is None else float(nll.sum()),
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
