"""The paper's bounds on the l2 distance |q* - eta|_2 between FCL's minimiser and the posterior.

eta is (K,) or (*b, K), its boundary included; gamma >= 0 and lam > 0 are numbers or arrays that broadcast with (*b).
`sharp_bounds` has smaller ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.checks import whole_number
from focalcal.theory.posteriors import above_zero, at_least_zero, broadcast, distributions
from focalcal.theory.potential import entropy, focal_potential

if TYPE_CHECKING:
    from jaxtyping import Float


def global_bound(eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b"]:
    """sqrt(Phi(eta) / lam), Phi(eta) = sum_k eta_k phi(eta_k): the paper's Theorem 5.4, for every posterior and lam."""
    posterior, (g, weight) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma), above_zero("lam", lam))
    return (np.sqrt(focal_potential(posterior, gamma=g)) / np.sqrt(weight))[()]


def entropy_bound(eta: Any, *, lam: Any) -> Float[np.ndarray, "*b"]:
    """sqrt(H(eta) / lam), H the entropy in nats: Theorem 5.4 without gamma."""
    posterior, (weight,) = broadcast(distributions("eta", eta), above_zero("lam", lam))
    return (np.sqrt(entropy(posterior)) / np.sqrt(weight))[()]


def log_classes_bound(classes: int, *, lam: Any) -> Float[np.ndarray, "*b"]:
    """sqrt(log K / lam): Theorem 5.4 over all posteriors of K classes."""
    return (np.sqrt(np.log(class_count(classes))) / np.sqrt(above_zero("lam", lam)))[()]


def interior_constant(gamma: Any) -> Float[np.ndarray, "*b"]:
    """A = 1 + gamma max(1, 2^(1-gamma)) of the paper's Theorem 5.5."""
    g = at_least_zero("gamma", gamma)
    return (1 + g * np.maximum(1.0, np.exp2(1 - g)))[()]


def interior_threshold(eta: Any, *, gamma: Any) -> Float[np.ndarray, "*b"]:
    """lam0 = 4 Phi(eta) / eta_min^2, from which on `interior_bound` holds; eta_min is the least over the support."""
    posterior, (g,) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma))
    smallest = np.where(posterior > 0, posterior, 1.0).min(-1)
    with np.errstate(over="ignore"):
        return (4 * focal_potential(posterior, gamma=g) / smallest / smallest)[()]


def interior_bound(eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b"]:
    """2 A sqrt(|S|) / lam where lam >= lam0 (`interior_threshold`), inf where nothing is promised.

    S is the support of eta. In the interior |S| = K, and this is the paper's Theorem 5.5. On a face q*_k = 0 wherever
    eta_k = 0, so that q* solves the same problem with |S| classes, to which eta is interior: the theorem holds there.
    """
    posterior, (g, weight) = broadcast(distributions("eta", eta), at_least_zero("gamma", gamma), above_zero("lam", lam))
    with np.errstate(over="ignore"):
        bound = 2 * interior_constant(g) * np.sqrt((posterior > 0).sum(-1)) / weight
    return np.where(weight >= interior_threshold(eta, gamma=gamma), bound, np.inf)[()]


def class_count(classes: Any) -> int:
    """A number of classes, checked: whole and at least 1."""
    return whole_number("classes", classes, least=1, remedy="give the number of classes")
