"""Proper scores, and the shares of rows they are read beside, as values of single rows.

The pass over an array adds up the scores of one label per row itself; what is here is the value of one sigmoid output
p against its label y, what needs a row's probabilities of all classes, and a row's scores for who compares rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focalcal.core.arrays import Array
from focalcal.core.checks import whole_number

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def binary_nll(p: Float[Array, " n"], y: Bool[Array, " n"]) -> Float[Array, " n"]:
    """-log p where y, else -log(1 - p)."""
    p = p.astype(np.float64).clip(0, 1)
    with np.errstate(divide="ignore"):
        return -np.where(y, np.log(p), np.log1p(-p))


def binary_brier(p: Float[Array, " n"], y: Bool[Array, " n"]) -> Float[Array, " n"]:
    """(p - y)^2."""
    return np.square(p.astype(np.float64) - y)


def binary_error(p: Float[Array, " n"], y: Bool[Array, " n"]) -> Float[Array, " n"]:
    """1 where p > 1/2 and not y, or p <= 1/2 and y."""
    wrong: Array = (p > 0.5) != y
    return wrong.astype(np.float64)


def of_label(probs: Float[Array, "n k"], labels: Int[Array, " n"]) -> Float[Array, " n"]:
    """What each row gives to its label."""
    return np.take_along_axis(probs, labels[:, None], 1)[:, 0]


def row_nll(probs: Float[Array, "n k"], labels: Int[Array, " n"]) -> Float[Array, " n"]:
    """-log p_y in float64, inf where p_y is 0."""
    with np.errstate(divide="ignore"):
        return -np.log(of_label(probs, labels).astype(np.float64).clip(min=0))


def row_brier(probs: Float[Array, "n k"], labels: Int[Array, " n"]) -> Float[Array, " n"]:
    """sum_k (p_k - 1[k = y])^2 in float64; nothing cancels: the others' squares are summed without the label's."""
    squares = np.square(probs, dtype=np.float64)
    np.put_along_axis(squares, labels[:, None], 0, 1)
    others: Array = squares @ np.ones(probs.shape[1])
    return np.square(1 - of_label(probs, labels).astype(np.float64)) + others


def in_top(probs: Float[Array, "n k"], labels: Int[Array, " n"], k: int | None = None) -> Bool[Array, " n"]:
    """The share of rows whose label is among the k most probable classes; of equal ones the first come first.

    `k` is 5 unless told, or all classes where there are fewer.
    """
    classes = probs.shape[1]
    k = min(5, classes) if k is None else whole_number(
        "k", k, least=1, most=classes, remedy=f"there are {classes} classes"
    )  # fmt: skip
    own = of_label(probs, labels)[:, None]
    earlier = np.arange(classes) < labels[:, None]
    return np.count_nonzero((probs > own) | ((probs == own) & earlier), 1) < k
