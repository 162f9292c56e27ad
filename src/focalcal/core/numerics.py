"""Logarithms and odds of softmax, with nothing computed as one minus something near one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

_LOWEST = -1e15  # a logit further below the largest has p = 0 by any measure; infinities would breed NaN


def at_least_float32(values: Tensor) -> Tensor:
    """float16 and bfloat16 as float32; float32 and float64 as they are."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


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
