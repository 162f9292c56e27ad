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

    g carries no gradient. The defaults are FLSD-53 of Mukhoti et al. (2020), "Calibrating deep neural networks using
    focal loss".

    Args:
        logits: (N, K) or (N, K, d1, ...).
        labels: class indices, (N, d1, ...).
        gamma_hard: the gamma of examples below the threshold, >= 0.
        gamma_easy: that of the others, >= 0.
        threshold: of p_y, in [0, 1].

    Returns:
        One value per example, (N, d1, ...).

    >>> import torch
    >>> flsd(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor([0.0420])
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
    """Sample-dependent focal loss, FLSD-53 by default. Class indices only: gamma needs one true class.

    Args:
        gamma_hard: the gamma of examples with p_y below the threshold, >= 0.
        gamma_easy: that of the others, >= 0.
        threshold: of p_y, in [0, 1].
        weight, ignore_index, reduction: as in `nn.CrossEntropyLoss`.

    >>> import torch
    >>> FLSDLoss()(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))  # p_y is 0.58: gamma is 3
    tensor(0.0420)
    """

    gamma_hard = Setting[float](not_negative)
    gamma_easy = Setting[float](not_negative)
    threshold = Setting[float](probability)

    def __init__(
        self, gamma_hard: float = 5.0, gamma_easy: float = 3.0, threshold: float = 0.2, **common: Unpack[CommonOptions]
    ) -> None:
        super().__init__(gamma_hard=gamma_hard, gamma_easy=gamma_easy, threshold=threshold, **common)

    def _make_terms(self) -> Terms:
        return _terms(self.gamma_hard, self.gamma_easy, self.threshold)
