"""FLSD-53: focal loss whose gamma depends on the example's own p_y."""

from __future__ import annotations

import torch
from torch import Tensor

from focalcal.core.arrays import finite_at_least
from focalcal.losses.engines import check_gamma, focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import FocalFamilyLoss, shown
from focalcal.losses.targets import refuse_probabilities


def _terms(gamma_hard: float, gamma_easy: float, threshold: float) -> Terms:
    if finite_at_least("threshold", threshold, 0.0) > 1.0:
        raise ValueError(f"threshold must be a probability, from 0 to 1, got {threshold!r}")
    gammas = torch.tensor([check_gamma(gamma_hard), check_gamma(gamma_easy)], dtype=torch.float32, device="cpu")
    return Terms(edges=torch.tensor([0.0, threshold, 1.0], dtype=torch.float32, device="cpu"), gammas=gammas)


def flsd(
    logits: Tensor,
    labels: Tensor,
    *,
    gamma_hard: float = 5.0,
    gamma_easy: float = 3.0,
    threshold: float = 0.2,
) -> Tensor:
    """-(1 - p_y)^g log p_y of each example, g = gamma_hard where p_y < threshold, else gamma_easy.

    g carries no gradient. logits (N, K, d1, ...), labels class indices. The defaults are FLSD-53 of
    Mukhoti et al. (2020), "Calibrating deep neural networks using focal loss".
    """
    refuse_probabilities("FLSD", labels)
    return focal_family(logits, labels, _terms(gamma_hard, gamma_easy, threshold), reduction="none")


class FLSDLoss(FocalFamilyLoss):
    """Sample-dependent focal loss, FLSD-53 by default. Class indices only: gamma needs one true class."""

    def __init__(
        self,
        gamma_hard: float = 5.0,
        gamma_easy: float = 3.0,
        threshold: float = 0.2,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        self._terms = _terms(gamma_hard, gamma_easy, threshold)
        self._settings = (float(gamma_hard), float(gamma_easy), float(threshold))

    @property
    def gamma_hard(self) -> float:
        """The gamma of hard examples."""
        return self._settings[0]

    @property
    def gamma_easy(self) -> float:
        """The gamma of the others."""
        return self._settings[1]

    @property
    def threshold(self) -> float:
        """Below this p_y an example is hard."""
        return self._settings[2]

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        refuse_probabilities("FLSD", target)
        return super().forward(logits, target)

    def extra_repr(self) -> str:
        """The two gammas and the threshold, then what is not default."""
        parts = f"gamma_hard={self.gamma_hard:g}, gamma_easy={self.gamma_easy:g}, threshold={self.threshold:g}"
        return shown(parts, super().extra_repr())
