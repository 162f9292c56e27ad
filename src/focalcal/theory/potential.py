"""The focal term phi(u) = -(1 - u)^gamma log u and what is made of it, on NumPy arrays.

Everywhere u may be 0 or 1: the limits are returned, and never a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.theory.posteriors import at_least_zero, broadcast, distributions

if TYPE_CHECKING:
    from jaxtyping import Float


def phi(u: Any, gamma: Any) -> Float[np.ndarray, "..."]:
    """phi(u) = -(1 - u)^gamma log u; phi(0) = inf, phi(1) = 0."""
    u, gamma = _unit(u), at_least_zero("gamma", gamma)
    with np.errstate(divide="ignore"):
        return _power(1 - u, gamma) * -np.log(u) + 0.0  # + 0.0: no negative zeros


def phi_slope(u: Any, gamma: Any) -> Float[np.ndarray, "..."]:
    """phi'(u) = gamma (1-u)^(gamma-1) log u - (1-u)^gamma / u, which is negative; -inf at 0; at 1, 0 or -1 (gamma = 0).

    Computed as -(1-u)^gamma (gamma r + 1/u) with r = -log(u) / (1-u), which tends to 1 as u -> 1: for gamma < 1 the
    two terms above are infinite there and their sum is not.
    """
    u, gamma = _unit(u), at_least_zero("gamma", gamma)
    with np.errstate(divide="ignore"):
        return psi(u, gamma) / u


def phi_curvature(u: Any, gamma: Any) -> Float[np.ndarray, "..."]:
    """phi''(u) > 0 on (0, 1) for every gamma >= 0 (docs/math/unique_minimiser.md).

    phi''(u) = -gamma (gamma-1) (1-u)^(gamma-2) log u + 2 gamma (1-u)^(gamma-1) / u + (1-u)^gamma / u^2
    """
    u, gamma = _unit(u), at_least_zero("gamma", gamma)
    c = 1 - u
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bent = np.where(gamma > 0, _power(c, gamma - 1) * gamma * ((gamma - 1) * _log_ratio(u) + 2 / u), 0.0)
        return np.where(u > 0, bent + _power(c, gamma) / u / u, np.inf)


def psi(t: Any, gamma: Any) -> Float[np.ndarray, "..."]:
    """psi(t) = t phi'(t): -1 at 0, and 0 at 1 unless gamma = 0, where psi is -1 everywhere."""
    t, gamma = _unit(t), at_least_zero("gamma", gamma)
    with np.errstate(divide="ignore", invalid="ignore"):
        bent = np.where(t > 0, gamma * t * _log_ratio(t), 0.0)
        return -_power(1 - t, gamma) * (bent + 1) + 0.0


def focal_potential(eta: Any, q: Any | None = None, *, gamma: Any) -> Float[np.ndarray, "*b"]:
    """Phi(q) = sum_k eta_k phi(q_k), with 0 phi(q_k) = 0 for every q_k; at q = eta unless q is given."""
    posterior = distributions("eta", eta)
    at = posterior if q is None else distributions("q", q)
    posterior, (g,) = broadcast(np.broadcast_arrays(posterior, at)[0], at_least_zero("gamma", gamma))
    with np.errstate(invalid="ignore"):
        return np.where(posterior > 0, posterior * phi(at, g[..., None]), 0.0).sum(-1)[()]


def entropy(eta: Any) -> Float[np.ndarray, "*b"]:
    """H(eta) = -sum_k eta_k log eta_k, which is the focal potential at gamma = 0."""
    return focal_potential(eta, gamma=0.0)


def conditional_risk(q: Any, eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b"]:
    """R(q; eta) = Phi(q) + lam |q - eta|^2 + lam (1 - |eta|^2): FCL's expected value at q when Y ~ eta."""
    posterior, prediction = distributions("eta", eta), distributions("q", q)
    distance = ((prediction - posterior) ** 2).sum(-1)
    spread = (posterior * (1 - posterior)).sum(-1)  # 1 - |eta|^2
    return focal_potential(posterior, prediction, gamma=gamma) + at_least_zero("lam", lam) * (distance + spread)


def _unit(u: Any) -> np.ndarray:
    array = np.asarray(u, dtype=np.float64)
    if not ((array >= 0) & (array <= 1)).all():
        wrong = array[~((array >= 0) & (array <= 1))][0]
        raise ValueError(f"u must be in [0, 1], got {wrong:g}; pass a probability")
    return array


def _power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", under="ignore", over="ignore"):
        return np.power(base, exponent)


def _log_ratio(u: np.ndarray) -> np.ndarray:
    """r(u) = -log(u) / (1 - u), 1 at u = 1."""
    c = 1 - u
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(c > 0, -np.log(u) / c, 1.0)
