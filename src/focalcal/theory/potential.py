"""The focal term phi(u) = -(1 - u)^gamma log u and what is made of it, on NumPy arrays.

Everywhere u may be 0 or 1: the limits are returned, and never a warning. (1 - u)^gamma is taken as
exp(gamma log(1 - u)), whose relative error is that of its logarithm; rounding 1 - u first would cost gamma eps.

The functions that end in `_at` take checked u and c = 1 - u, for who knows c to more digits than u has near 1.
Slope and curvature `at_posterior`, q = eta, are logarithms: (1 - eta_k)^gamma cannot underflow, nor 1/eta_k overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.theory.posteriors import as_float64, at_least_zero, broadcast, complements, distributions, same_classes

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def phi(u: Any, gamma: Any) -> Float[np.ndarray, "..."]:
    """phi(u) = -(1 - u)^gamma log u; phi(0) = inf, phi(1) = 0.

    Args:
        u: probabilities in [0, 1], of any shape.
        gamma: >= 0, broadcast with u.

    Returns:
        The focal term, at least 0.

    >>> phi([0.5, 0.9], [0.0, 2.0]).round(4)
    array([0.6931, 0.0011])
    """
    u, gamma = _unit("u", u), at_least_zero("gamma", gamma)
    return phi_at(u, 1 - u, gamma)


def phi_slope(u: Any, gamma: Any) -> Float[np.ndarray, "..."]:
    """phi'(u) = gamma (1-u)^(gamma-1) log u - (1-u)^gamma / u, which is negative; -inf at 0; at 1, 0 or -1 (gamma = 0).

    Computed as psi(u) / u: for gamma < 1 the two terms above are infinite at 1 and their sum is not.

    Args:
        u: probabilities in [0, 1], of any shape.
        gamma: >= 0, broadcast with u.

    Returns:
        The slope, at most 0.

    >>> phi_slope([0.0, 0.5, 1.0], 2.0).round(4)
    array([   -inf, -1.1931,  0.    ])
    """
    u, gamma = _unit("u", u), at_least_zero("gamma", gamma)
    with np.errstate(divide="ignore", over="ignore"):
        return -minus_psi_at(u, 1 - u, gamma) / u + 0.0


def phi_curvature(u: Any, gamma: Any) -> Float[np.ndarray, "..."]:
    """phi''(u) > 0 on (0, 1) for every gamma >= 0 (docs/math/unique_minimiser.md).

    phi''(u) = -gamma (gamma-1) (1-u)^(gamma-2) log u + 2 gamma (1-u)^(gamma-1) / u + (1-u)^gamma / u^2

    Args:
        u: probabilities in [0, 1], of any shape.
        gamma: >= 0, broadcast with u.

    Returns:
        The curvature, inf at 0.

    >>> phi_curvature([0.1, 0.5, 0.9], 2.0).round(3)
    array([121.605,   6.386,   0.668])
    """
    u, gamma = _unit("u", u), at_least_zero("gamma", gamma)
    with np.errstate(divide="ignore", over="ignore"):
        return curvature_at(u, 1 - u, gamma) / u / u


def psi(t: Any, gamma: Any) -> Float[np.ndarray, "..."]:
    """psi(t) = t phi'(t): -1 at 0, and 0 at 1 unless gamma = 0, where psi is -1 everywhere.

    Args:
        t: probabilities in [0, 1], of any shape.
        gamma: >= 0, broadcast with t.

    Returns:
        The value, at most 0.

    >>> psi([0.0, 0.1, 0.5, 1.0], 2.0).round(4)
    array([-1.    , -1.2245, -0.5966,  0.    ])
    """
    t, gamma = _unit("t", t), at_least_zero("gamma", gamma)
    return -minus_psi_at(t, 1 - t, gamma) + 0.0  # + 0.0: no negative zeros


def focal_potential(eta: Any, q: Any | None = None, *, gamma: Any) -> Float[np.ndarray, "*b"]:
    """Phi(q) = sum_k eta_k phi(q_k), with 0 phi(q_k) = 0 for every q_k; at q = eta unless q is given.

    Args:
        eta: posteriors, (K,) or (*b, K).
        q: predictions of as many classes, eta itself if None.
        gamma: >= 0, a number or an array that broadcasts with (*b).

    Returns:
        (*b), the expected focal loss.

    >>> float(focal_potential([0.7, 0.2, 0.1], gamma=2.0).round(4))
    0.415
    """
    posterior = distributions("eta", eta)
    posterior, at = same_classes(posterior, posterior if q is None else distributions("q", q))
    posterior, (g,) = broadcast(posterior, at_least_zero("gamma", gamma))
    with np.errstate(invalid="ignore"):
        return np.where(posterior > 0, posterior * phi(at, g[..., None]), 0.0).sum(-1)[()]


def entropy(eta: Any) -> Float[np.ndarray, "*b"]:
    """H(eta) = -sum_k eta_k log eta_k, which is the focal potential at gamma = 0.

    Args:
        eta: distributions, (K,) or (*b, K).

    Returns:
        (*b), in nats.

    >>> float(entropy([0.5, 0.5]).round(4))
    0.6931
    """
    return focal_potential(eta, gamma=0.0)


def conditional_risk(q: Any, eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b"]:
    """R(q; eta) = Phi(q) + lam |q - eta|^2 + lam (1 - |eta|^2): FCL's expected value at q when Y ~ eta.

    Args:
        q: predictions, (K,) or (*b, K).
        eta: posteriors, likewise.
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: >= 0, likewise.

    Returns:
        (*b), the risk.

    >>> eta = [0.7, 0.2, 0.1]
    >>> conditional_risk([eta, [0.5924, 0.2584, 0.1492]], eta, gamma=2.0, lam=1.0).round(4)  # eta is not best
    array([0.875 , 0.8249])
    """
    posterior, prediction = same_classes(distributions("eta", eta), distributions("q", q))
    posterior, (g, weight) = broadcast(posterior, at_least_zero("gamma", gamma), at_least_zero("lam", lam))
    distance = ((prediction - posterior) ** 2).sum(-1)
    spread = (posterior * (1 - posterior)).sum(-1)  # 1 - |eta|^2
    return (focal_potential(posterior, prediction, gamma=g) + weight * (distance + spread))[()]


def phi_at(u: np.ndarray, c: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """phi(u)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(c > 0, _power(u, c, gamma) * minus_log(u, c), 0.0)[()]


