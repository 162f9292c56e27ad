"""The multiclass Brier score as a loss: |p - e_y|^2."""

from __future__ import annotations

from torch import Tensor

from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import FocalFamilyLoss
from focalcal.losses.scale import Scale, check_scale
from focalcal.losses.settings import Setting


def brier(logits: Tensor, target: Tensor, *, scale: Scale = "paper") -> Tensor:
    """sum_k (p_k - 1[k = y])^2 of each example, summed over the classes. Strictly proper.

    logits (N, K, d1, ...), target indices or probabilities. Brier (1950). scale="matched" multiplies by K / 2.
    """
    terms = Terms(focal=0.0, lam=1.0, matched=check_scale("scale", scale) == "matched")
    return focal_family(logits, target, terms, reduction="none")


class BrierLoss(FocalFamilyLoss):
    """The Brier score, summed over classes, averaged over examples; times K / 2 with scale="matched", the limit of
    matched Focal Calibration Loss as lam grows."""

    scale = Setting[Scale](check_scale, default="paper")

    def __init__(
        self,
        *,
        scale: Scale = "paper",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, scale=scale)

    def _make_terms(self) -> Terms:
        return Terms(focal=0.0, lam=1.0, matched=self.scale == "matched")
