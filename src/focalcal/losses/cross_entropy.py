"""Cross-entropy: -log p_y."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from focalcal.losses.engines import focal_family
from focalcal.losses.module import CommonOptions, FocalFamilyLoss
from focalcal.losses.scale import terms_of
from focalcal.losses.settings import Setting, probability


def cross_entropy(logits: Tensor, target: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
    """-log p_y of each example.

    `F.cross_entropy` with reduction="none", but with a gradient that stays exact when p_y is near one.

    Args:
        logits: (N, K) or (N, K, d1, ...).
        target: class indices (N, d1, ...) or probabilities of the shape of the logits.
        label_smoothing: the share of the loss that is its mean over all K labels.

    Returns:
        One value per example, (N, d1, ...).

    >>> import torch
    >>> cross_entropy(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor([0.5514])
    """
    return focal_family(logits, target, terms_of(label_smoothing=label_smoothing), reduction="none")


class CrossEntropyLoss(FocalFamilyLoss):
    """-log p_y, the baseline every other objective is compared with: `nn.CrossEntropyLoss`, keywords and all.

    Args:
        label_smoothing, weight, ignore_index, reduction: as in `nn.CrossEntropyLoss`.

    >>> import torch
    >>> CrossEntropyLoss()(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.5514)
    """

    label_smoothing = Setting[float](probability, default=0.0)

    def __init__(self, *, label_smoothing: float = 0.0, **common: Unpack[CommonOptions]) -> None:
        super().__init__(label_smoothing=label_smoothing, **common)
