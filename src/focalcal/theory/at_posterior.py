"""The slope and the curvature of the focal potential at q = eta, without loss near the vertices of the simplex.

There 1 - eta_k of the largest class cannot be had from eta_k, which may round to 1: it is the sum of the others. Both
quantities are logarithms, so that (1 - eta_k)^gamma cannot underflow, nor 1/eta_k overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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
    gamma = gamma[..., None]
    top = eta.argmax(-1)[..., None]
    others = eta.copy()
    np.put_along_axis(others, top, 0.0, -1)
    rest = others.sum(-1, keepdims=True)
    with np.errstate(all="ignore"):  # log 0 and 0 / 0 have limits, which are put in below
        log_eta, complement, log_complement = np.log(eta), 1 - others, np.log1p(-others)
        top_eta = np.take_along_axis(eta, top, -1)
        np.put_along_axis(log_eta, top, np.where(rest < 0.5, np.log1p(-rest), np.log(top_eta)), -1)
        np.put_along_axis(complement, top, rest, -1)
        np.put_along_axis(log_complement, top, np.log(rest), -1)
        bent = np.where(eta > 0, np.where(complement > 0, -log_eta * eta / complement, 1.0), 0.0)
        power = gamma * log_complement  # NaN for gamma = 0 at a vertex, where nothing is asked for
        focused = np.log(gamma) + np.log(2 + (gamma - 1) * bent)
        log_curvature = power - log_complement + np.logaddexp(focused, log_complement - log_eta)
        return AtPosterior(eta > 0, power + np.log1p(gamma * bent), np.where(eta > 0, log_curvature, np.inf))
