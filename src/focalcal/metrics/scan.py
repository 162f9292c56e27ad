"""One pass over an array of scores: everything the metrics are made of.

The array is checked on the way. The native kernel reads it once; without the kernel, on a GPU or in half precision
the same sums come from torch operations on pieces small enough to stay in the cache. Neither copies the array.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from focalcal._native import scores as native
from focalcal.core.binning import BinSums, equal_width_edges, even_bin_index, sums_at
from focalcal.core.scores import (
    SUM_TOLERANCE,
    labels_below,
    not_finite,
    off_simplex,
    row_chunks,
    scores_and_labels,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class Scan:
    """Sums over rows and, where asked for, a value for each row. `+` joins two sets of rows."""

    rows: int
    wrong: float
    bins: BinSums  # (bins,): confidence against correctness
    classes: BinSums | None  # (K, bins): each class's probability against whether it is the label
    brier: float | None
    nll: float | None
    confidence: Float[Tensor, " rows"] | None
    correct: Bool[Tensor, " rows"] | None
    row_brier: Float[Tensor, " rows"] | None
    row_nll: Float[Tensor, " rows"] | None

    def __add__(self, other: Scan) -> Scan:
        """The sums over both, the rows of both."""
        return Scan(
            **{field.name: _join(getattr(self, field.name), getattr(other, field.name)) for field in fields(Scan)}
        )


def _join(one: Any, other: Any) -> Any:
    if one is None:
        return None
    return torch.cat([one, other]) if isinstance(one, Tensor) else one + other


def scan(
    probs: Any,
    labels: Any,
    *,
    logits: Any = None,
    n_bins: int = 15,
    ignore_index: int | None = None,
    classes: bool = False,
    brier: bool = False,
    nll: bool = False,
    rows: bool = False,
    allow_none: bool = False,
) -> Scan:
    """Probabilities, or logits instead, (N, K) or (N, K, d1, ...) and labels (N, d1, ...).

    Rows whose label is `ignore_index` are left out, whatever their scores. The keywords say what is wanted besides
    the confidence bins: sums over every class's bins, the Brier score, the log-likelihood, values for each row.
    That every row is ignored is refused unless `allow_none`.
    """
    check_bins(n_bins)
    wanted = {"classes": classes, "brier": brier, "nll": nll, "rows": rows}
    edges = even_edges(n_bins)
    if logits is not None:
        if probs is not None:
            raise ValueError("probs and logits were both given; pass one of them")
        found = _scan_logits(
            *scores_and_labels("logits", logits, labels, ignore_index=ignore_index), edges, ignore_index, wanted
        )
    else:
        if probs is None:
            raise ValueError("probs is missing; pass probabilities, or logits=... where the function takes them")
        scores, index = scores_and_labels("probs", probs, labels, ignore_index=ignore_index, in_range=False)
        found = _scan_probs(scores, index, edges, ignore_index, wanted)
    if found.rows == 0 and not allow_none:
        raise ValueError(f"labels must leave a row to look at, got only ignore_index = {ignore_index}")
    return found


def check_bins(n_bins: int) -> None:
    """Refuse a number of bins that is not a whole number >= 1."""
    if isinstance(n_bins, bool) or not isinstance(n_bins, int) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number >= 1, got {n_bins!r}; 15 is the usual choice")


@lru_cache(maxsize=64)
def even_edges(n_bins: int) -> Tensor:
    """`equal_width_edges`, made once and not to be written to."""
    return equal_width_edges(n_bins)


def _scan_probs(
    probs: Float[Tensor, "n k *d"],
    labels: Int[Tensor, "n *d"],
    edges: Tensor,
    ignore_index: int | None,
    wanted: dict[str, bool],
) -> Scan:
    if native.usable(probs):
        tolerance = SUM_TOLERANCE[probs.dtype]
        found = native.score_pass(probs, labels, edges, tolerance, ignore_index=ignore_index, **wanted)
        if found.bad >= 0:
            raise _why_bad(probs, labels, ignore_index, found.bad)
        return _from_native(found, labels, ignore_index, wanted)
    labels_below(labels, probs.shape[1], ignore_index=ignore_index)
    total: Scan | None = None
    for start, piece in row_chunks(probs):
        part = _scan_piece(*_flat(start, piece, labels, ignore_index), edges, wanted)
        total = part if total is None else total + part
    assert total is not None  # scores_and_labels refuses empty arrays
    return total


def _why_bad(probs: Tensor, labels: Tensor, ignore_index: int | None, position: int) -> ValueError:
    """The error for the row that stopped the native pass."""
    labels_below(labels, probs.shape[1], ignore_index=ignore_index)
    row = position * len(probs) // labels.numel()
    inner = position % (labels.numel() // len(probs))
    return off_simplex("probs", row, probs[row].flatten(1)[:, inner] if probs.dim() > 2 else probs[row])


def _from_native(found: native.ScorePass, labels: Tensor, ignore_index: int | None, wanted: dict[str, bool]) -> Scan:
    count, wrong, brier, nll = found.totals.tolist()
    values: Iterable[Tensor | None] = (found.confidence, found.correct, found.brier, found.nll)
    if ignore_index is not None and wanted["rows"]:
        keep = labels.flatten() != ignore_index
        values = [None if v is None else v[keep] for v in values]
    return Scan(
        int(count),
        wrong,
        BinSums(*found.bins),
        None if found.classes is None else BinSums(*found.classes),
        brier if wanted["brier"] else None,
        nll if wanted["nll"] else None,
        *values,
    )


def _flat(
    start: int, piece: Tensor, labels: Tensor, ignore_index: int | None
) -> tuple[Tensor, Tensor, Callable[[int], int]]:
    """(rows, K) and (rows,) without the ignored ones, and a function from their position to the caller's row."""
    index = labels[start : start + len(piece)].flatten()
    inner = index.numel() // len(piece)
    scores = piece.movedim(1, -1).reshape(-1, piece.shape[1]) if piece.dim() > 2 else piece
    kept = None
    if ignore_index is not None and bool((index == ignore_index).any()):
        kept = (index != ignore_index).nonzero().squeeze(1)
        scores, index = scores[kept], index[kept]
    return scores, index, lambda at: start + (at if kept is None else int(kept[at])) // inner


