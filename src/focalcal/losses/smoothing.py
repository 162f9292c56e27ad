"""The share of label smoothing that does not depend on the label, as torch operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from focalcal.losses.formula import Terms, per_example_expected
from focalcal.losses.numerics import at_least_float32
from focalcal.losses.reduction import kept, without_ignored

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def mean_over_classes(
    logits: Float[Tensor, "n k *d"],
    labels: Int[Tensor, "n *d"],
    terms: Terms,
    weight: Float[Tensor, " k"] | None,
    ignore_index: int | None,
    reduction: str,
) -> Tensor:
    """sum_k w_k loss(., k) / K: each, their sum, or their sum over that of the labels' weights."""
    keep = kept(labels, ignore_index)
    logits, labels = without_ignored(logits, labels, keep)
    even = torch.full_like(logits, 1 / logits.shape[1], dtype=at_least_float32(logits).dtype)
    each = per_example_expected(logits, even, weight, terms)
    count = torch.ones_like(each) if weight is None else weight.to(each)[labels]
    if keep is not None:
        each, count = torch.where(keep, each, 0.0), torch.where(keep, count, 0.0)
    if reduction == "none":
        return each
    return each.sum() if reduction == "sum" else each.sum() / count.sum()


def smooth_cross_entropy(
    logits: Float[Tensor, "n k *d"],
    labels: Int[Tensor, "n *d"],
    terms: Terms,
    weight: Float[Tensor, " k"] | None,
    ignore_index: int | None,
    reduction: str,
) -> Tensor:
    """torch's own, whose gradient is quick on every device; ignored rows are emptied, so that no NaN is in it."""
    logits, _ = without_ignored(at_least_float32(logits), labels, kept(labels, ignore_index))
    return F.cross_entropy(
        logits,
        labels,
        None if weight is None else weight.to(logits),
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=terms.label_smoothing,
    )
