"""Sigmoid losses for several labels per example: BCE, focal, Brier and Focal Calibration Loss.

Each label is a two-class problem with p = sigmoid(z); p_t is p for a positive label and 1 - p for a negative.
"""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from focalcal.losses.checks import dense, with_values
from focalcal.losses.formula import Terms, focal_term
from focalcal.losses.module import CommonOptions, TermsLoss
from focalcal.losses.numerics import at_least_float32
from focalcal.losses.scale import Scale, check_scale, matched_terms, terms_of
from focalcal.losses.settings import Setting, not_negative
from focalcal.losses.torch_state import traced


def multilabel_bce(logits: Tensor, target: Tensor) -> Tensor:
    """-log p_t of each label: binary cross-entropy.

    Args:
        logits: (N, L) or (N, L, d1, ...).
        target: of the shape of the logits, 0 or 1; a number between means the expectation over it.

    Returns:
        One value per label, of the shape of the logits.

    >>> multilabel_bce(torch.tensor([[1.0, -1.0]]), torch.tensor([[1, 1]]))
    tensor([[0.3133, 1.3133]])
    """
    return _each_label(logits, target, Terms(), None)


def multilabel_focal(logits: Tensor, target: Tensor, *, gamma: float, scale: Scale = "paper") -> Tensor:
    """-(1 - p_t)^gamma log p_t of each label. Lin et al. (2017).

    Args:
        logits: (N, L) or (N, L, d1, ...).
        target: of the shape of the logits, 0 or 1; a number between means the expectation over it.
        gamma: the focusing parameter, >= 0.
        scale: "paper", or "matched", which divides by the ratio of two classes.

    Returns:
        One value per label, of the shape of the logits.

    >>> multilabel_focal(torch.tensor([[1.0, -1.0]]), torch.tensor([[1, 1]]), gamma=2.0)
    tensor([[0.0227, 0.7019]])
    """
    return _each_label(logits, target, _terms(gamma=gamma, scale=scale), None)


def multilabel_brier(logits: Tensor, target: Tensor, *, scale: Scale = "paper") -> Tensor:
    """2 (1 - p_t)^2 of each label: the two-class Brier score summed over both classes, at either scale.

    Args:
        logits: (N, L) or (N, L, d1, ...).
        target: of the shape of the logits, 0 or 1; a number between means the expectation over it.
        scale: "paper", or "matched".

    Returns:
        One value per label, of the shape of the logits.

    >>> multilabel_brier(torch.tensor([[1.0, -1.0]]), torch.tensor([[1, 1]]))
    tensor([[0.1447, 1.0689]])
    """
    return _each_label(logits, target, _terms(focal=0.0, lam=1.0, scale=scale), None)


def multilabel_focal_calibration(
    logits: Tensor, target: Tensor, *, gamma: float, lam: float, scale: Scale = "paper"
) -> Tensor:
    """-(1 - p_t)^gamma log p_t + 2 lam (1 - p_t)^2 of each label: FCL with two classes.

    Args:
        logits: (N, L) or (N, L, d1, ...).
        target: of the shape of the logits, 0 or 1; a number between means the expectation over it.
        gamma: the focusing parameter, >= 0.
        lam: the weight of the Brier score, >= 0.
        scale: "paper", or "matched", which divides by `matched_scale(gamma, lam, 2)`, however many labels there are.

    Returns:
        One value per label, of the shape of the logits.

    >>> multilabel_focal_calibration(torch.tensor([[1.0, -1.0]]), torch.tensor([[1, 1]]), gamma=2.0, lam=2.0)
    tensor([[0.3120, 2.8397]])
    """
    return _each_label(logits, target, _terms(gamma=gamma, lam=lam, scale=scale), None)


def _terms(**settings: Any) -> Terms:
    """Each label is a problem with two classes, so its scale is known."""
    terms = terms_of(**settings)
    return matched_terms(terms, 2) if terms.matched else terms


def _one_sided(u: Tensor, terms: Terms) -> Tensor:
    """The loss at log odds u against the truth."""
    loss = terms.focal * focal_term(u, terms) if terms.focal else torch.zeros_like(u)
    return loss + 2 * terms.lam * u.sigmoid().square() if terms.lam else loss


def _each_label(logits: Tensor, target: Tensor, terms: Terms, ignore_index: int | None) -> Tensor:
    for name, value in (("logits", logits), ("target", target)):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}; use torch.as_tensor(...)")
        dense(name, value)
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating point, got {logits.dtype}; use logits.float()")
    if target.is_complex():
        raise TypeError(f"target must hold real numbers, got {target.dtype}; pass 0 and 1, or probabilities")
    if target.shape != logits.shape:
        raise ValueError(
            f"target must have the shape of the logits, {tuple(logits.shape)}, got {tuple(target.shape)}; "
            "each label needs a 0 or 1 (class indices are for the single-label losses)"
        )
    if target.device != logits.device:
        raise ValueError(f"target is on {target.device} and logits on {logits.device}; use target.to(logits.device)")
    logits = at_least_float32(logits)
    hard = not target.is_floating_point()
    target = target.long() if hard else target.to(logits.dtype)
    if logits.is_cpu and not traced():
        wrong = ~((target >= 0) & (target <= 1))
        if ignore_index is not None:
            wrong &= target != ignore_index
        if bool(wrong.any()):
            exempt = "" if ignore_index is None else f", or be ignore_index = {ignore_index}"
            raise ValueError(
                f"target must lie from 0 to 1{exempt}, got {target[wrong][0].item()!r}; pass 0 and 1, or probabilities"
            )
    if ignore_index is not None:
        logits = torch.where(target == ignore_index, 0.0, logits)  # no NaN of theirs reaches a gradient
    if hard:
        return _one_sided(torch.where(target == 1, -logits, logits), terms)
    # 0 * inf would be NaN
    positive = _one_sided(torch.where((target == 0) & (logits == -torch.inf), 0.0, -logits), terms)
    negative = _one_sided(torch.where((target == 1) & (logits == torch.inf), 0.0, logits), terms)
    return target * positive + (1 - target) * negative


