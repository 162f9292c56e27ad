"""Dual Focal Loss: the weight also looks at the class just below the true one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from focalcal.core.arrays import holds_probabilities, labels_in_range
from focalcal.core.numerics import against_label, at_least_float32
from focalcal.losses.fused import check_gamma, traced
from focalcal.losses.module import ClassificationLoss, shown
from focalcal.losses.reduction import kept, reduce, without_ignored
from focalcal.losses.targets import refuse_probabilities


def dual_focal(logits: Tensor, labels: Tensor, *, gamma: float) -> Tensor:
    """-(1 - p_y + p_j)^gamma log p_y of each example, p_j = max {p_k : p_k < p_y}, 0 if there is none.

    For a misclassified example p_j is the best class ranked below the label, not the runner-up. The gradient
    flows through p_j. logits (N, K, d1, ...), labels class indices. Tao et al. (2023), "Dual focal loss for
    calibration".
    """
    return _reduced(logits, labels, check_gamma(gamma), None, None, "none")


def _per_example(logits: Tensor, labels: Tensor, gamma: float) -> Tensor:
    logits = at_least_float32(logits)
    u, shares = against_label(logits, labels)
    hopeless, odds = u == torch.inf, u
    u = torch.where(hopeless, 0.0, u)  # as in focal_term: the limit at p_y = 0 is cross-entropy
    log_p = logsigmoid(-u)
    if gamma == 0:
        return torch.where(hopeless, odds, -log_p)
    own = logits.gather(1, labels.unsqueeze(1))
    below = torch.where(logits < own, shares, 0.0).amax(1)  # r_j = p_j / (1 - p_y)
    # 1 - p_y + p_j = (1 - p_y) (1 + r_j): a product, so that its logarithm is right when p_y is near one
    power = (gamma * (logsigmoid(u) + torch.log1p(below))).exp()
    return torch.where(hopeless, odds, -power * log_p)


def _reduced(
    logits: Tensor,
    labels: Tensor,
    gamma: float,
    weight: Tensor | None,
    ignore_index: int | None,
    reduction: str,
) -> Tensor:
    refuse_probabilities("Dual Focal", labels)
    holds_probabilities(logits, labels, weight)
    labels = labels.long()
    if logits.dim() == 1:
        loss = _reduced(logits.unsqueeze(0), labels.unsqueeze(0), gamma, weight, ignore_index, reduction)
        return loss.squeeze(0) if reduction == "none" else loss
    if logits.is_cpu and not traced():
        labels_in_range(labels, logits.shape[1], ignore_index)
    keep = kept(labels, ignore_index)
    logits, labels = without_ignored(logits, labels, keep)
    return reduce(_per_example(logits, labels, gamma), labels, weight, keep, reduction)


class DualFocalLoss(ClassificationLoss):
    """Dual Focal Loss. Class indices only: the ranking needs one true class."""

    def __init__(
        self,
        gamma: float = 5.0,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        self.gamma = check_gamma(gamma)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        return _reduced(logits, target, check_gamma(self.gamma), self.weight, self.ignore_index, self.reduction)

    def extra_repr(self) -> str:
        """Gamma, then what is not default."""
        return shown(f"gamma={self.gamma:g}", super().extra_repr())
