"""Dual Focal Loss: the weight also looks at the class just below the true one."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import CommonOptions, FocalFamilyLoss
from focalcal.losses.settings import Setting, not_negative


def dual_focal(logits: Tensor, labels: Tensor, *, gamma: float) -> Tensor:
    """-(1 - p_y + p_j)^gamma log p_y of each example, p_j = max {p_k : p_k < p_y}, 0 if there is none.

    For a misclassified example p_j is the best class ranked below the label, not the runner-up. The gradient flows
    through p_j, shared where several classes are p_j. Tao et al. (2023), "Dual focal loss for calibration".

    Args:
        logits: (N, K) or (N, K, d1, ...).
        labels: class indices, (N, d1, ...).
        gamma: the focusing parameter, >= 0.

    Returns:
        One value per example, (N, d1, ...).

    >>> import torch
    >>> dual_focal(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]), gamma=5.0)
    tensor([0.0573])
    """
    return focal_family(logits, labels, Terms(gamma=not_negative("gamma", gamma), rival=True), reduction="none")


class DualFocalLoss(FocalFamilyLoss):
    """Dual Focal Loss. Class indices only: the ranking needs one true class.

    Args:
        gamma: the focusing parameter, >= 0.
        weight, ignore_index, reduction: as in `nn.CrossEntropyLoss`.

    >>> import torch
    >>> DualFocalLoss(gamma=5)(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.0573)
    """

    gamma = Setting[float](not_negative)

    def __init__(self, gamma: float = 5.0, **common: Unpack[CommonOptions]) -> None:
        super().__init__(gamma=gamma, **common)

    def _make_terms(self) -> Terms:
        return super()._make_terms()._replace(rival=True)
