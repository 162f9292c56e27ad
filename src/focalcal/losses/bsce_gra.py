"""BSCE-GRA: cross-entropy whose gradient is weighted by a power of the example's Brier score."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from focalcal.losses.checks import holds_probabilities
from focalcal.losses.engines import focal_family
from focalcal.losses.formula import Terms, anchor_term
from focalcal.losses.module import ClassificationLoss, CommonOptions
from focalcal.losses.numerics import at_least_float32
from focalcal.losses.reduction import kept, reduce, without_ignored
from focalcal.losses.settings import Setting, not_negative
from focalcal.losses.targets import refuse_probabilities


def bsce_gra(logits: Tensor, labels: Tensor, *, gamma: float = 4.0) -> Tensor:
    """-u log p_y of each example, u = |p - e_y|^gamma, which carries no gradient: d/dz is u (p - e_y).

    |p - e_y|^2 is the Brier score, so that gamma = 2 weighs by it; the authors' scripts have gamma = 4. gamma = 0 is
    cross-entropy. Lin et al. (2025), "Uncertainty weighted gradients for model calibration". No loss has this gradient:
    a network that fits a posterior eta comes to rest where p_k is proportional to eta_k |p - e_k|^gamma, less certain
    than eta.

    Args:
        logits: (N, K) or (N, K, d1, ...).
        labels: class indices, (N, d1, ...).
        gamma: the power, >= 0.

    Returns:
        One value per example, (N, d1, ...).

    >>> round(float(bsce_gra(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), gamma=2.0)), 4)
    0.0453
    """
    return _each(logits, labels, not_negative("gamma", gamma), None)


def _each(logits: Tensor, labels: Tensor, gamma: float, ignore_index: int | None) -> Tensor:
    """The loss of each example, 0 of those to ignore."""
    refuse_probabilities("BSCE-GRA", labels)
    entropy = focal_family(logits, labels, Terms(), None, ignore_index, "none")
    if logits.dim() == 1:
        logits, labels = logits.unsqueeze(0), labels.unsqueeze(0)
    with torch.no_grad():
        kept_logits, kept_labels = without_ignored(logits.detach(), labels.long(), kept(labels, ignore_index))
        weight = anchor_term(at_least_float32(kept_logits), kept_labels).pow(gamma / 2)
    return weight.reshape(entropy.shape) * entropy


class BSCEGRALoss(ClassificationLoss):
    """Cross-entropy with gradients weighted by |p - e_y|^gamma. Class indices only: the weight needs one true class.

    Args:
        gamma: >= 0; 0 is cross-entropy.
        weight, ignore_index, reduction: as in `nn.CrossEntropyLoss`; "mean" divides by the class weights alone.

    >>> BSCEGRALoss(gamma=4)(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.0401)
    """

    gamma = Setting[float](not_negative)

    def __init__(self, gamma: float = 4.0, **common: Unpack[CommonOptions]) -> None:
        super().__init__(gamma=gamma, **common)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        holds_probabilities(logits, target, self.weight)
        each = _each(logits, target, self.gamma, self.ignore_index)
        keep = target != self.ignore_index
        return reduce(each, torch.where(keep, target, 0).long(), self.weight, keep, self.reduction)
