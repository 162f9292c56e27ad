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

    Brier (1950).

    Args:
        logits: (N, K) or (N, K, d1, ...).
        target: class indices (N, d1, ...) or probabilities of the shape of the logits.
        scale: "paper", or "matched", which multiplies by sqrt(3 (K - 1) / 2).
        label_smoothing: the share of the loss that is its mean over all K labels.

    Returns:
        One value per example, (N, d1, ...).

    >>> import torch
    >>> brier(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor([0.2695])
    """
    terms = terms_of(focal=0.0, lam=1.0, scale=scale, label_smoothing=label_smoothing)
    return focal_family(logits, target, terms, reduction="none")


class BrierLoss(FocalFamilyLoss):
    """The Brier score, summed over classes, averaged over examples; times sqrt(3 (K - 1) / 2) with scale="matched", the
    limit of matched Focal Calibration Loss as lam grows.

    Args:
        scale: "paper", or "matched" to the learning rate of cross-entropy.
        label_smoothing: the share of each label that is spread over all classes.
        weight, ignore_index, reduction: as in `nn.CrossEntropyLoss`.

    >>> import torch
    >>> BrierLoss()(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.2695)
    """

    scale = Setting[Scale](check_scale, default="paper")
    label_smoothing = Setting[float](probability, default=0.0)

    def __init__(
        self, *, scale: Scale = "paper", label_smoothing: float = 0.0, **common: Unpack[CommonOptions]
    ) -> None:
        super().__init__(scale=scale, label_smoothing=label_smoothing, **common)

    def _make_terms(self) -> Terms:
        return super()._make_terms()._replace(focal=0.0, lam=1.0)
