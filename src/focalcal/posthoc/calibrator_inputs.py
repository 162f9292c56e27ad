"""Logits or probabilities, labels and weights as calibrators take them: checked rows; results in the kind given.

No logarithm of 0 is of any use, and the one of the smallest double outweighs every other row. What a probability of
exactly 0 stands for is read off the rows of the fit:

    printed       every entry is a number of d decimals, d = 2, 3 or 4 (the least that does; per cent at least, so that
                  0.5, 0.9 and 1 have two): half of the last digit, 0.5 * 10^-d
    otherwise     1 / (2 n), n rows: an event that happened in none of n rows
    in any case   at most the smallest entry above 0

The bound c is for a row's zeros together: entries are clipped to [c / (K - 1), 1 - c], which for two classes is
[c, 1 - c]. In the rows of the fit nothing but zeros and ones moves, and the order of entries stays. Metrics never clip.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from focalcal.core.arrays import as_array
from focalcal.core.checks import (
    ProbabilityWarning,
    finite,
    finite_or_masked,
    first_row,
    holds_probabilities,
    labels_below,
    on_simplex,
    shown,
    warn,
)
from focalcal.core.chunks import row_chunks
from focalcal.predictions.inputs import class_scores, read_inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int
    from numpy.typing import NDArray

    from focalcal.core.arrays import PerRow, Scores

_ONES = (100, 1000, 10_000)  # of the last digit of 2, 3 and 4 decimals
_ROUNDING = 1e-7  # of a printed number in float32


def checked_clip(clip: Any) -> float:
    """A caller's bound."""
    if isinstance(clip, bool) or not isinstance(clip, Real) or not 0 < float(clip) < 0.5:
        raise ValueError(
            f"clip must be above 0 and below 0.5, got {shown(clip)}; leave it out to have it read off the rows"
        )
    return float(clip)


def bound_of(probs: Scores) -> float:
    """What 0 stands for in these rows, as said above.

    >>> bound_of(np.array([[0.5, 0.5], [0.1, 0.9], [0.0, 1.0]]))
    0.005
    """
    inside = [rows[(rows > 0) & (rows < 1)].astype(np.float64) for _, rows in row_chunks(probs)]
    smallest: float = min((float(part.min()) for part in inside if len(part)), default=math.inf)
    for one in _ONES:
        if smallest < math.inf and all(_printed(part, one) for part in inside):
            return min(0.5 / one, smallest)
    return min(0.5 / max(len(probs), 2), smallest)


def _printed(values: PerRow, one: int) -> bool:
    """Whether all are whole multiples of 1 / one, but for rounding."""
    scaled = values * one
    return bool((np.abs(scaled - scaled.round()) <= _ROUNDING * one).all())


def clipped(probs: Scores, clip: float) -> Scores:
    """In float64."""
    return probs.astype(np.float64).clip(clip / (probs.shape[1] - 1), 1 - clip)


def zeros_message(probs: Scores, clip: float) -> str:
    """How many entries of 0 there are and what they count as; "" if there are none."""
    zeros = probs <= 0
    number = int(zeros.sum())
    if not number:
        return ""
    return (
        f"{number} entries of 0, in {int(zeros.any(1).sum())} of {len(probs)} rows, which calibrators take for "
        f"{clip / (probs.shape[1] - 1):.3g}, and 1 for 1 - {clip:.3g}"
    )


class CheckedRows(NamedTuple):
    """Scores as a calibrator takes them, one row per example, or per position of dense ones."""

    logits: Scores  # finite, or -inf for an impossible class; of probabilities their logarithm
    scores: Scores  # what was given, one column per class
    kind: str  # of the scores
    one_column: bool  # whether that of the positive class alone was given
    labels: Any = None  # (n,) int64, of rows with labels
    classes: tuple[Any, ...] | None = None  # names of the columns
    weights: Any = None  # (n,) of the rows with labels, float64, > 0
    shape: tuple[int, ...] = ()  # of one value per row, as the scores were given: (N, d1, ...)
    clip: float | None = None  # that the probabilities were clipped at

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """One value (n,), or one per class (n, K), of every row in the shape of the scores given."""
        whole = values.reshape(*self.shape, *values.shape[1:])
        return np.moveaxis(whole, -1, 1) if values.ndim > 1 else whole


