"""The exact inverse of what Focal Calibration Loss does to the posterior (docs/math/inverse_map.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from focalcal.core.arrays import dense, is_tensor
from focalcal.core.numerics import log_probs_and_complements, log_softmax, logsumexp, namespace
from focalcal.theory.posteriors import at_least_zero, broadcast, distributions, focusing

if TYPE_CHECKING:
    from jaxtyping import Float


def recover(q: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b k"]:
    """The posterior eta whose FCL minimiser is q: the inverse of `minimise`, in closed form (`log_posterior`).

    q_k = 0 gives eta_k = 0, and a vertex gives itself. 1 - q_k of a row's largest entry is taken as the sum of the
    others, which near a vertex has the digits that the entry itself has not. For lam = 0 an eta_k is of the order of
    q_k (1 - q_max)^gamma, and 0 where float64 has nothing so small.

    Args:
        q: predictions, (K,) or (*b, K), whose rows sum to one within 1e-3 and are divided by their sums.
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: >= 0, likewise.

    Returns:
        The posteriors, of the shape of q.

    >>> recover([0.5924, 0.2584, 0.1492], gamma=2.0, lam=1.0).round(3)
    array([0.7, 0.2, 0.1])
    """
    prediction, (g, weight) = broadcast(distributions("q", q), focusing(gamma), at_least_zero("lam", lam))
    classes = prediction.shape[-1]
    if classes == 1:
        return np.ones(prediction.shape)
    with np.errstate(divide="ignore"):
        log_q = np.log(prediction).reshape(-1, classes)
    log_eta = log_posterior(log_q, gamma=g.reshape(-1, 1), lam=weight.reshape(-1, 1))
    return np.exp(log_eta).reshape(prediction.shape)


def log_posterior(logits: Any, *, gamma: Any, lam: Any) -> Any:
    """log eta, where q = softmax(logits) minimises FCL's conditional risk under the posterior eta.

    With phi(u) = -(1 - u)^gamma log u, stationarity eta_k phi'(q_k) + 2 lam (q_k - eta_k) = nu is linear in eta.
    b_k = 2 lam - phi'(q_k) > 0 gives

        eta_k = (2 lam q_k + m) / b_k,      m = sum_k q_k (-phi'(q_k)) / b_k  /  sum_k 1 / b_k.

    Every term is positive, so nothing cancels, and all of it is done on logarithms: log(-phi'(u)) = gamma log(1 - u) +
    log(gamma r + 1/u), r = -log(u) / (1 - u), which tends to 1 as u -> 1. So rows in which softmax underflows or rounds
    to one have the right limits. lam = 0 is the inverse of focal loss, eta_k proportional to 1 / -phi'(q_k); gamma = 0
    is the identity.

    Args:
        logits: (N, K), K >= 2, an array or a tensor in float64 or float32.
        gamma: >= 0, a number, or a column (N, 1).
        lam: >= 0, likewise.

    Returns:
        (N, K) of the same kind; a tensor is differentiable in the logits.

    >>> np.exp(log_posterior(np.log([[0.5924, 0.2584, 0.1492]]), gamma=2.0, lam=1.0)).round(3)
    array([[0.7, 0.2, 0.1]])
    """
    _check_rows(logits, gamma=gamma, lam=lam)
    with np.errstate(all="ignore"):  # the logarithm of 0 is meant, and so is its exponential
        return inverse_map(logits, gamma, lam)


def inverse_map(logits: Any, gamma: Any, lam: Any) -> Any:
    """`log_posterior` in array functions alone, without its checks: torch can export and compile it.

    NumPy warns of logarithms of 0, which are meant, unless the caller ignores them.
    """
    xp = namespace(logits)
    terms = _terms(*log_probs_and_complements(logits), gamma, lam)
    log_eta = log_softmax(xp.logaddexp(terms.log_2lam + terms.log_q, terms.log_m) - terms.log_b)
    return xp.where(terms.gamma == 0, terms.log_q, log_eta)


def posterior_shift(
    log_q: Float[np.ndarray, "n k"],
    log_not_q: Float[np.ndarray, "n k"],
    *,
    gamma: float,
    lam: float,
    copies: Float[np.ndarray, "n k"] | None = None,
) -> Float[np.ndarray, "n k"]:
    """eta - q = (m - q_k (-phi'(q_k))) / b_k for the same eta and q, with the digits that their difference loses.

    From log q_k and log(1 - q_k); `copies` says for how many equal classes an entry stands, one if it is None. The
    error is that of m / b_k, hence relative to the shift itself also where lam is large and eta close to q.
    """
    if gamma == 0:
        return np.zeros_like(log_q)
    with np.errstate(all="ignore"):
        return _shift(_terms(log_q, log_not_q, gamma, lam, 0.0 if copies is None else np.log(copies)))


def shift_and_pull(
    log_q: Float[np.ndarray, "n k"],
    log_not_q: Float[np.ndarray, "n k"],
    upstream: Callable[[Float[np.ndarray, "n k"]], Float[np.ndarray, "n k"]],
    *,
    gamma: float,
    lam: float,
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
    """`posterior_shift`, and the gradient in the logits of a function of it whose own gradient is `upstream(shift)`.

    With s_k = -phi'(q_k), t_k = (s_k - eta_k phi''(q_k)) / b_k and w_k = (1 / b_k) / sum_j 1 / b_j,

        d shift_k = w_k sum_j t_j dq_j - t_k dq_k,      dq_j = q_j (dz_j - sum_i q_i dz_i).
    """
    with np.errstate(all="ignore"):
        terms = _terms(log_q, log_not_q, gamma, lam)
        shift = _shift(terms)
        slope = upstream(shift)
        log_eta = np.logaddexp(terms.log_2lam + log_q, terms.log_m) - terms.log_b
        q = np.exp(log_q)
        # phi'' u^2 / (1 - u)^gamma = 1 + gamma u (2 + (gamma - 1) u r) / (1 - u), where u r <= 1: all of it positive
        bend = np.log(2 + (gamma - 1) * np.exp(terms.log_ur)) + np.log(gamma) + log_q - log_not_q
        log_curvature = gamma * log_not_q + np.logaddexp(0.0, bend) - 2 * log_q
        # q_k t_k
        pull = np.exp(log_q + terms.log_slope - terms.log_b) - np.exp(log_q + log_eta + log_curvature - terms.log_b)
        weight = np.exp(-terms.log_b - logsumexp(-terms.log_b)[:, None])
        pull = pull * ((weight * slope).sum(1, keepdims=True) - slope)
        return shift, pull - q * pull.sum(1, keepdims=True)


def _shift(terms: _Terms) -> Float[np.ndarray, "n k"]:
    return np.exp(terms.log_m - terms.log_b) - np.exp(terms.log_q + terms.log_slope - terms.log_b)


def _check_rows(logits: Any, **parameters: Any) -> None:
    rule = "logits must be an array or a tensor (n, k) of float32 or float64"
    if not hasattr(logits, "dtype") or not hasattr(logits, "shape"):
        raise TypeError(f"{rule}, got {type(logits).__name__}; use np.asarray(...)")
    if is_tensor(logits):
        dense("logits", logits)
    xp = namespace(logits)
    if logits.dtype not in (xp.float32, xp.float64) or logits.ndim != 2 or logits.shape[1] < 2:
        raise ValueError(f"{rule} with k >= 2, got {logits.dtype} of shape {tuple(logits.shape)}; convert them")
    for name, given in parameters.items():
        shape = at_least_zero(name, given).shape
        if shape and shape not in ((1,), (1, 1), (len(logits), 1)):
            raise ValueError(f"{name} must be a number or a column ({len(logits)}, 1), got shape {shape}; reshape it")


class _Terms(NamedTuple):
    """What the closed form is made of, as logarithms: q, u r, -phi'(q), b, m; gamma as it is."""

    gamma: Any
    log_2lam: Any
    log_q: Any
    log_ur: Any
    log_slope: Any
    log_b: Any
    log_m: Any


def _terms(log_q: Any, log_not_q: Any, gamma: Any, lam: Any, log_copies: Any = 0.0) -> _Terms:
    xp = namespace(log_q)
    place = {} if xp is np else {"device": log_q.device}
    focusing, weight = (xp.asarray(given, dtype=log_q.dtype, **place) for given in (gamma, lam))
    log_2lam = math.log(2) + xp.log(weight)
    tiny = log_not_q < -18.0  # 1 - u below 1.5e-8: log r is (1 - u) / 2 to the last digit
    log_r = xp.where(tiny, xp.exp(log_not_q) / 2, xp.log(-log_q) - log_not_q)
    log_slope = focusing * log_not_q + xp.logaddexp(xp.log(focusing) + log_r, -log_q)
    log_b = xp.logaddexp(log_2lam, log_slope)
    pulls, weights = log_copies + log_q + log_slope - log_b, log_copies - log_b
    log_m = (logsumexp(pulls) - logsumexp(weights))[:, None]
    return _Terms(focusing, log_2lam, log_q, log_q + log_r, log_slope, log_b, log_m)
