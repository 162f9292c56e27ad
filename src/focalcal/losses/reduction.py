"""From the loss of each example to what `CrossEntropyLoss` would return: weight, ignore_index, reduction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from focalcal.losses.checks import labels_in_range

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def kept(labels: Int[Tensor, "n *d"], ignore_index: int | None) -> Bool[Tensor, "n *d"] | None:
    """True where the example counts; None if no label is exempt."""
    return None if ignore_index is None else labels != ignore_index


def kept_if_any(labels: Tensor, classes: int, ignore_index: int | None) -> Tensor | None:
    """`kept`, but None if no label is ignored; refuses labels out of range. Reads the labels."""
    if labels.numel():
        least, most = labels.aminmax()
        exempt = -1 if ignore_index is None else ignore_index
        if least.item() >= 0 and most.item() < classes and not 0 <= exempt < classes:
            return None
        labels_in_range(labels, classes, ignore_index)
    return kept(labels, ignore_index)


def without_ignored(
    logits: Float[Tensor, "n k *d"], labels: Int[Tensor, "n *d"], keep: Bool[Tensor, "n *d"] | None
) -> tuple[Float[Tensor, "n k *d"], Int[Tensor, "n *d"]]:
    """Zeros in place of the ignored examples' logits and labels: no NaN of theirs reaches a gradient."""
    if keep is None:
        return logits, labels
    return torch.where(keep.unsqueeze(1), logits, 0.0), torch.where(keep, labels, 0)


def reduce(
    loss: Float[Tensor, "n *d"],
    labels: Int[Tensor, "n *d"],
    weight: Float[Tensor, " k"] | None,
    keep: Bool[Tensor, "n *d"] | None,
    reduction: str,
) -> Tensor:
    """w_y loss: each ("none"), their sum, or their sum over the sum of the weights ("mean")."""
    scale = torch.ones_like(loss) if weight is None else weight.to(loss)[labels]
    if keep is not None:
        scale = torch.where(keep, scale, 0.0)
        loss = torch.where(keep, loss, 0.0)
    scaled = scale * loss
    if reduction == "none":
        return scaled
    return scaled.sum() if reduction == "sum" else scaled.sum() / scale.sum()


def reduce_expected(loss: Float[Tensor, "n *d"], reduction: str) -> Tensor:
    """Class probabilities carry their weights inside; their mean is over examples."""
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / loss.numel() if loss.numel() else loss.sum() / 0
