"""The focal family's loss and gradient in few torch operations: what runs where the native kernel cannot
(a GPU, float16, no compiler). The formulas are those of _native/vector.h; docs/math/fused_gradient.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from focalcal.losses.formula import Terms, step_gamma
from focalcal.losses.numerics import at_least_float32

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def loss_and_gradient(
    logits: Float[Tensor, "n k *d"],
    labels: Int[Tensor, "n *d"],
    weight: Tensor | None,
    terms: Terms,
    keep: Bool[Tensor, "n *d"] | None,
    reduction: str,
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """The reduced loss (each example's for "none") and the gradient of its sum, float32 for half precision.

    Per-example quantities keep a class dimension of one. `keep` is None if no example is ignored.
    """
    index = (labels if keep is None else torch.where(keep, labels, 0)).unsqueeze(1)
    log_p = torch.log_softmax(at_least_float32(logits), 1)
    log_own = log_p.gather(1, index)
    own = log_own.exp()
    others = log_p.exp_().scatter_(1, index, 0.0)
    q = others.sum(1, keepdim=True)
    log_own = torch.where(q < 0.5, torch.log1p(-q), log_own)
    power, slope = _focal_power(q, own, log_own, terms)
    loss = torch.zeros_like(q) if not terms.focal else (power * log_own).mul_(-terms.focal)
    anchor = squares = q  # unused unless lam > 0
    if terms.lam:
        squares = _sum_of_squares(others)
        anchor = torch.addcmul(squares, q, q)
        loss.add_(anchor, alpha=terms.lam)

    scale = None if weight is None else weight.to(q)[index]
    if scale is not None:
        loss = loss.mul_(scale)
    if keep is not None:
        ignored = ~keep.unsqueeze(1)
        loss = loss.masked_fill_(ignored, 0.0)
        scale = (torch.ones_like(q) if scale is None else scale).masked_fill(ignored, 0.0)
    total: Tensor | float = 1.0
    if reduction == "mean":
        total = q.numel() if scale is None else scale.sum()
    value = loss.squeeze(1) if reduction == "none" else loss.sum() / total
    if not gradient or not q.numel():
        return value, torch.zeros_like(log_p) if gradient else None

    each = 1 / total if scale is None else scale / total
    linear = slope * -terms.focal
    at_label = (slope * q).mul_(terms.focal)
    if terms.lam:
        linear = linear.sub_(squares - own * q, alpha=2 * terms.lam)
        at_label = at_label.addcmul_(own, anchor, value=-2 * terms.lam)
    linear, at_label = linear.mul_(each), at_label.mul_(each)
    if not terms.lam:
        grad = others.mul_(linear)
    elif isinstance(each, Tensor):
        grad = torch.addcmul(linear, others, 2 * terms.lam * each).mul_(others)
    else:
        grad = torch.add(linear, others, alpha=2 * terms.lam * each).mul_(others)
    grad = grad.scatter_(1, index, at_label)
    if not terms.focal:
        grad = _mend_top(grad, others, own)
    if keep is not None:
        grad = grad.masked_fill_(~keep.unsqueeze(1), 0.0)
    return value, grad


def _mend_top(grad: Tensor, others: Tensor, own: Tensor) -> Tensor:
    """Where another class is on top, its entry of the Brier score alone is a small difference of large numbers;
    the other entries have one sign and add up to its opposite."""
    best = others.argmax(1, keepdim=True)
    rest = grad.scatter(1, best, 0.0).sum(1, keepdim=True)
    return grad.scatter_(1, best, torch.where(others.gather(1, best) > own, -rest, grad.gather(1, best)))


def _sum_of_squares(others: Tensor) -> Tensor:
    # The norm makes no copy of the array, but is slow over a dimension that is not the last.
    if others.dim() == 2:
        norm: Tensor = torch.linalg.vector_norm(others, dim=1, keepdim=True)
        return norm.square_()
    return others.square().sum(1, keepdim=True)


def _focal_power(q: Tensor, own: Tensor, log_own: Tensor, terms: Terms) -> tuple[Tensor, Tensor]:
    """base^gamma and A = base^gamma (gamma p_y ratio - 1).

    At q = 0 the power is 0, so that the ratio's limit there is not needed; at p_y = 0 the product
    p_y log p_y is 0, so that any finite logarithm will do.
    """
    if terms.gammas is None and (terms.gamma == 0 or terms.focal == 0):
        return torch.ones_like(q), torch.full_like(q, -1.0)
    tiny, low = torch.finfo(q.dtype).tiny, -torch.finfo(q.dtype).max
    pull = log_own.clamp(min=low).mul_(own)
    if terms.gammas is None:
        power = q.pow(terms.gamma)
        pull = pull.div_(q.clamp(min=tiny)).mul_(terms.gamma)
    else:
        gamma = step_gamma(terms, own)
        base = torch.where(gamma < 0, 1 + own, q)
        power = base.pow(gamma.abs())
        pull = pull.div_(base.clamp(min=tiny)).mul_(gamma)  # gamma's sign is the ratio's
    return power, pull.sub_(1).mul_(power)
