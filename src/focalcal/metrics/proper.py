"""Proper scores, and the shares of rows they are read beside, as values of single rows.

The pass over an array adds up the scores of one label per row itself; what is here is the value of one sigmoid output
p against its label y, what needs a row's probabilities of all classes, and a row's scores for who compares rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from focalcal.core.checks import whole_number

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def binary_nll(p: Float[Tensor, " n"], y: Bool[Tensor, " n"]) -> Float[Tensor, " n"]:
    """-log p where y, else -log(1 - p)."""
    p = p.double().clamp(0, 1)
    return -torch.where(y, p.log(), torch.log1p(-p))


def binary_brier(p: Float[Tensor, " n"], y: Bool[Tensor, " n"]) -> Float[Tensor, " n"]:
    """(p - y)^2."""
    return (p.double() - y.double()).square()


def binary_error(p: Float[Tensor, " n"], y: Bool[Tensor, " n"]) -> Float[Tensor, " n"]:
    """1 where p > 1/2 and not y, or p <= 1/2 and y."""
    return ((p > 0.5) != y).double()


def row_nll(probs: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """-log p_y in float64, inf where p_y is 0."""
    return -probs.gather(1, labels.unsqueeze(1)).squeeze(1).double().clamp(min=0).log()


def row_brier(probs: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """sum_k (p_k - 1[k = y])^2 in float64; nothing cancels: the others' squares are summed without the label's."""
    own = probs.gather(1, labels.unsqueeze(1)).squeeze(1)
    squares = (probs * probs).scatter_(1, labels.unsqueeze(1), 0).double()
    # Added up in float64: in float32 a row's sum would depend on how many rows are multiplied at once.
    return (1 - own.double()).square_() + torch.mv(squares, squares.new_ones(squares.shape[1]))


def in_top(probs: Float[Tensor, "n k"], labels: Int[Tensor, " n"], k: int | None = None) -> Bool[Tensor, " n"]:
    """The share of rows whose label is among the k most probable classes; of equal ones the first come first.

    `k` is 5 unless told, or all classes where there are fewer.
    """
    classes = probs.shape[1]
    k = min(5, classes) if k is None else whole_number(
        "k", k, least=1, most=classes, remedy=f"there are {classes} classes"
    )  # fmt: skip
    own = probs.gather(1, labels.unsqueeze(1))
    earlier = torch.arange(classes, device=probs.device) < labels.unsqueeze(1)
    return ((probs > own) | ((probs == own) & earlier)).sum(1) < k
