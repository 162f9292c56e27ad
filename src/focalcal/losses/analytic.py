"""The focal family's loss and gradient in few torch operations: what runs where the native kernel cannot
(a GPU, float16, no compiler). The formulas are those of _native/vector.h; docs/math/fused_gradient.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from focalcal.core.numerics import at_least_float32
from focalcal.losses.formula import Terms, step_gamma
from focalcal.losses.reduction import kept

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def loss_and_gradient(
    logits: Float[Tensor, "n k *d"],
    labels: Int[Tensor, "n *d"],
    weight: Tensor | None,
    terms: Terms,
    ignore_index: int | None,
    reduction: str,
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """The reduced loss (each example's for "none") and the gradient of its sum in the logits."""
    keep = kept(labels, ignore_index)
    index = (labels if keep is None else torch.where(keep, labels, 0)).unsqueeze(1)
    log_p = torch.log_softmax(at_least_float32(logits), 1)
    log_own = log_p.gather(1, index)
    own = log_own.exp()
    others = log_p.exp_().scatter_(1, index, 0.0)
    q = others.sum(1, keepdim=True)
    log_own = torch.where(q < 0.5, torch.log1p(-q), log_own)
    power, slope = _focal_power(q, own, log_own, terms)
    squares = anchor = None
    loss = -terms.focal * power * log_own if terms.focal else torch.zeros_like(q)
    if terms.lam:
        squares = (
            torch.linalg.vector_norm(others, dim=1, keepdim=True).square_()
            if others.dim() == 2
            else others.square().sum(1, keepdim=True)
        )
        anchor = q * q + squares
        loss = loss.add_(anchor, alpha=terms.lam)
    scale = None if weight is None else weight.to(q)[index]
    if scale is not None:
        loss = scale * loss
    if keep is not None:
        ignored = ~keep.unsqueeze(1)
        loss = loss.masked_fill_(ignored, 0.0)
        scale = (torch.ones_like(q) if scale is None else scale).masked_fill(ignored, 0.0)
    total: Tensor | float = 1.0
    if reduction == "mean":
        total = q.numel() if scale is None else scale.sum()
        value = loss.sum() / total
    else:
        value = loss.sum() if reduction == "sum" else loss.squeeze(1)
    if not gradient or not q.numel():
        return value, torch.zeros_like(logits) if gradient else None
    linear = slope * -terms.focal
    at_label = slope * q * terms.focal
    if squares is not None and anchor is not None:
        linear = linear - 2 * terms.lam * (squares - own * q)
        at_label = at_label - 2 * terms.lam * own * anchor
    each = 1 / total if scale is None else scale / total
    linear, at_label = linear * each, at_label * each
    if squares is None:
        grad = others.mul_(linear)
    elif isinstance(each, Tensor):
        grad = torch.addcmul(linear, others, 2 * terms.lam * each).mul_(others)
    else:
        grad = torch.add(linear, others, alpha=2 * terms.lam * each).mul_(others)
    grad.scatter_(1, index, at_label)
    if keep is not None:
        grad.masked_fill_(~keep.unsqueeze(1), 0.0)
    return value, grad.to(logits.dtype)


def _focal_power(q: Tensor, own: Tensor, log_own: Tensor, terms: Terms) -> tuple[Tensor, Tensor]:
    """base^gamma and A = base^gamma (gamma p_y ratio - 1), with the limits at q = 0 and at p_y = 0."""
    if terms.steps is None:
        if terms.gamma == 0 or terms.focal == 0:
            return torch.ones_like(q), torch.full_like(q, -1.0)
        power = q.pow(terms.gamma)
        ratio = torch.where(q == 0, -1.0, log_own / q)
        pull = torch.where(own == 0, 0.0, own * ratio).mul_(terms.gamma)
        return power, power * (pull - 1)
    gamma = step_gamma(terms.steps, own)
    inverse = gamma < 0
    base = torch.where(inverse, 1 + own, q)
    power = base.pow(gamma.abs())
    ratio = torch.where(inverse, -log_own / base, torch.where(q == 0, -1.0, log_own / q))
    pull = torch.where(own == 0, 0.0, gamma.abs() * own * ratio)
    return power, power * (pull - 1)