class _MultilabelLoss(TermsLoss):
    """logits and target (N, L) or (N, L, d1, ...). The mean is over all entries, weighted if there is a weight.

    Targets equal to ignore_index (unknown labels) add nothing; `weight` has one number per label (dimension 1).
    """

    def _make_terms(self) -> Terms:
        terms = super()._make_terms()
        return matched_terms(terms, 2) if terms.matched else terms

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The reduced loss."""
        loss = _each_label(logits, target, self._terms, self.ignore_index)
        scale = torch.ones_like(loss)
        if self.weight is not None:
            if loss.dim() < 2 or loss.shape[1] != len(self.weight):
                raise ValueError(
                    f"weight must have one entry per label (dimension 1 of logits {tuple(logits.shape)}), "
                    f"got shape {tuple(self.weight.shape)}"
                )
            with_values(self.weight, logits)
            scale = scale * self.weight.to(loss).view(-1, *[1] * (loss.dim() - 2))
        keep = (target if target.is_floating_point() else target.long()) != self.ignore_index
        scale = torch.where(keep, scale, 0.0)
        scaled = scale * torch.where(keep, loss, 0.0)
        if self.reduction == "none":
            return scaled
        return scaled.sum() if self.reduction == "sum" else scaled.sum() / scale.sum()


class MultilabelBCELoss(_MultilabelLoss):
    """Binary cross-entropy on each label.

    Args:
        weight: one number per label.
        ignore_index: labels with this target add nothing.
        reduction: "mean" over all entries, "sum" or "none".

    >>> MultilabelBCELoss()(torch.tensor([[1.0, -1.0]]), torch.tensor([[1, 1]]))
    tensor(0.8133)
    """


class MultilabelBrierLoss(_MultilabelLoss):
    """The two-class Brier score, 2 (1 - p_t)^2, on each label.

    Args:
        scale: "paper", or "matched", which divides by the ratio of two classes.
        weight: one number per label.
        ignore_index: labels with this target add nothing.
        reduction: "mean" over all entries, "sum" or "none".

    >>> MultilabelBrierLoss()(torch.tensor([[1.0, -1.0]]), torch.tensor([[1, 1]]))
    tensor(0.6068)
    """

    scale = Setting[Scale](check_scale, default="paper")

    def __init__(self, *, scale: Scale = "paper", **common: Unpack[CommonOptions]) -> None:
        super().__init__(scale=scale, **common)

    def _make_terms(self) -> Terms:
        return _terms(focal=0.0, lam=1.0, scale=self.scale)


class MultilabelFocalLoss(_MultilabelLoss):
    """Focal loss on each label.

    Args:
        gamma: the focusing parameter, >= 0.
        scale: "paper", or "matched", which divides by the ratio of two classes.
        weight: one number per label.
        ignore_index: labels with this target add nothing.
        reduction: "mean" over all entries, "sum" or "none".

    >>> MultilabelFocalLoss(gamma=2)(torch.tensor([[1.0, -1.0]]), torch.tensor([[1, 1]]))
    tensor(0.3623)
    """

    gamma = Setting[float](not_negative)
    scale = Setting[Scale](check_scale, default="paper")

    def __init__(self, gamma: float = 2.0, *, scale: Scale = "paper", **common: Unpack[CommonOptions]) -> None:
        super().__init__(gamma=gamma, scale=scale, **common)


class MultilabelFocalCalibrationLoss(_MultilabelLoss):
    """Focal Calibration Loss on each label.

    Args:
        gamma: the focusing parameter, >= 0.
        lam: the weight of the Brier score, >= 0.
        scale: "paper", or "matched", which divides by the ratio of two classes.
        weight: one number per label.
        ignore_index: labels with this target add nothing.
        reduction: "mean" over all entries, "sum" or "none".

    >>> MultilabelFocalCalibrationLoss(gamma=2, lam=2)(torch.tensor([[1.0, -1.0]]), torch.tensor([[1, 1]]))
    tensor(1.5758)
    """

    gamma = Setting[float](not_negative)
    lam = Setting[float](not_negative)
    scale = Setting[Scale](check_scale, default="paper")

    def __init__(
        self, gamma: float = 2.0, lam: float = 2.0, *, scale: Scale = "paper", **common: Unpack[CommonOptions]
    ) -> None:
        super().__init__(gamma=gamma, lam=lam, scale=scale, **common)
