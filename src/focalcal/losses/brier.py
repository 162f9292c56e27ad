"""The multiclass Brier score as a loss: |p - e_y|^2."""

from __future__ import annotations

from typing import Unpack

from torch import Tensor

from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import CommonOptions, FocalFamilyLoss
from focalcal.losses.scale import Scale, check_scale, terms_of
from focalcal.losses.settings import Setting, probability


def brier(logits: Tensor, target: Tensor, *, scale: Scale = "paper", label_smoothing: float = 0.0) -> Tensor:
    """sum_k (p_k - 1[k = y])^2 of each example, summed over the classes. Strictly proper.

    logits (N, K, d1, ...), target indices or probabilities. Brier (1950). scale="matched" multiplies by
    sqrt(3 (K - 1) / 2); `label_smoothing` as in `focal_calibration`.
    """
    terms = terms_of(focal=0.0, lam=1.0, scale=scale, label_smoothing=label_smoothing)
    return focal_family(logits, target, terms, reduction="none")


class BrierLoss(FocalFamilyLoss):
    """The Brier score, summed over classes, averaged over examples; times sqrt(3 (K - 1) / 2) with scale="matched", the
    limit of matched Focal Calibration Loss as lam grows."""

    scale = Setting[Scale](check_scale, default="paper")
    label_smoothing = Setting[float](probability, default=0.0)

    def __init__(
        self, *, scale: Scale = "paper", label_smoothing: float = 0.0, **common: Unpack[CommonOptions]
    ) -> None:
        super().__init__(scale=scale, label_smoothing=label_smoothing, **common)

    def _make_terms(self) -> Terms:
        return super()._make_terms()._replace(focal=0.0, lam=1.0)
