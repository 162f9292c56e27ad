"""Dual Focal Loss: the weight also looks at the class just below the true one."""

from __future__ import annotations

from torch import Tensor

from focalcal.losses.engines import check_gamma, focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import CheckedTerm, FocalFamilyLoss, shown
from focalcal.losses.targets import refuse_probabilities


def dual_focal(logits: Tensor, labels: Tensor, *, gamma: float) -> Tensor:
    """-(1 - p_y + p_j)^gamma log p_y of each example, p_j = max {p_k : p_k < p_y}, 0 if there is none.

    For a misclassified example p_j is the best class ranked below the label, not the runner-up. The gradient
    flows through p_j, shared where several classes are p_j. logits (N, K, d1, ...), labels class indices.
    Tao et al. (2023), "Dual focal loss for calibration".
    """
    refuse_probabilities("Dual Focal", labels)
    return focal_family(logits, labels, Terms(gamma=check_gamma(gamma), rival=True), reduction="none")


class DualFocalLoss(FocalFamilyLoss):
    """Dual Focal Loss. Class indices only: the ranking needs one true class."""

    _terms = Terms(rival=True)

    gamma = CheckedTerm("gamma", check_gamma)

    def __init__(
        self,
        gamma: float = 5.0,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        self.gamma = gamma

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        refuse_probabilities("Dual Focal", target)
        return super().forward(logits, target)

    def extra_repr(self) -> str:
        """Gamma, then what is not default."""
        return shown(f"gamma={self.gamma:g}", super().extra_repr())
