"""Logarithms and odds of softmax, with nothing computed as one minus something near one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

_LOWEST = -1e15  # a logit further below the largest has p = 0 by any measure; infinities would breed NaN


def at_least_float32(values: Tensor) -> Tensor:
    """float16 and bfloat16 as float32; float32 and float64 as they are."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def is_class(labels: Int[Tensor, "n *d"], classes: int) -> Bool[Tensor, "n k *d"]:
    """True where the class (dimension 1) is the label."""
    index = torch.arange(classes, device=labels.device)
    return labels.unsqueeze(1) == index.view(-1, *[1] * (labels.dim() - 1))


def against_label(
    logits: Float[Tensor, "n k *d"], labels: Int[Tensor, "n *d"]
) -> tuple[Float[Tensor, "n *d"], Float[Tensor, "n k *d"]]:
    """The log odds against the label, u = log(1 - p_y) - log p_y, and the other classes' shares.

    With u all of p_y = sigmoid(-u), 1 - p_y = sigmoid(u) and their logarithms follow without cancellation:
    u = logsumexp_{k != y} z_k - z_y. The shares r_k = p_k / (1 - p_y) sum to one over k != y, and r_y = 0.
    Where no other class has mass (one class, or all others at -inf) u is -inf.
    """
    own = is_class(labels, logits.shape[1])
    # Subtracting the largest logit first keeps logits of 1e4 exact: logsumexp would round at that size.
    shifted = logits - logits.detach().amax(1, keepdim=True)
    shifted_own = shifted.gather(1, labels.unsqueeze(1)).squeeze(1)
    others = shifted.masked_fill(own, -torch.inf)
    alone = others.detach().amax(1, keepdim=True) == -torch.inf
    others = others.masked_fill(alone, 0.0)  # any number: what follows from it is replaced or times zero
    rest = torch.where(alone.squeeze(1), -torch.inf, torch.logsumexp(others, 1))
    return rest - shifted_own, torch.softmax(others, 1)


def log_probs_and_complements(logits: Float[Tensor, "n k"]) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k"]]:
    """log p_k and log(1 - p_k), p = softmax(logits), for float64 logits with at least two classes.

    No class but a row's largest can exceed one half, so log1p(-p_k) is accurate for the others. The largest gets
    log(1 - p) = logsumexp over the others - logsumexp over all, and log p = log1p(-(1 - p)). Relative accuracy
    holds for logit leads of hundreds, where 1 - p is far below the smallest float64.
    """
    top, at = logits.max(1, keepdim=True)
    shifted = (logits - top).clamp(min=_LOWEST)
    others = shifted.scatter(1, at, -torch.inf)
    rest = torch.logsumexp(others, 1, keepdim=True)  # of the others; the largest's own share is exp(0)
    total = rest.clamp(min=0) + torch.log1p(torch.exp(-rest.abs()))  # log(1 + exp(rest)), exact for rest << 0
    log_p = (shifted - total).scatter(1, at, -total)
    log_not_p = torch.log1p(-log_p.exp()).scatter(1, at, rest - total)
    return log_p, log_not_p
