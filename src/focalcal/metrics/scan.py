"""One pass over an array of scores: everything the metrics are made of.

The array is checked on the way. The native kernel reads it once; without the kernel the same sums come from NumPy, on
pieces small enough to stay in the cache. Neither copies the array. Rows that weigh differently are summed afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from focalcal._native import scores as native
from focalcal.core.arrays import Array
from focalcal.core.binning import BinSums, equal_width_edges, even_bin_index, sums_at
from focalcal.core.checks import (
    ROUNDING,
    SUM_TOLERANCE,
    label_to_ignore,
    labels_below,
    not_probabilities,
    possible_logits,
    simplex_miss,
    sum_tolerance,
    warn_of_rounding,
    whole_number,
)
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import at_least_float32, log_softmax, softmax
from focalcal.metrics.proper import binary_brier, binary_nll, of_label, row_brier, row_nll
from focalcal.metrics.row_weights import kept_rows, kept_weights
from focalcal.predictions.inputs import Inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jaxtyping import Bool, Float, Int

    Piece = tuple[Float[Array, "n k"], Int[Array, " n"], Callable[[int], int]]
    from collections.abc import Callable

    from jaxtyping import Float, Int

_POSITIONS_AT_ONCE = 1 << 18  # elements of one image
_MOST_CELLS = 1 << 28  # classes times bins: 6 GB of sums


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


def scan_of_outcomes(confidence: Array, correct: Array, n_bins: int = 15) -> Scan:
    """What a pass gives of confidences (n,) and outcomes (n,) bool: scores are those of one sigmoid output."""
    pair = confidence, correct
    return scan_of_rows(*pair, binary_brier(*pair), binary_nll(*pair), check_bins(n_bins))


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
        return scan_of_outcomes(given.scores, given.labels, n_bins)
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


def weigh(sums: Scan, given: Inputs, ignore_index: int | None, edges: Array) -> Scan:
    """The sums of a pass, with its values of each row, over rows that weigh differently."""
    assert given.weights is not None
    weights = kept_weights(given, ignore_index)
    labelled = np.ones(given.labels.size, bool) if ignore_index is None else given.labels.ravel() != ignore_index
    keep = np.repeat(given.weights > 0, given.labels.size // len(given.weights))[labelled]
    confidence, correct = (each[keep] for each in sums.outcomes)
    brier, nll = (None if each is None else each[keep] for each in (sums.row_brier, sums.row_nll))
    classes = None if sums.classes is None else _weighed_class_sums(given, ignore_index, edges)
    return scan_of_rows(
        confidence, correct, brier, nll, len(edges) - 1, weights=weights, classes=classes, miss=sums.miss
    )


def weighed_pieces(given: Inputs, ignore_index: int | None) -> Iterator[tuple[Array, Array, Array]]:
    """Scores (rows, K), labels and weights of the rows that count, piece by piece; ones where there are no weights."""
    if given.weights is None:
        for scores, labels, _ in flat_pieces(given.scores, given.labels, ignore_index):
            yield scores, labels, np.ones(len(labels))
        return
    keep = kept_rows(given, ignore_index)
    weights = np.zeros(given.labels.size)
    weights[slice(None) if keep is None else keep] = kept_weights(given, ignore_index)
    marked = np.where(weights.reshape(given.labels.shape) > 0, given.labels, -1)
    weights = weights[marked.ravel() >= 0]
    start = 0
    for scores, labels, _ in flat_pieces(given.scores, marked, -1):
        yield scores, labels, weights[start : start + len(labels)]
        start += len(labels)


def _weighed_class_sums(given: Inputs, ignore_index: int | None, edges: Array) -> BinSums:
    """(K, bins) sums of every class's probability."""
    total = BinSums(*np.zeros((3, given.scores.shape[1], len(edges) - 1)))
    for scores, labels, weights in weighed_pieces(given, ignore_index):
        if len(labels):
            probs = at_least_float32(scores) if given.kind == "probs" else softmax(scores.astype(np.float64))
            total.add_(class_sums(probs, labels, edges, weights))
    return total
