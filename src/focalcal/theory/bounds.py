"""Bounds on the l2 distance |q* - eta|_2 between FCL's minimiser and the posterior: the paper's, and smaller ones.

eta is (K,) or (*b, K), its boundary included; gamma >= 0 and lam > 0 are numbers or arrays that broadcast with (*b).

`slope_bound` and `simplex_bound` follow from convexity, of rate 1/lam for every lam > 0 and every posterior.
They are not in the paper, whose bound of that rate needs eta in the interior, lam beyond a threshold of the order of
1 / eta_min^2, and grows like sqrt(K). Proof. Let d = q* - eta, which is 0 outside the support S of eta and sums to 0.
Stationarity, eta_k phi'(q*_k) + 2 lam d_k = nu on S, times d_k and summed gives 2 lam |d|^2 = -grad Phi(q*) . d. Phi is
convex for every gamma >= 0, so (grad Phi(q*) - grad Phi(eta)) . d >= 0, and grad Phi(eta)_k = psi(eta_k). Hence

    2 lam |d|^2 <= -sum_S psi(eta_k) d_k = sum_S (psi_bar - psi(eta_k)) d_k <= |psi_bar - psi(eta)|_2 |d|_2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.checks import whole_number
from focalcal.theory.posteriors import above_zero, at_least_zero, broadcast, distributions, one_number
from focalcal.theory.potential import at_posterior, entropy, focal_potential, psi

if TYPE_CHECKING:
    from jaxtyping import Float


def global_bound(eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b"]:
    """sqrt(Phi(eta) / lam), Phi(eta) = sum_k eta_k phi(eta_k): the paper's Theorem 5.4, for every posterior and lam.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: > 0, likewise.

    Returns:
        (*b), at least |q* - eta|_2.

    >>> float(global_bound([0.7, 0.2, 0.1], gamma=2.0, lam=1.0).round(3))  # the distance is 0.132
    0.644
    """
    posterior, (g, weight) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma), above_zero("lam", lam))
    return (np.sqrt(focal_potential(posterior, gamma=g)) / np.sqrt(weight))[()]


def entropy_bound(eta: Any, *, lam: Any) -> Float[np.ndarray, "*b"]:
    """sqrt(H(eta) / lam), H the entropy in nats: Theorem 5.4 without gamma.

    Args:
        eta: posteriors, (K,) or (*b, K).
        lam: > 0, a number or an array that broadcasts with (*b).

    Returns:
        (*b), at least `global_bound` at any gamma.

    >>> float(entropy_bound([0.7, 0.2, 0.1], lam=1.0).round(3))
    0.895
    """
    posterior, (weight,) = broadcast(distributions("eta", eta), above_zero("lam", lam))
    return (np.sqrt(entropy(posterior)) / np.sqrt(weight))[()]


def log_classes_bound(classes: int, *, lam: Any) -> Float[np.ndarray, "*b"]:
    """sqrt(log K / lam): Theorem 5.4 over all posteriors of K classes.

    Args:
        classes: K, at least 1.
        lam: > 0, a number or an array.

    Returns:
        The bound, of the shape of lam.

    >>> log_classes_bound(10, lam=[1.0, 100.0]).round(3)
    array([1.517, 0.152])
    """
    return (np.sqrt(np.log(class_count(classes))) / np.sqrt(above_zero("lam", lam)))[()]


def interior_constant(gamma: Any) -> Float[np.ndarray, "*b"]:
    """A = 1 + gamma max(1, 2^(1-gamma)) of the paper's Theorem 5.5.

    Args:
        gamma: >= 0, a number or an array.

    Returns:
        A, of the shape of gamma.

    >>> interior_constant([0.0, 1.0, 2.0])
    array([1., 2., 3.])
    """
    g = at_least_zero("gamma", gamma)
    return (1 + g * np.maximum(1.0, np.exp2(1 - g)))[()]


def interior_threshold(eta: Any, *, gamma: Any) -> Float[np.ndarray, "*b"]:
    """lam0 = 4 Phi(eta) / eta_min^2, from which on `interior_bound` holds; eta_min is the least over the support.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).

    Returns:
        (*b), lam0 for each posterior.

    >>> float(interior_threshold([0.7, 0.2, 0.1], gamma=2.0).round(1))
    166.0
    """
    posterior, (g,) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma))
    smallest = np.where(posterior > 0, posterior, 1.0).min(-1)
    with np.errstate(over="ignore"):
        return (4 * focal_potential(posterior, gamma=g) / smallest / smallest)[()]


def interior_bound(eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b"]:
    """2 A sqrt(|S|) / lam where lam >= lam0 (`interior_threshold`), inf where nothing is promised.

    S is the support of eta. In the interior |S| = K, and this is the paper's Theorem 5.5. On a face q*_k = 0 wherever
    eta_k = 0, so that q* solves the same problem with |S| classes, to which eta is interior: the theorem holds there.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: > 0, likewise.

    Returns:
        (*b), at least |q* - eta|_2.

    >>> interior_bound([0.7, 0.2, 0.1], gamma=2.0, lam=[100.0, 1000.0]).round(4)
    array([   inf, 0.0104])
    """
    posterior, (g, weight) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma), above_zero("lam", lam))
    with np.errstate(over="ignore"):
        bound = 2 * interior_constant(g) * np.sqrt((posterior > 0).sum(-1)) / weight
    return np.where(weight >= interior_threshold(eta, gamma=gamma), bound, np.inf)[()]


def slope_bound(eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b"]:
    """|psi_bar - psi(eta)|_2 / (2 lam), psi_bar and the norm over the support of eta: the norm of `first_order_bias`.

    So the first-order term never understates the distance, and the bound is sharp as lam grows. It is 0 exactly where
    q* = eta for every lam.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: > 0, likewise.

    Returns:
        (*b), at least |q* - eta|_2.

    >>> slope_bound([0.7, 0.2, 0.1], gamma=2.0, lam=[1.0, 1000.0]).round(6)
    array([0.388588, 0.000389])
    """
    posterior, (g, weight) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma), above_zero("lam", lam))
    with np.errstate(over="ignore"):
        return (np.linalg.norm(at_posterior(posterior, g).centred_psi, axis=-1) / 2 / weight)[()]


def simplex_constant(gamma: float) -> float:
    """B = max over 0 < t <= 1 of |psi(t) + 1| / sqrt(t), which bounds |psi_bar - psi(eta)|_2 for any number of classes.

    The mean is the best constant to subtract, so |psi_bar - psi(eta)|_2^2 <= sum_S (psi(eta_k) + 1)^2, and this is
    sum_S eta_k (psi(eta_k) + 1)^2 / eta_k <= B^2. B is 0 for gamma = 0 and 1 for gamma = 1. With many classes it is
    nearly attained, by m classes of probability near 1/m each where 1/m is near the maximiser, and many tiny ones: to
    99.9 % for gamma up to 1.38 and from 2.58 on, to 96.6 % for gamma = 2.2, and to 95.3 % at worst, for gamma = 2.41.

    Args:
        gamma: >= 0, one number.

    Returns:
        B.

    >>> round(simplex_constant(2.0), 3)
    1.024
    """
    from scipy.optimize import minimize_scalar  # a quarter of a second, which a single solve need not wait for

    g = one_number("gamma", at_least_zero("gamma", gamma))
    if g == 0:
        return 0.0

    def minus_ratio(log_t: Any) -> Any:
        return -np.abs(psi(np.exp(log_t), g) + 1) / np.exp(log_t / 2)

    # psi + 1 has one zero, below 1/2, and the ratio a maximum on either side of it; all scale like 1 / (1 + gamma).
    grid = np.linspace(-np.log1p(g) - 12, 0.0, 4001)
    values = minus_ratio(grid)
    best = int(values.argmin())
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = minimize_scalar(minus_ratio, bounds=around, method="bounded", options={"xatol": 1e-9})
    return -min(float(refined.fun), float(values[best]))


def simplex_bound(*, gamma: float, lam: Any) -> Float[np.ndarray, "*b"]:
    """B / (2 lam) with B = `simplex_constant`: over all posteriors, whatever the number of classes.

    Args:
        gamma: >= 0, one number.
        lam: > 0, a number or an array.

    Returns:
        The bound, of the shape of lam.

    >>> float(simplex_bound(gamma=2.0, lam=100.0).round(5))
    0.00512
    """
    with np.errstate(over="ignore"):
        return (simplex_constant(gamma) / 2 / above_zero("lam", lam))[()]


def class_count(classes: Any) -> int:
    """A number of classes, checked: whole and at least 1."""
    return whole_number("classes", classes, least=1, most=10**9, remedy="give the number of classes")
