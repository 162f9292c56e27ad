"""One pass over an array of scores: everything the metrics are made of.

The array is checked on the way. The native kernel reads it once; without the kernel the same sums come from NumPy, on
pieces small enough to stay in the cache. Neither copies the array.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from focalcal._native import scores as native
from focalcal.core.arrays import Array
from focalcal.core.binning import BinSums, equal_width_edges
from focalcal.core.checks import (
    ROUNDING,
    SUM_TOLERANCE,
    label_to_ignore,
    labels_below,
    not_probabilities,
    possible_logits,
    sum_tolerance,
    warn_of_rounding,
    whole_number,
)
from focalcal.core.numerics import log_softmax
from focalcal.metrics.array_pass import Scan, flat_pieces, join, scan_of_rows, scan_piece
from focalcal.metrics.proper import binary_brier, binary_nll, of_label
from focalcal.metrics.row_weights import weigh
from focalcal.predictions.inputs import Inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jaxtyping import Float, Int

_MOST_CELLS = 1 << 28  # classes times bins: 6 GB of sums


def scan_inputs(
    given: Inputs,
    *,
    n_bins: int = 15,
    ignore_index: int | None = None,
    classes: bool = False,
    brier: bool = False,
    nll: bool = False,
    rows: bool = False,
    allow_none: bool = False,
) -> Scan:
    """One pass over what was read; of confidences and correctness alone the part that needs no more.

    Rows whose label is `ignore_index` are left out, whatever their scores. The keywords say what is wanted besides
    the confidence bins: sums over every class's bins, the Brier score, the log-likelihood, values for each row.
    That every row is ignored is refused unless `allow_none`.
    """
    n_bins = check_bins(n_bins)
    if given.weights is not None:
        asked = {"classes": classes, "brier": brier, "nll": nll, "rows": True, "allow_none": allow_none}
        alike = scan_inputs(given._replace(weights=None), n_bins=n_bins, ignore_index=ignore_index, **asked)
        weighed = weigh(alike, given, ignore_index, even_edges(n_bins))
        if weighed.rows == 0 and not allow_none:
            raise no_rows(ignore_index)
        return weighed
    if given.kind == "outcomes":
        pair = given.scores, given.labels
        return scan_of_rows(*pair, binary_brier(*pair), binary_nll(*pair), n_bins)
    wanted = {"classes": classes, "brier": brier, "nll": nll, "rows": rows}
    label_to_ignore(ignore_index)
    if classes and given.scores.shape[1] * n_bins > _MOST_CELLS:
        raise ValueError(
            f"n_bins times the {given.scores.shape[1]} classes must be at most 2^28, got n_bins = {n_bins}"
        )
    one_pass = _scan_native if native.usable(given.scores) else _scan_pieces
    result = one_pass(given, even_edges(n_bins), ignore_index, wanted)
    if given.kind == "probs":
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


@lru_cache(maxsize=64)
def even_edges(n_bins: int) -> Float[Array, " bins+1"]:
    """`equal_width_edges`, made once and not to be written to."""
    edges = equal_width_edges(n_bins)
    edges.flags.writeable = False
    return edges


def _scan_native(
    given: Inputs, edges: Float[Array, " bins+1"], ignore_index: int | None, wanted: dict[str, bool]
) -> Scan:
    scores, labels, logits = given.scores, given.labels, given.kind == "logits"

    def score_pass(tolerance: float) -> native.ScorePass:
        return native.score_pass(
            scores, labels, edges, tolerance, -ROUNDING, logits=logits, ignore_index=ignore_index, **wanted
        )

    sums = score_pass(SUM_TOLERANCE)
    if sums.bad >= 0 and not logits and (wider := sum_tolerance(scores)) > SUM_TOLERANCE:
        sums = score_pass(wider)
    if sums.bad >= 0:
        _refuse(given, ignore_index, sums.bad)
    return _from_native(sums, labels, ignore_index, wanted)


def _refuse(given: Inputs, ignore_index: int | None, position: int) -> NoReturn:
    """Raise the error for the row that stopped the native pass."""
    scores, labels = given.scores, given.labels
    labels_below(labels, scores.shape[1], ignore_index=ignore_index)
    row, inner = divmod(position, labels.size // len(scores))
    values = scores[row].reshape(scores.shape[1], -1)[:, inner]
    if given.kind == "logits":
        possible_logits("logits", values[None], lambda _: row)
    raise not_probabilities("probs", row, values)


def _from_native(sums: native.ScorePass, labels: Array, ignore_index: int | None, wanted: dict[str, bool]) -> Scan:
    count, wrong, brier, nll, miss = sums.totals.tolist()
    values: Iterable[Array | None] = (sums.confidence, sums.correct, sums.brier, sums.nll)
    if ignore_index is not None and wanted["rows"]:
        keep = labels.ravel() != ignore_index
        values = [None if v is None else v[keep] for v in values]
    return Scan(
        int(count),
        wrong,
        miss,
        BinSums(*sums.bins),
        None if sums.classes is None else BinSums(*sums.classes),
        brier if wanted["brier"] else None,
        nll if wanted["nll"] else None,
        *values,
    )


def _scan_pieces(
    given: Inputs, edges: Float[Array, " bins+1"], ignore_index: int | None, wanted: dict[str, bool]
) -> Scan:
    """The same without the kernel.

    Of logits softmax in float64; the log-likelihood from the logits, so that it is finite where p_y is 0.
    """

    def part(scores: Float[Array, "n k"], labels: Int[Array, " n"], row_of: Callable[[int], int]) -> Scan:
        if given.kind == "probs" or len(scores) == 0:
            return scan_piece(scores, labels, row_of, edges, wanted)
        possible_logits("logits", scores, row_of)
        log_probs = log_softmax(scores.astype(np.float64))
        without_nll = scan_piece(np.exp(log_probs), labels, row_of, edges, {**wanted, "nll": False})
        if not wanted["nll"]:
            return without_nll
        row_nll = -of_label(log_probs, labels)
        return replace(without_nll, nll_sum=float(row_nll.sum()), row_nll=row_nll if wanted["rows"] else None)

    labels_below(given.labels, given.scores.shape[1], ignore_index=ignore_index)
    pieces = flat_pieces(given.scores, given.labels, ignore_index)
    return join((part(*piece) for piece in pieces), given.labels.size)
