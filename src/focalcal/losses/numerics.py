"""The odds against the label, with nothing computed as one minus something near one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


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