def minus_psi_at(u: np.ndarray, c: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """-u phi'(u) = c^gamma (1 + gamma bent), bent = -u log(u) / c."""
    return (_power(u, c, gamma) * (1 + gamma * _bent(u, c)))[()]


def curvature_at(u: np.ndarray, c: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """u^2 phi''(u) = c^gamma + gamma u c^(gamma-1) (2 + (gamma-1) bent), which is 1 at u = 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        focused = gamma * u * _power(u, c, gamma - 1) * (2 + (gamma - 1) * _bent(u, c))
        return (_power(u, c, gamma) + np.where(gamma > 0, focused, 0.0))[()]


@dataclass(frozen=True, eq=False)
class AtPosterior:
    """Of checked posteriors (*b, K); outside the support the values are limits at 0, for the caller to mask.

    support         eta_k > 0
    log_minus_psi   log of -psi(eta_k) = (1 - eta_k)^gamma (1 + gamma bent_k), bent_k = -eta_k log(eta_k) / (1 - eta_k)
    log_curvature   log of eta_k phi''(eta_k) = (1 - eta_k)^(gamma-1) (gamma (2 + (gamma-1) bent_k) + (1-eta_k)/eta_k)
    """

    support: Bool[np.ndarray, "*b k"]
    log_minus_psi: Float[np.ndarray, "*b k"]
    log_curvature: Float[np.ndarray, "*b k"]

    @property
    def centred_psi(self) -> Float[np.ndarray, "*b k"]:
        """psi_bar - psi(eta_k), psi_bar the mean over the support; 0 outside."""
        minus_psi = np.where(self.support, np.exp(self.log_minus_psi), 0.0)
        mean = minus_psi.sum(-1, keepdims=True) / self.support.sum(-1, keepdims=True)
        return np.where(self.support & (self.support.sum(-1, keepdims=True) > 1), minus_psi - mean, 0.0)


def at_posterior(eta: Float[np.ndarray, "*b k"], gamma: Float[np.ndarray, "*b"]) -> AtPosterior:
    """Both logarithms for posteriors and gammas that are checked and broadcast."""
    gamma, rest = gamma[..., None], complements(eta)
    with np.errstate(all="ignore"):  # log 0 is meant
        minus_log_rest, bend = minus_log(rest, eta), _bent(eta, rest)
        power = -gamma * minus_log_rest  # NaN for gamma = 0 at a vertex, where nothing is asked for
        focused = np.log(gamma) + np.log(2 + (gamma - 1) * bend)
        log_curvature = power + minus_log_rest + np.logaddexp(focused, minus_log(eta, rest) - minus_log_rest)
        return AtPosterior(eta > 0, power + np.log1p(gamma * bend), np.where(eta > 0, log_curvature, np.inf))


def _unit(name: str, u: Any) -> np.ndarray:
    array = as_float64(name, u)
    wrong = ~((array >= 0) & (array <= 1))
    if wrong.any():
        raise ValueError(f"{name} must be in [0, 1], got {array[wrong][0]:g}; pass a probability")
    return array


def _power(u: np.ndarray, c: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """c^exponent; 1 for the exponent 0 at c = 0, too."""
    with np.errstate(all="ignore"):
        return np.where(exponent == 0, 1.0, np.exp(exponent * -minus_log(c, u)))


def minus_log(u: np.ndarray, c: np.ndarray) -> np.ndarray:
    """-log u, from whichever of u and c is the smaller."""
    return np.where(c < 0.5, -np.log1p(-c), -np.log(u))


def _bent(u: np.ndarray, c: np.ndarray) -> np.ndarray:
    """-u log(u) / c, from 0 at u = 0 to 1 at u = 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(u > 0, np.where(c > 0, u * minus_log(u, c) / c, 1.0), 0.0)