def labelled_rows(logits: Any, labels: Any, *, probs: Any = None, least_classes: int = 2, **about: Any) -> CheckedRows:
    """Rows with labels, of which so many different ones occur; `about` is what `rows_of` takes."""
    rows = rows_of(logits, probs, labels=labels, **about)
    index = rows.labels
    if index is None:
        raise ValueError("labels must be given, got None: requires y to be passed, but the target y is None")
    if least_classes > 1 and (index == index[0]).all():
        raise ValueError(
            f"labels must hold at least two classes, got one class only, {int(index[0])}, in {len(index)} rows; "
            "nothing can be learnt about the others: fit on rows of every class"
        )
    return rows


def rows_of(
    logits: Any,
    probs: Any,
    *,
    labels: Any = None,
    masked: bool = False,
    one_column: bool = True,
    dense: bool = False,
    sample_weight: Any = None,
    ignore_index: int | None = None,
    clip: float | Literal["data"] | None = None,
    **about: Any,
) -> CheckedRows:
    """At least one row and two classes: logits, or probabilities and their logarithm in float64; labels if given.

    `masked` allows logits of -inf, `one_column` scores of the positive class alone, `dense` (N, K, d1, ...). Rows of
    weight 0, or with the label `ignore_index`, are left out. Rows that all hold probabilities are refused as logits.
    Probabilities are clipped at `clip`, or with "data" at what these rows show (`clipping`), of which a warning counts
    the zeros. With None zeros count as the smallest positive number of their dtype (4.9e-324, 1.4e-45 or 6e-8), which
    a warning says, too.
    """
    if probs is not None and logits is not None:
        raise TypeError("give logits or probs=, got both; the name says what the scores are")
    kind, given = ("logits", logits) if probs is None else ("probs", probs)
    single, classes, index = False, None, None
    if hasattr(given, "__focalcal_inputs__"):
        inputs = read_inputs(given, labels)
        kind, scores, index, classes = inputs.kind, inputs.scores, inputs.labels, inputs.classes
        if kind == "outcomes":  # the classes wrong and right
            kind, scores, index = "probs", np.stack([1 - scores, scores], 1), index.astype(np.int64)
    else:
        scores, single = _checked_columns(kind, given, one_column=one_column, dense=dense)
        if labels is not None:
            inputs = read_inputs(labels=labels, ignore_index=ignore_index, **{kind: given}, **about)
            scores, index, classes = inputs.scores, inputs.labels, inputs.classes
    shape, weights = (scores.shape[0], *scores.shape[2:]), None
    if index is not None:
        labels_below(index, scores.shape[1], ignore_index=ignore_index)
        weights = _row_weights(sample_weight, index)
    scores = flat_rows(scores)
    if kind == "logits":
        (finite_or_masked if masked else finite)("logits", scores)
        refuse_probabilities(scores)
    if index is not None and weights is not None:
        index = index.ravel()
        kept = weights > 0 if ignore_index is None else (weights > 0) & (index != ignore_index)
        if not kept.all():
            scores, index, weights = scores[kept], index[kept], weights[kept]
        if len(index) == 0:
            raise ValueError(
                "labels must name the class of at least one row to fit on, got a weight of zero or ignore_index in all"
            )
    if kind == "logits":
        return CheckedRows(scores, scores, kind, single, index, classes, weights, shape)
    log, bound = _log_probs(scores, clip)
    return CheckedRows(log, scores, kind, single, index, classes, weights, shape, bound)


def flat_rows(scores: Any) -> Any:
    """Dense scores (N, K, d1, ...), an array or a tensor, as rows (n, K): the first example's positions come first."""
    if scores.ndim == 2:
        return scores
    rows = scores.reshape(scores.shape[0], scores.shape[1], -1)
    return rows.swapaxes(1, 2).reshape(-1, scores.shape[1])


def _row_weights(given: Any, labels: Int[np.ndarray, "n *d"]) -> Float[np.ndarray, " rows"]:
    """One weight for every label, checked; ones if there are none."""
    if given is None:
        return np.ones(labels.size)
    weights = as_array("sample_weight", given).astype(np.float64)
    if weights.shape != labels.shape:
        raise ValueError(
            f"sample_weight must have the labels' shape {labels.shape}, got {weights.shape}; "
            "give one weight to every row"
        )
    wrong = ~((weights >= 0) & np.isfinite(weights)).ravel()
    if wrong.any():
        at = first_row(wrong)
        raise ValueError(
            f"sample_weight must be finite and >= 0, got {float(weights.flat[at])} at flat position {at}; "
            "a row of weight 0 is left out"
        )
    return weights.ravel()


