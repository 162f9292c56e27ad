"""The slope and the curvature of the focal potential at q = eta, without loss near the vertices of the simplex.

Both are logarithms, from eta_k and its `complements`, so that (1 - eta_k)^gamma cannot underflow, nor 1/eta_k overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focalcal.theory.posteriors import complements
from focalcal.theory.potential import bent, minus_log

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


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
        minus_log_rest, bend = minus_log(rest, eta), bent(eta, rest)
        power = -gamma * minus_log_rest  # NaN for gamma = 0 at a vertex, where nothing is asked for
        focused = np.log(gamma) + np.log(2 + (gamma - 1) * bend)
        log_curvature = power + minus_log_rest + np.logaddexp(focused, minus_log(eta, rest) - minus_log_rest)
        return AtPosterior(eta > 0, power + np.log1p(gamma * bend), np.where(eta > 0, log_curvature, np.inf))
