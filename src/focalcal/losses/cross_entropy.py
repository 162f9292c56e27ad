"""Cross-entropy: -log p_y."""

from __future__ import annotations

from torch import Tensor

from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import FocalFamilyLoss


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """-log p_y of each example. logits (N, K, d1, ...), target (N, d1, ...) or (N, K, d1, ...).

    `F.cross_entropy` with reduction="none", but with a gradient that stays exact when p_y is near one.
    """
    return focal_family(logits, target, Terms(), reduction="none")


class CrossEntropyLoss(FocalFamilyLoss):
    """-log p_y, the baseline every other objective is compared with."""
