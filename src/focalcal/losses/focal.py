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
    """-(1 - p_y)^gamma log p_y of each example. logits (N, K, d1, ...), target indices or probabilities.

    The weight (1 - p_y)^gamma is differentiated, not detached. Lin et al. (2017), "Focal loss for dense
    object detection"; as a calibration objective Mukhoti et al. (2020). `scale` and
    `label_smoothing` as in `focal_calibration`.
    """
    terms = terms_of(gamma=gamma, scale=scale, label_smoothing=label_smoothing)
    return focal_family(logits, target, terms, reduction="none")


class FocalLoss(FocalFamilyLoss):
    """Focal loss. Keeps the Bayes decision, but for gamma > 0 its optimal probabilities are displaced from the
    posterior, too flat where one class is likely."""

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
