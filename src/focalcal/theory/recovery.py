"""The exact inverse of what Focal Calibration Loss does to the posterior (docs/math/inverse_map.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from focalcal.core.numerics import log_probs_and_complements
from focalcal.core.scores import dense
from focalcal.theory.posteriors import at_least_zero, broadcast, distributions, focusing

if TYPE_CHECKING:
    from jaxtyping import Float


def recover(q: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b k"]:
    """The posterior eta whose FCL minimiser is q: the inverse of `minimise`, in closed form (`log_posterior`).

    q is one prediction (K,) or a batch (*b, K) whose rows sum to one within 1e-3, and are then divided by their sums;
    gamma >= 0 and lam >= 0 are numbers or arrays that broadcast with (*b). q_k = 0 gives eta_k = 0, and a vertex
    gives itself. 1 - q_k of a row's largest entry is taken as the sum of the others, which near a vertex has the
    digits that the entry itself has not. For lam = 0 an eta_k is of the order of q_k (1 - q_max)^gamma, and 0 where
    float64 has nothing so small.

    >>> recover([0.5924, 0.2584, 0.1492], gamma=2.0, lam=1.0).round(3)
    array([0.7, 0.2, 0.1])
    """
    prediction, (g, weight) = broadcast(distributions("q", q), focusing(gamma), at_least_zero("lam", lam))
    classes = prediction.shape[-1]
    if classes == 1:
        return np.ones(prediction.shape)
    with np.errstate(divide="ignore"):
        log_q = torch.from_numpy(np.log(prediction).reshape(-1, classes))
    log_eta = log_posterior(
        log_q, gamma=torch.from_numpy(g.reshape(-1, 1).copy()), lam=torch.from_numpy(weight.reshape(-1, 1).copy())
    )
    return log_eta.exp().numpy().reshape(prediction.shape)


def log_posterior(
    logits: Float[Tensor, "n k"], *, gamma: float | Float[Tensor, "n 1"], lam: float | Float[Tensor, "n 1"]
) -> Float[Tensor, "n k"]:
    """log eta, where q = softmax(logits) minimises FCL's conditional risk under the posterior eta.

    With phi(u) = -(1 - u)^gamma log u, stationarity eta_k phi'(q_k) + 2 lam (q_k - eta_k) = nu is linear in eta.
    b_k = 2 lam - phi'(q_k) > 0 gives

        eta_k = (2 lam q_k + m) / b_k,      m = sum_k q_k (-phi'(q_k)) / b_k  /  sum_k 1 / b_k.

    Every term is positive, so nothing cancels, and all of it is done on logarithms:
    log(-phi'(u)) = gamma log(1 - u) + log(gamma r + 1/u), r = -log(u) / (1 - u), which tends to 1 as u -> 1. So
    rows in which softmax underflows or rounds to one have the right limits. lam = 0 is the inverse of focal loss,
    eta_k proportional to 1 / -phi'(q_k); gamma = 0 is the identity. float64 logits of at
    least two classes; gamma >= 0 and lam >= 0 are numbers, or columns with one per row.
    """
    if not torch.compiler.is_exporting():  # values are not known yet
        _check_rows(logits, gamma=gamma, lam=lam)
    terms = _terms(*log_probs_and_complements(logits), gamma, lam)
    log_eta = (torch.logaddexp(terms.log_2lam + terms.log_q, terms.log_m) - terms.log_b).log_softmax(1)
    return torch.where(terms.gamma == 0, terms.log_q, log_eta)


def posterior_shift(
    log_q: Float[Tensor, "n k"],
    log_not_q: Float[Tensor, "n k"],
    *,
    gamma: float | Float[Tensor, "n 1"],
    lam: float | Float[Tensor, "n 1"],
    copies: Float[Tensor, "n k"] | None = None,
) -> Float[Tensor, "n k"]:
    """eta - q = (m - q_k (-phi'(q_k))) / b_k for the same eta and q, with the digits that their difference loses.

    From log q_k and log(1 - q_k); `copies` says for how many equal classes an entry stands, one if it is None. The
    error is that of m / b_k, hence relative to the shift itself also where lam is large and eta close to q.
    """
    terms = _terms(log_q, log_not_q, gamma, lam, 0.0 if copies is None else copies.log())
    shift = (terms.log_m - terms.log_b).exp() - (terms.log_q + terms.log_slope - terms.log_b).exp()
    return torch.where(terms.gamma == 0, 0.0, shift)


def _check_rows(logits: Any, **parameters: Any) -> None:
    rule = "logits must be a tensor (n, k) of float32 or float64"
    if not isinstance(logits, Tensor):
        raise TypeError(f"{rule}, got {type(logits).__name__}; use torch.as_tensor(...)")
    dense("logits", logits)
    if logits.dtype not in (torch.float32, torch.float64) or logits.dim() != 2 or logits.shape[1] < 2:
        raise ValueError(f"{rule} with k >= 2, got {logits.dtype} of shape {tuple(logits.shape)}; convert them")
    for name, given in parameters.items():
        shape = at_least_zero(name, given).shape
        if shape not in ((), (1,), (1, 1), (len(logits), 1)):
            raise ValueError(f"{name} must be a number or a column ({len(logits)}, 1), got shape {shape}; reshape it")


class _Terms(NamedTuple):
    """What the closed form is made of, as logarithms: q, -phi'(q), b, m; gamma as it is."""

    gamma: Tensor
    log_2lam: Tensor
    log_q: Float[Tensor, "n k"]
    log_slope: Float[Tensor, "n k"]
    log_b: Float[Tensor, "n k"]
    log_m: Float[Tensor, "n 1"]


def _terms(
    log_q: Tensor, log_not_q: Tensor, gamma: float | Tensor, lam: float | Tensor, log_copies: float | Tensor = 0.0
) -> _Terms:
    focusing = torch.as_tensor(gamma, dtype=log_q.dtype, device=log_q.device)
    log_2lam = math.log(2) + torch.as_tensor(lam, dtype=log_q.dtype, device=log_q.device).log()
    tiny = log_not_q < -18.0  # 1 - u below 1.5e-8: log r is (1 - u) / 2 to the last digit
    log_r = torch.where(tiny, log_not_q.exp() / 2, torch.log(-log_q) - log_not_q)
    log_slope = focusing * log_not_q + torch.logaddexp(focusing.log() + log_r, -log_q)
    log_b = torch.logaddexp(log_2lam, log_slope)
    pulls, weights = log_copies + log_q + log_slope - log_b, log_copies - log_b
    log_m = torch.logsumexp(pulls, 1, keepdim=True) - torch.logsumexp(weights, 1, keepdim=True)
    return _Terms(focusing, log_2lam, log_q, log_slope, log_b, log_m)
