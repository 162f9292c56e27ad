"""MMCE: cross-entropy plus a kernel measure of the batch's calibration."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from focalcal.core.arrays import finite_at_least, holds_probabilities, labels_in_range, one_of
from focalcal.core.numerics import at_least_float32
from focalcal.losses.formula import Terms
from focalcal.losses.fused import check_lam, focal_family, traced
from focalcal.losses.module import ClassificationLoss, shown
from focalcal.losses.reduction import kept, without_ignored
from focalcal.losses.targets import refuse_probabilities

Variant = Literal["as_coded", "formula", "unweighted"]
VARIANTS = ("as_coded", "formula", "unweighted")


def mmce(
    logits: Tensor,
    labels: Tensor,
    *,
    variant: Variant = "as_coded",
    width: float = 0.4,
    ignore_index: int | None = None,
) -> Tensor:
    """The calibration measure of a batch: a scalar, not a value per example.

    With c the confidence, a = 1 for a right prediction (no gradient), m right and n wrong examples, and
    k_ij = exp(-|c_i - c_j| / width), the quadratic form Q(x) = sum_ij x_i x_j k_ij gives
        unweighted   Q((a - c) / N)
        formula      sqrt Q(x), x_i = (1 - c_i) / m for right and -c_i / n for wrong predictions
        as_coded     sqrt of the three parts of that form, each divided once more by m^2, n^2 or m n (+ 1e-5),
                     and 0 unless both kinds are present: what the published implementations train
    logits (N, K, d1, ...), labels class indices. Kumar et al. (2018), "Trainable calibration measures for
    neural networks from kernel mean embeddings". Takes O(N log N): the kernel is Laplacian in one dimension.
    """
    refuse_probabilities("MMCE", labels)
    holds_probabilities(logits, labels, None)
    one_of("variant", variant, VARIANTS)
    _check_width(width)
    labels = labels.long()
    if logits.dim() == 1:
        logits, labels = logits.unsqueeze(0), labels.unsqueeze(0)
    if logits.is_cpu and not traced():
        labels_in_range(labels, logits.shape[1], ignore_index)
    keep = kept(labels, ignore_index)
    logits, labels = without_ignored(logits, labels, keep)
    probs = torch.softmax(at_least_float32(logits), 1)
    confidence, predicted = probs.max(1)
    right = (predicted == labels).flatten().to(probs.dtype)
    counts = torch.ones_like(right) if keep is None else keep.flatten().to(probs.dtype)
    confidence = confidence.flatten()
    residual = (right - confidence) * counts
    if variant == "unweighted":
        return _gram(residual.unsqueeze(0), confidence, width)[0, 0] / counts.sum().clamp(min=1).square()
    m, n = (right * counts).sum(), ((1 - right) * counts).sum()
    parts = torch.stack([residual * right / m.clamp(min=1), residual * (1 - right) / n.clamp(min=1)])
    gram = _gram(parts, confidence, width)
    if variant == "formula":
        return _safe_sqrt(gram.sum())
    size = torch.stack([m, n])
    coded = gram / (size.unsqueeze(0) * size.unsqueeze(1) + 1e-5)
    return _safe_sqrt(coded.sum()) * ((m > 0) & (n > 0))


def _gram(values: Tensor, confidence: Tensor, width: float) -> Tensor:
    """V K V' for V (g, N) and K_ij = exp(-|c_i - c_j| / width), in O(N log N).

    With the confidences sorted, K_ij = exp(-c_i / width) exp(c_j / width) for j <= i: the lower triangle
    times a vector is a cumulative sum. In float64, where exp(1 / width) has room.
    """
    order = confidence.detach().argsort()
    ordered = values[:, order].double()
    # Centred, so that both factors stay within exp(+-1 / (2 width)).
    scaled = (confidence[order].double() - 0.5) / width
    below = (ordered * scaled.exp()).cumsum(1) * scaled.neg().exp()
    lower = below @ ordered.T  # sum over j <= i, the diagonal included once
    return (lower + lower.T - ordered @ ordered.T).to(values.dtype)


def _safe_sqrt(value: Tensor) -> Tensor:
    """sqrt(max(value, 0) + 1e-10): a finite slope at a perfectly calibrated batch."""
    return (value.clamp(min=0) + 1e-10).sqrt()


def _check_width(width: float) -> float:
    return finite_at_least("width", width, 0.005)


class MMCELoss(ClassificationLoss):
    """Cross-entropy plus lam times the MMCE of the batch. Class indices only; refuses reduction="none".

    `weight` applies to the cross-entropy. reduction="sum" multiplies the measure, which has no sum of its own,
    by the number of examples, so that it keeps its share.
    """

    def __init__(
        self,
        lam: float = 2.0,
        variant: Variant = "as_coded",
        width: float = 0.4,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        if reduction == "none":
            raise ValueError(
                "reduction of MMCE must be 'mean' or 'sum': the measure belongs to the batch, not to an example, "
                "got 'none'; use CrossEntropyLoss(reduction='none') and focalcal.losses.functional.mmce"
            )
        one_of("variant", variant, VARIANTS)
        self.lam = check_lam(lam)
        self.variant: Variant = variant
        self.width = _check_width(width)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        refuse_probabilities("MMCE", target)
        entropy = focal_family(logits, target, Terms(), self.weight, self.ignore_index, self.reduction)
        measure = mmce(logits, target, variant=self.variant, width=self.width, ignore_index=self.ignore_index)
        if self.reduction == "sum":
            measure = measure * (target.long() != self.ignore_index).sum()
        return entropy + check_lam(self.lam) * measure

    def extra_repr(self) -> str:
        """Lam, the variant and the kernel's width, then what is not default."""
        return shown(f"lam={self.lam:g}, variant={self.variant!r}, width={self.width:g}", super().extra_repr())
