"""FLSD-53: focal loss whose gamma depends on the example's own p_y."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import CommonOptions, FocalFamilyLoss
from focalcal.losses.settings import Setting, not_negative, probability


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
    terms = _terms(
        not_negative("gamma_hard", gamma_hard),
        not_negative("gamma_easy", gamma_easy),
        probability("threshold", threshold),
    )
    return focal_family(logits, labels, terms, reduction="none")


def _terms(gamma_hard: float, gamma_easy: float, threshold: float) -> Terms:
    gammas = torch.tensor([gamma_hard, gamma_easy], dtype=torch.float32, device="cpu")
    return Terms(edges=torch.tensor([0.0, threshold, 1.0], dtype=torch.float32, device="cpu"), gammas=gammas)


class FLSDLoss(FocalFamilyLoss):
    """Sample-dependent focal loss, FLSD-53 by default. Class indices only: gamma needs one true class."""

    gamma_hard = Setting[float](not_negative)
    gamma_easy = Setting[float](not_negative)
    threshold = Setting[float](probability)

    def __init__(
        self, gamma_hard: float = 5.0, gamma_easy: float = 3.0, threshold: float = 0.2, **common: Unpack[CommonOptions]
    ) -> None:
        super().__init__(gamma_hard=gamma_hard, gamma_easy=gamma_easy, threshold=threshold, **common)

    def _make_terms(self) -> Terms:
        return _terms(self.gamma_hard, self.gamma_easy, self.threshold)
