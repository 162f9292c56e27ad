"""Focal Calibration Loss: focal loss plus lam times the multiclass Brier score."""

from __future__ import annotations

from torch import Tensor

from focalcal.losses.engines import check_gamma, check_lam, focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import CheckedTerm, FocalFamilyLoss, shown


def focal_calibration(logits: Tensor, target: Tensor, *, gamma: float, lam: float) -> Tensor:
    """-(1 - p_y)^gamma log p_y + lam |p - e_y|^2 of each example.

    logits (N, K, d1, ...), target indices or probabilities. The anchor is the squared norm, as in eq. (1)
    of Liang et al., "Focal Calibration Loss: controlling posterior distortion in deep neural classifiers".
    """
    return focal_family(logits, target, Terms(1.0, check_gamma(gamma), check_lam(lam)), reduction="none")


class FocalCalibrationLoss(FocalFamilyLoss):
    """Focal loss with a strictly proper anchor.

    The Bayes decision is kept for every gamma and lam. For gamma > 0 the optimal probabilities are displaced
    from the posterior; the displacement is at most sqrt(log(K) / lam) and falls as 1 / lam. gamma = lam = 0
    is cross-entropy, lam = 0 focal loss.

    >>> import torch
    >>> loss = FocalCalibrationLoss(gamma=3, lam=1)
    >>> round(loss(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0])).item(), 6)
    0.070378
    """

    gamma = CheckedTerm("gamma", check_gamma)
    lam = CheckedTerm("lam", check_lam)

    def __init__(
        self,
        gamma: float = 3.0,
        lam: float = 1.0,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        self.gamma, self.lam = gamma, lam

    def extra_repr(self) -> str:
        """Gamma and lam, then what is not default."""
        return shown(f"gamma={self.gamma:g}, lam={self.lam:g}", super().extra_repr())
