"""Focal loss: -(1 - p_y)^gamma log p_y."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from focalcal.losses.engines import focal_family
from focalcal.losses.module import CommonOptions, FocalFamilyLoss
from focalcal.losses.scale import Scale, check_scale, terms_of
from focalcal.losses.settings import Setting, not_negative, probability


def focal(
    logits: Tensor, target: Tensor, *, gamma: float, scale: Scale = "paper", label_smoothing: float = 0.0
) -> Tensor:
    """-(1 - p_y)^gamma log p_y of each example.

    The weight (1 - p_y)^gamma is differentiated, not detached. Lin et al. (2017), "Focal loss for dense object
    detection"; as a calibration objective Mukhoti et al. (2020).

    Args:
        logits: (N, K) or (N, K, d1, ...).
        target: class indices (N, d1, ...) or probabilities of the shape of the logits.
        gamma: the focusing parameter, >= 0.
        scale: "paper", or "matched" to the learning rate of cross-entropy.
        label_smoothing: the share of the loss that is its mean over all K labels.

    Returns:
        One value per example, (N, d1, ...).

    >>> import torch
    >>> focal(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]), gamma=2.0)
    tensor([0.0991])
    """
    terms = terms_of(gamma=gamma, scale=scale, label_smoothing=label_smoothing)
    return focal_family(logits, target, terms, reduction="none")


class FocalLoss(FocalFamilyLoss):
    """Focal loss. Keeps the Bayes decision, but for gamma > 0 its optimal probabilities are displaced from the
    posterior, too flat where one class is likely.

    Args:
        gamma: the focusing parameter, >= 0.
        scale: "paper", or "matched" to the learning rate of cross-entropy.
        label_smoothing, weight, ignore_index, reduction: as in `nn.CrossEntropyLoss`.

    >>> import torch
    >>> FocalLoss(gamma=3)(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.0420)
    """

    gamma = Setting[float](not_negative)
    scale = Setting[Scale](check_scale, default="paper")
    label_smoothing = Setting[float](probability, default=0.0)

    def __init__(
        self,
        gamma: float = 3.0,
        *,
        scale: Scale = "paper",
        label_smoothing: float = 0.0,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(gamma=gamma, scale=scale, label_smoothing=label_smoothing, **common)