def _scan_piece(
    probs: Float[Tensor, "n k"],
    labels: Int[Tensor, " n"],
    row_of: Callable[[int], int],
    edges: Tensor,
    wanted: dict[str, bool],
) -> Scan:
    """The pass over one piece as torch operations."""
    tolerance = SUM_TOLERANCE[probs.dtype]
    if probs.dtype in (torch.float16, torch.bfloat16):
        probs = probs.float()
    bins, ones = len(edges) - 1, probs.new_ones(probs.shape[1])
    if len(probs):
        _check_piece(probs, ones, tolerance, row_of)
    own = probs.gather(1, labels.unsqueeze(1)).squeeze(1)
    confidence = probs.amax(1) if len(probs) else own
    correct = own == confidence
    tied = correct & (confidence <= 0.51)  # above a half no other class is as large
    if bool(tied.any()):
        correct[tied] = probs[tied].max(1).indices == labels[tied]
    row_brier = row_nll = None
    if wanted["brier"]:  # nothing cancels: the others' squares are summed without the label's
        wide = probs.double()  # in float32 a row's sum would depend on how many rows are multiplied at once
        squares = wide.square().scatter_(1, labels.unsqueeze(1), 0)
        row_brier = (1 - own.double()).square_() + torch.mv(squares, ones.double())
    if wanted["nll"]:
        row_nll = -own.double().log()
    sums = _on_cpu(sums_at(even_bin_index(confidence, bins), confidence, correct, bins))
    values = (confidence, correct, row_brier, row_nll) if wanted["rows"] else (None,) * 4
    return Scan(
        len(labels),
        float(len(labels) - sums.correct.sum()),
        sums,
        _on_cpu(_class_sums(probs, labels, edges.to(probs.device))) if wanted["classes"] else None,
        None if row_brier is None else float(row_brier.sum()),
        None if row_nll is None else float(row_nll.sum()),
        *(None if value is None else value.cpu() for value in values),
    )


def _check_piece(probs: Float[Tensor, "n k"], ones: Tensor, tolerance: float, row_of: Callable[[int], int]) -> None:
    total = torch.mv(probs, ones)  # faster than a sum over few columns
    bits = probs.view(torch.int32 if probs.dtype is torch.float32 else torch.int64)
    # A negative number is a negative integer too, and integers are compared faster; -0.0 gets the second look.
    if not (int(bits.min()) >= 0 and float(total.sub_(1).abs_().max()) <= tolerance):
        fine = (probs >= 0).all(1) & ((probs.sum(1, dtype=torch.float64) - 1).abs() <= tolerance)
        if not bool(fine.all()):
            at = int((~fine).nonzero()[0])
            raise off_simplex("probs", row_of(at), probs[at])


def _class_sums(probs: Float[Tensor, "n k"], labels: Int[Tensor, " n"], edges: Tensor) -> BinSums:
    """(K, bins) sums of every class's probability; most lie in the first bin, where a column sum will do."""
    classes, bins = probs.shape[1], len(edges) - 1
    above = _nonzero(probs > edges[1]) if bins > 1 else labels[:0]
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


def _nonzero(mask: Tensor) -> Tensor:
    """Flat positions; NumPy finds them several times faster on a CPU."""
    return torch.from_numpy(np.flatnonzero(mask.numpy())) if mask.is_cpu else mask.flatten().nonzero().squeeze(1)


def _on_cpu(sums: BinSums) -> BinSums:
    return BinSums(sums.count.cpu(), sums.confidence.cpu(), sums.correct.cpu())


def _scan_logits(
    logits: Float[Tensor, "n k *d"],
    labels: Int[Tensor, "n *d"],
    edges: Tensor,
    ignore_index: int | None,
    wanted: dict[str, bool],
) -> Scan:
    """softmax in float64 piece by piece; the log-likelihood from the logits, so that it is finite where p_y is 0."""
    total: Scan | None = None
    for start, piece in row_chunks(logits):
        scores, index, row_of = _flat(start, piece, labels, ignore_index)
        if len(scores) == 0:
            part = _scan_piece(scores.double(), index, row_of, edges, wanted)
        else:
            good = torch.isfinite(scores).all(1)
            if not bool(good.all()):
                at = int((~good).nonzero()[0])
                raise not_finite("logits", row_of(at), scores[at])
            log_probs = scores.double().log_softmax(1)
            part = _scan_probs(log_probs.exp(), index, edges, None, {**wanted, "nll": False})
            if wanted["nll"]:
                row_nll = -log_probs.gather(1, index.unsqueeze(1)).squeeze(1).cpu()
                part = replace(part, nll=float(row_nll.sum()), row_nll=row_nll if wanted["rows"] else None)
        total = part if total is None else total + part
    assert total is not None
    return total