def _log_probs(probs: Scores, clip: float | Literal["data"] | None) -> tuple[Scores, float | None]:
    """Logarithms, and what the probabilities were clipped at."""
    on_simplex("probs", probs)
    if clip is not None:
        bound = bound_of(probs) if clip == "data" else checked_clip(clip)
        if clip == "data" and (counted := zeros_message(probs, bound)):
            warn(f"probs has {counted}; pass clip= for another bound, or logits", ProbabilityWarning)
        return np.log(clipped(probs, bound)), bound
    zeros = probs <= 0
    number = int(zeros.sum())
    smallest = float(np.finfo(probs.dtype).smallest_subnormal)
    if number:
        warn(
            f"probs has {number} entries of 0, in {int(zeros.any(1).sum())} of {len(probs)} rows, whose logarithm is "
            f"taken at {smallest:.2g}, the smallest positive {probs.dtype}; where a label "
            "has probability 0 a fit depends on that number: pass logits, or clip to what the digits tell from 0",
            ProbabilityWarning,
        )
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(np.maximum(probs.astype(np.float64), 0)), math.log(smallest)), None


def refuse_probabilities(logits: Scores) -> None:
    """Refuse rows that all are >= 0 and sum to one, which the logits of a network never do in two rows or more.

    A single row may by accident: one of 30,000 pairs of normal logits with standard deviation 3 does. It is taken.
    """
    if not holds_probabilities(logits):
        return
    message = (
        f"logits must not be probabilities, got {len(logits)} row(s) that all are >= 0 and sum to 1; pass "
        "probs=... instead, or log(probs). If they are logits all the same, pass logits - 1: softmax does not see a "
        "constant"
    )
    if len(logits) > 1:
        raise ValueError(message)
    warn(f"{message}. A single row is taken as logits", ProbabilityWarning)


def _checked_columns(
    name: str, given: Any, *, one_column: bool, dense: bool
) -> tuple[Float[np.ndarray, "n k *d"], bool]:
    """At least one row and two classes, floating point; and whether one column was given."""
    if hasattr(given, "tocsr"):
        raise TypeError(f"{name} must be dense, got a sparse {type(given).__name__}; use {name}.toarray()")
    dtype = getattr(given, "dtype", None)
    if str(dtype).removeprefix("torch.").startswith("complex"):
        raise ValueError(f"Complex data not supported: {name} must be real, got {dtype}; use {name}.real")
    scores, single = class_scores(name, given)
    shape = np.shape(given) if single else scores.shape
    if scores.ndim < 2 or (scores.ndim > 2 and not dense) or (single and len(shape) == 1 and not one_column):
        more = " or (N, K, d1, ...)" if dense else ""
        raise ValueError(
            f"{name} must be (N, K){more}, one row per example and one column per class, got shape {tuple(shape)}. "
            f"Reshape your data: one example is {name}.reshape(1, -1); for pixels move the classes last and flatten"
        )
    if scores.dtype.kind != "f":
        raise TypeError(
            f"{name} must be floating point, got {scores.dtype}; convert them, e.g. {name}.astype('float32')"
        )
    if scores.shape[1] < 2 or (single and not one_column):
        wanted = "logit z of a positive class stack (0, z)" if name == "logits" else "probability p stack (1 - p, p)"
        raise ValueError(
            f"{name} must have one column per class, got {shape[1]} feature(s) "
            f"(shape={tuple(shape)}) while a minimum of 2 is required. For one {wanted}"
        )
    if scores.size == 0:
        raise ValueError(f"{name} must hold at least one row, got shape {scores.shape}")
    return scores, single


def map_rows(logits: Scores, function: Callable[[NDArray[Any]], NDArray[Any]], dtype: Any = np.float64) -> Scores:
    """`function` of the rows in float64, a chunk at a time, as `dtype`."""
    result = np.empty(logits.shape, dtype)
    with np.errstate(all="ignore"):
        for start, rows in row_chunks(logits):
            result[start : start + len(rows)] = function(rows.astype(np.float64, copy=False))
    return result
