"""Focal Calibration Loss: focal loss plus lam times the multiclass Brier score."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from focalcal.losses.engines import focal_family
from focalcal.losses.module import CommonOptions, FocalFamilyLoss
from focalcal.losses.scale import Scale, check_scale, terms_of
from focalcal.losses.settings import Setting, not_negative, probability


def focal_calibration(
    logits: Tensor,
    target: Tensor,
    *,
    gamma: float,
    lam: float,
    scale: Scale = "paper",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-(1 - p_y)^gamma log p_y + lam |p - e_y|^2 of each example.

    The anchor is the squared norm, as in eq. (1) of Liang et al., "Focal Calibration Loss: controlling posterior
    distortion in deep neural classifiers".

    Args:
        logits: (N, K) or (N, K, d1, ...).
        target: class indices (N, d1, ...) or probabilities of the shape of the logits.
        gamma: the focusing parameter, >= 0.
        lam: the weight of the Brier score, >= 0.
        scale: "paper", or "matched", which divides by `matched_scale(gamma, lam, K)`.
        label_smoothing: e, for (1 - e) times the loss plus e times its mean over all K labels.

    Returns:
        One value per example, (N, d1, ...).

    >>> import torch
    >>> focal_calibration(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]), gamma=2.0, lam=1.0)
    tensor([0.3686])
    """
    terms = terms_of(gamma=gamma, lam=lam, scale=scale, label_smoothing=label_smoothing)
    return focal_family(logits, target, terms, reduction="none")


class FocalCalibrationLoss(FocalFamilyLoss):
    """Focal loss with a strictly proper anchor.

    The Bayes decision is kept for every gamma and lam. For gamma > 0 the optimal probabilities are displaced
    from the posterior; the displacement is at most sqrt(log(K) / lam) and falls as 1 / lam. gamma = lam = 0
    is cross-entropy, lam = 0 focal loss.

    Args:
        gamma: the focusing parameter, >= 0.
        lam: the weight of the Brier score, >= 0.
        scale: "paper", the sum as the paper writes it, whose gradient grows with lam; or "matched", the same divided by
            `matched_scale(gamma, lam, K)`, so that a learning rate of cross-entropy carries over. The minimiser is the
            same, and under Adam so is training.
        label_smoothing, weight, ignore_index, reduction: as in `nn.CrossEntropyLoss`.

    >>> import torch
    >>> loss = FocalCalibrationLoss(gamma=3, lam=1)
    >>> round(loss(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0])).item(), 6)
    0.070378
    """

    gamma = Setting[float](not_negative)
    lam = Setting[float](not_negative)
    scale = Setting[Scale](check_scale, default="paper")
    label_smoothing = Setting[float](probability, default=0.0)

    def __init__(
        self,
        gamma: float = 3.0,
        lam: float = 1.0,
        *,
        scale: Scale = "paper",
        label_smoothing: float = 0.0,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(gamma=gamma, lam=lam, scale=scale, label_smoothing=label_smoothing, **common)
