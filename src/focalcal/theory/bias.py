"""What FCL's anchor leaves of the focal term's bias, q* - eta, in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.theory.posteriors import above_zero, at_least_zero, broadcast, distributions, focusing
from focalcal.theory.potential import at_posterior

if TYPE_CHECKING:
    from jaxtyping import Float


def first_order_bias(eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b k"]:
    """(psi_bar - psi(eta_k)) / (2 lam), to which q*_k - eta_k is equal up to o(1 / lam): the paper's Theorem 5.6.

    psi(t) = t phi'(t), and psi_bar is its mean over the support of eta. The theorem is about the interior of the
    simplex; q* is 0 where eta is, and what is left is the same problem with fewer classes, so it holds on every face.
    Its l2 norm is also a bound, see `slope_bound`.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: > 0, likewise.

    Returns:
        (*b, K), summing to 0 over the classes.

    >>> first_order_bias([0.5, 0.25, 0.25], gamma=1.0, lam=100.0).round(5)
    array([-0.00083,  0.00042,  0.00042])
    """
    posterior, (g, weight) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma), above_zero("lam", lam))
    with np.errstate(over="ignore"):
        return at_posterior(posterior, g).centred_psi / 2 / weight[..., None]


def first_order_constant(eta: Any, *, gamma: Any) -> Float[np.ndarray, "*b"]:
    """C = max_k |psi_bar - psi(eta_k)| / 2, the limit of lam max_k |q*_k - eta_k| (the paper's Theorem 5.6).

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).

    Returns:
        (*b), C for each posterior, 0 where psi is constant on the support.

    >>> float(first_order_constant([0.7, 0.2, 0.1], gamma=2.0).round(4))
    0.3166
    """
    posterior, (g,) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma))
    return (np.abs(at_posterior(posterior, g).centred_psi).max(-1) / 2)[()]


def asymptote_delay(eta: Any, *, gamma: Any) -> Float[np.ndarray, "*b"]:
    """kappa: lam max_k |q*_k - eta_k| = C (1 - kappa / (2 lam)) + O(1 / lam^2). Slopes are shallow until lam >> kappa.

    With c_k = eta_k phi''(eta_k), b the first-order bias, m the class of the largest |b_k| and means over the support,
    stationarity to second order, (2 lam + c_k) d_k = nu - psi(eta_k), gives kappa = c_m - mean(c b) / b_m. NaN where
    the first-order bias vanishes.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).

    Returns:
        (*b), kappa for each posterior.

    >>> float(asymptote_delay([0.7, 0.2, 0.1], gamma=2.0).round(2))
    4.51
    """
    posterior, (g,) = broadcast(distributions("eta", eta), focusing(gamma))
    here = at_posterior(posterior, g)
    bias, support = here.centred_psi, here.support
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        pulled = np.where(support, np.exp(here.log_curvature) * bias, 0.0)
        largest = np.abs(bias).argmax(-1)[..., None]
        top, top_pulled = (np.take_along_axis(part, largest, -1)[..., 0] for part in (bias, pulled))
        return ((top_pulled - pulled.sum(-1) / support.sum(-1)) / top)[()]


def pre_asymptotic_bias(eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b k"]:
    """(nu - psi(eta_k)) / h_k with h_k = eta_k phi''(eta_k) + 2 lam and nu = (sum psi(eta_k)/h_k) / (sum 1/h_k).

    One Newton step from q = eta towards q*, over the support of eta; 0 outside. It becomes `first_order_bias` where 2
    lam exceeds the focal curvature eta_k phi''(eta_k), about 1 / eta_k, and unlike it stays useful before
    (docs/math/pre_asymptotic_bias.md). The components sum to 0, but eta plus them can leave the simplex.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: >= 0, likewise.

    Returns:
        (*b, K), an approximation of q* - eta.

    >>> pre_asymptotic_bias([0.5, 0.25, 0.25], gamma=1.0, lam=1.0).round(4)
    array([-0.0294,  0.0147,  0.0147])
    """
    posterior, (g, weight) = broadcast(distributions("eta", eta), focusing(gamma), at_least_zero("lam", lam))
    here = at_posterior(posterior, g)
    spread = here.support & (here.support.sum(-1, keepdims=True) > 1)  # at a vertex nothing can move
    with np.errstate(all="ignore"):  # log 0 is meant for lam = 0; the rest is masked
        log_h = np.logaddexp(here.log_curvature, np.log(2.0) + np.log(weight)[..., None])
        log_room = np.where(spread, -log_h, -np.inf)  # of 1 / h_k
        pushed = np.where(spread, here.log_minus_psi - log_h, -np.inf)
        log_minus_nu = _log_sum(pushed) - _log_sum(log_room)
        return np.where(spread, np.exp(pushed) - np.exp(log_minus_nu - log_h), 0.0)


def _log_sum(logs: Float[np.ndarray, "*b k"]) -> Float[np.ndarray, "*b 1"]:
    return np.logaddexp.reduce(logs, -1, keepdims=True)
