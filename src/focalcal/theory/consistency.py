"""Theorem 5.1 of the paper, computed: the minimiser keeps the Bayes decision, and a wrong one costs a strict gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.theory.minimiser import Solution, minimise
from focalcal.theory.posteriors import at_least_zero, broadcast, complements, distributions
from focalcal.theory.potential import curvature_at, minus_psi_at, phi_at, phi_slope

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

_ROUNDING = 1e-12  # numbers that differ by less, relatively, may be equal
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def keeps_decision(eta: Any, *, gamma: Any, lam: Any) -> Bool[np.ndarray, "*b"]:
    """Whether q* has its maximum at the classes where eta has its own, and at no others. Theorem 5.1 says: always.

    Several classes that tie for the maximum of eta must tie for that of q*, to 1e-12 of it. Every other class must be
    strictly below, unless its eta is within that of the maximum: then float64 cannot tell.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: >= 0, likewise.

    Returns:
        (*b), True or False.

    >>> bool(keeps_decision([0.36, 0.34, 0.3], gamma=5.0, lam=0.0))
    True
    """
    posterior, (g, weight) = broadcast(
        distributions("eta", eta), at_least_zero("gamma", gamma), at_least_zero("lam", lam)
    )
    return same_decision(posterior, minimise(posterior, gamma=g, lam=weight).unwrap(), g)


def same_decision(
    eta: Float[np.ndarray, "*b k"], q: Float[np.ndarray, "*b k"], gamma: Float[np.ndarray, "*b"]
) -> Bool[np.ndarray, "*b"]:
    """Whether these q, solved at these gammas, have the maxima of these eta, as in `keeps_decision`."""
    most, highest = eta.max(-1, keepdims=True), q.max(-1, keepdims=True)
    leads = eta == most
    tied = q >= highest * (1 - _ROUNDING)
    below = (q < highest) | (eta >= most * (1 - _ROUNDING * (1 + gamma[..., None])))
    return np.where(leads, tied, below).all(-1)[()]


def decreasing_differences(u: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "..."]:
    """d^2 g / du da = phi'(u) - 2 lam of g(u; a) = a phi(u) + lam u^2 - 2 lam a u, where R = sum_k g(q_k; eta_k) + lam.

    Negative on (0, 1), which is all that Theorem 5.1 needs.

    Args:
        u: probabilities in [0, 1], of any shape.
        gamma: >= 0, broadcast with u.
        lam: >= 0, likewise.

    Returns:
        The second difference, of the common shape.

    >>> decreasing_differences([0.1, 0.5, 0.9], gamma=2.0, lam=1.0).round(2)
    array([-14.24,  -3.19,  -2.03])
    """
    slope = phi_slope(u, gamma)
    with np.errstate(over="ignore"):
        return slope - 2 * at_least_zero("lam", lam)


def decision_gap(eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b"]:
    """inf {R(q; eta) : max_{k != y} q_k >= q_y} - min_q R(q; eta), y the most probable: Theorem 5.1's strict gap.

    The infimum is min_q R(q; eta'), where eta' has eta_y and the runner-up's eta_j replaced by their mean
    (docs/math/decision_gap.md). With q = q*(eta) and p = q*(eta') the gap is the Bregman divergence

        lam |p - q|^2 + sum_k eta_k (phi(p_k) - phi(q_k) - phi'(q_k) (p_k - q_k)) - nu sum_{eta_k = 0} p_k,

    in which every term is >= 0, so that gaps far below the rounding of R itself have correct digits: the relative error
    is about 1e-15 q_y / (q_y - p_y). 0 where several classes tie for the maximum; infinite for K = 1, where no decision
    is wrong.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: >= 0, likewise.

    Returns:
        (*b), the gap in risk.

    >>> decision_gap([0.7, 0.2, 0.1], gamma=2.0, lam=[0.0, 1.0]).round(4)  # the anchor widens it
    array([0.0536, 0.1547])
    """
    posterior, (g, weight) = broadcast(
        distributions("eta", eta), at_least_zero("gamma", gamma), at_least_zero("lam", lam)
    )
    if posterior.shape[-1] == 1:
        return np.full(posterior.shape[:-1], np.inf)[()]
    pair = np.argsort(-posterior, -1, kind="stable")[..., :2]
    two = np.take_along_axis(posterior, pair, -1)
    averaged, half = posterior.copy(), (two[..., 0] - two[..., 1])[..., None] / 2
    np.put_along_axis(averaged, pair, two.mean(-1, keepdims=True), -1)
    ours, tied = (minimise(rows, gamma=g, lam=weight) for rows in (posterior, averaged))
    ours.unwrap(), tied.unwrap()
    step = tied.displacement - ours.displacement  # p - q = (eta' - eta) + (d' - d): what is alike has cancelled
    moved = np.zeros(posterior.shape)
    np.put_along_axis(moved, pair, half * np.array([-1.0, 1.0]), -1)
    step = np.where(half > 0, step + moved, 0.0)
    return _divergence(posterior, ours, tied, step, g[..., None], weight)[()]


def _divergence(
    eta: np.ndarray, ours: Solution, tied: Solution, step: np.ndarray, gamma: np.ndarray, lam: np.ndarray
) -> np.ndarray:
    q, not_q, p, not_p = ours.q, complements(ours.q), tied.q, complements(tied.q)
    with np.errstate(all="ignore"):  # outside the support, which is masked
        near = np.abs(step) * (1 / np.minimum(q, p) + (1 + gamma) / np.minimum(not_q, not_p)) < 0.5
        # eta_k / q_k is of order one where eta_k and q_k are so small that 1 / q_k is infinite.
        slope = eta / q * minus_psi_at(q, not_q, gamma) * step
        focal = np.where(
            near,
            eta * _second_order(q, not_q, step, gamma),
            eta * (phi_at(p, not_p, gamma) - phi_at(q, not_q, gamma)) + slope,
        )
        own = np.where((eta > 0) & (step != 0), focal, 0.0).sum(-1)
    outside = np.where(eta > 0, 0.0, step).sum(-1)
    return lam * (step**2).sum(-1) + own - ours.multiplier * outside


def _second_order(q: np.ndarray, not_q: np.ndarray, step: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """step^2 int_0^1 (1 - t) phi''(q + t step) dt, all of one sign, by Gauss-Legendre: short steps are smooth."""
    total = np.zeros(q.shape)
    for node, weight in zip((_NODES + 1) / 2, _WEIGHTS / 2, strict=True):
        u, c = q + node * step, not_q - node * step
        total += weight * (1 - node) * (step / u) ** 2 * curvature_at(u, c, gamma)
    return total
