"""One pass over an array of scores: everything the metrics are made of.

The array is checked on the way. The native kernel reads it once; without the kernel, on a GPU or in half precision
the same sums come from torch operations on pieces small enough to stay in the cache. Neither copies the array.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from focalcal._native import scores as native
from focalcal.core.binning import BinSums, equal_width_edges, even_bin_index, sums_at
from focalcal.core.checks import (
    ROUNDING,
    labels_below,
    not_probabilities,
    possible_logits,
    sum_tolerance,
    warn_of_rounding,
    whole_number,
)
from focalcal.core.scores import scores_and_labels
from focalcal.metrics.torch_pass import Scan, flat_pieces, join, scan_piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jaxtyping import Float, Int

    from focalcal.predictions import Inputs

_MOST_CELLS = 1 << 28  # classes times bins: 6 GB of sums


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
    n_bins = check_bins(n_bins)
    wanted = {"classes": classes, "brier": brier, "nll": nll, "rows": rows}
    edges = even_edges(n_bins)
    if logits is not None:
        if probs is not None:
            raise ValueError("probs and logits were both given; pass one of them")
        result = _scan_logits(
            *scores_and_labels("logits", logits, labels, ignore_index=ignore_index), edges, ignore_index, wanted
        )
    else:
        if probs is None:
            raise ValueError("probs is missing; pass probabilities, or logits=... where the function takes them")
        scores, index = scores_and_labels("probs", probs, labels, ignore_index=ignore_index, in_range=False)
        if classes and scores.shape[1] * n_bins > _MOST_CELLS:
            raise ValueError(f"n_bins times the {scores.shape[1]} classes must be at most 2^28, got n_bins = {n_bins}")
        result = _scan_probs(scores, index, edges, ignore_index, wanted)
        warn_of_rounding("probs", result.miss)
    if result.rows == 0 and not allow_none:
        raise no_rows(ignore_index)
    return result


def no_rows(ignore_index: int | None) -> ValueError:
    """The error for labels that are all to be ignored."""
    return ValueError(f"labels must leave a row to look at, got only ignore_index = {ignore_index}")


def check_bins(n_bins: Any) -> int:
    """A number of bins as an int, 15.0 too; others than whole numbers from 1 to a million are refused."""
    whole = int(n_bins) if isinstance(n_bins, (float, np.floating)) and n_bins == n_bins // 1 else n_bins
    return whole_number("n_bins", whole, least=1, most=1_000_000, remedy="15 is usual")


def scan_inputs(
    given: Inputs, *, n_bins: int = 15, ignore_index: int | None = None, allow_none: bool = False, **asked: bool
) -> Scan:
    """`scan` of what was read; of confidences and correctness alone the part that needs no more."""
    if given.kind != "outcomes":
        probs, logits = (given.scores, None) if given.kind == "probs" else (None, given.scores)
        return scan(
            probs, given.labels, logits=logits, n_bins=n_bins, ignore_index=ignore_index, allow_none=allow_none, **asked
        )
    n_bins, confidence, correct = check_bins(n_bins), given.scores, given.labels
    sums = sums_at(even_bin_index(confidence, n_bins), confidence, correct, n_bins)
    wrong = float(len(correct) - correct.sum())
    return Scan(len(correct), wrong, 0.0, sums, None, None, None, confidence, correct, None, None)


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
        tolerance = sum_tolerance(probs.dtype)
        sums = native.score_pass(probs, labels, edges, tolerance, -ROUNDING, ignore_index=ignore_index, **wanted)
        if sums.bad >= 0:
            raise _bad_row(probs, labels, ignore_index, sums.bad)
        return _from_native(sums, labels, ignore_index, wanted)
    labels_below(labels, probs.shape[1], ignore_index=ignore_index)
    pieces = flat_pieces(probs, labels, ignore_index)
    return join((scan_piece(*piece, edges, wanted) for piece in pieces), labels.numel())


def _bad_row(probs: Tensor, labels: Tensor, ignore_index: int | None, position: int) -> ValueError:
    """The error for the row that stopped the native pass."""
    labels_below(labels, probs.shape[1], ignore_index=ignore_index)
    row = position * len(probs) // labels.numel()
    inner = position % (labels.numel() // len(probs))
    values = probs[row].flatten(1)[:, inner] if probs.dim() > 2 else probs[row]
    return not_probabilities("probs", row, values, sum_tolerance(probs.dtype))


def _from_native(sums: native.ScorePass, labels: Tensor, ignore_index: int | None, wanted: dict[str, bool]) -> Scan:
    count, wrong, brier, nll, miss = sums.totals.tolist()
    values: Iterable[Tensor | None] = (sums.confidence, sums.correct, sums.brier, sums.nll)
    if ignore_index is not None and wanted["rows"]:
        keep = labels.flatten() != ignore_index
        values = [None if v is None else v[keep] for v in values]
    return Scan(
        int(count),
        wrong,
        miss,
        BinSums(*sums.bins.unbind()),
        None if sums.classes is None else BinSums(*sums.classes.unbind()),
        brier if wanted["brier"] else None,
        nll if wanted["nll"] else None,
        *values,
    )


def _scan_logits(
    logits: Float[Tensor, "n k *d"],
    labels: Int[Tensor, "n *d"],
    edges: Tensor,
    ignore_index: int | None,
    wanted: dict[str, bool],
) -> Scan:
    """softmax in float64 piece by piece; the log-likelihood from the logits, so that it is finite where p_y is 0."""

    def part(scores: Tensor, index: Tensor, row_of: Callable[[int], int]) -> Scan:
        if len(scores) == 0:
            return scan_piece(scores.double(), index, row_of, edges, wanted)
        possible_logits("logits", scores, row_of)
        log_probs = scores.double().log_softmax(1)
        without_nll = _scan_probs(log_probs.exp(), index, edges, None, {**wanted, "nll": False})
        if not wanted["nll"]:
            return without_nll
        row_nll = -log_probs.gather(1, index.unsqueeze(1)).squeeze(1).cpu()
        return replace(without_nll, nll_sum=float(row_nll.sum()), row_nll=row_nll if wanted["rows"] else None)

    return join((part(*piece) for piece in flat_pieces(logits, labels, ignore_index)), labels.numel())
