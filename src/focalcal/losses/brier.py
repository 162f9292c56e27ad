"""The multiclass Brier score as a loss: |p - e_y|^2."""

from __future__ import annotations

from torch import Tensor

from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms
from focalcal.losses.module import FocalFamilyLoss


def brier(logits: Tensor, target: Tensor) -> Tensor:
    """sum_k (p_k - 1[k = y])^2 of each example, summed over the classes. Strictly proper.

    logits (N, K, d1, ...), target indices or probabilities. Brier (1950).
    """
    return focal_family(logits, target, Terms(focal=0.0, lam=1.0), reduction="none")


class BrierLoss(FocalFamilyLoss):
    """The Brier score, summed over classes, averaged over examples."""

    def _make_terms(self) -> Terms:
        return Terms(focal=0.0, lam=1.0)
