"""The exact inverse of what Focal Calibration Loss does to the posterior (docs/math/inverse_map.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from focalcal.core.softmax_logs import log_probs_and_complements

if TYPE_CHECKING:
    from jaxtyping import Float


def log_posterior(logits: Float[Tensor, "n k"], *, gamma: float, lam: float) -> Float[Tensor, "n k"]:
    """log eta, where q = softmax(logits) minimises FCL's conditional risk under the posterior eta.

    With phi(u) = -(1 - u)^gamma log u, stationarity eta_k phi'(q_k) + 2 lam (q_k - eta_k) = nu is linear in eta.
    b_k = 2 lam - phi'(q_k) > 0 gives

        eta_k = (2 lam q_k + m) / b_k,      m = sum_k q_k (-phi'(q_k)) / b_k  /  sum_k 1 / b_k.

    Every term is positive, so nothing cancels, and all of it is done on logarithms:
    log(-phi'(u)) = gamma log(1 - u) + log(gamma r + 1/u), r = -log(u) / (1 - u), which tends to 1 as u -> 1. So
    rows in which softmax underflows or rounds to one have the right limits. lam = 0 is the inverse of focal loss,
    eta_k proportional to 1 / -phi'(q_k); gamma = 0 is the identity. float64 logits.
    """
    log_q, log_not_q = log_probs_and_complements(logits)
    if gamma == 0:
        return log_q
    tiny = log_not_q < -18.0  # 1 - u below 1.5e-8: log r is (1 - u) / 2 to the last digit
    log_r = torch.where(tiny, log_not_q.exp() / 2, torch.log(-log_q) - log_not_q)
    log_slope = gamma * log_not_q + torch.logaddexp(math.log(gamma) + log_r, -log_q)
    log_2lam = torch.tensor(
        math.log(2) + math.log(lam) if lam > 0 else -math.inf, dtype=logits.dtype, device=logits.device
    )
    log_b = torch.logaddexp(log_2lam, log_slope)
    log_m = torch.logsumexp(log_q + log_slope - log_b, 1, keepdim=True) - torch.logsumexp(-log_b, 1, keepdim=True)
    return (torch.logaddexp(log_2lam + log_q, log_m) - log_b).log_softmax(1)
