"""The temperature that Focal Calibration Loss applies to posteriors, on average (docs/math/operating_point.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.theory.bias import pre_asymptotic_bias
from focalcal.theory.minimiser import minimise
from focalcal.theory.population import state_rows
from focalcal.theory.posteriors import at_least_zero, complements, distributions, focusing, one_number, state_weights
from focalcal.theory.potential import minus_log

if TYPE_CHECKING:
    from jaxtyping import Float

_SETTLED = 4e-15  # a relative step of 1/T that is rounding
_MOST_STEPS = 100
_FACTOR = 4.0  # the farthest that a step moves 1/T
_ROUNDING = 1e-14  # logarithms in a row that differ by no more do so by rounding alone


def effective_temperature(eta: Any, *, gamma: Any, lam: Any, weights: Any = None) -> Float[np.ndarray, "*s"]:
    """T_pop(gamma, lam) = argmin_T  sum_i w_i sum_k -eta_ik log softmax_k(log q*(eta_i) / T), w summing to one.

    Below 1 FCL makes probabilities less confident than the posteriors, which is the rule; above 1 more confident, which
    happens where posteriors are flat over many classes. 1 for gamma = 0, and in the limit of a large lam. 1 by
    convention where no temperature is better than another, because all posteriors are uniform over some classes.

    Args:
        eta: (N, K), the posteriors, or one (K,).
        gamma: >= 0, a number or an array.
        lam: >= 0, broadcast with gamma.
        weights: (N,), the posteriors' probabilities, None for equal ones.

    Returns:
        One temperature per pair of gamma and lam.

    >>> eta = [[0.9, 0.06, 0.04], [0.5, 0.3, 0.2]]
    >>> float(effective_temperature(eta, gamma=3.0, lam=1.0).round(4))
    0.6228
    """
    posterior, weight = weighted_posteriors(eta, weights)
    focus, anchor = np.broadcast_arrays(focusing(gamma), at_least_zero("lam", lam))
    pairs = zip(focus.flat, anchor.flat, strict=True)
    inverse = [inverse_temperature(posterior, weight, float(g), float(a)) for g, a in pairs]
    return (1 / np.array(inverse, dtype=np.float64).reshape(focus.shape))[()]


def small_distortion_temperature(eta: Any, *, gamma: float, lam: float, weights: Any = None) -> float:
    """T_pop in closed form, to first order in d = q* - eta: 1/T - 1 = -sum_i w_i d_i . log eta_i / sum_i w_i V_i.

    V_i is the variance of log eta_ik under eta_i, and d_i the `pre_asymptotic_bias`, so that nothing is solved for. The
    error falls with 1 / lam^2.

    Args:
        eta: (N, K), the posteriors, or one (K,).
        gamma: >= 0, one number.
        lam: >= 0, one number.
        weights: (N,), the posteriors' probabilities, None for equal ones.

    Returns:
        The temperature.

    >>> eta = [[0.9, 0.06, 0.04], [0.5, 0.3, 0.2]]
    >>> exact = effective_temperature(eta, gamma=3.0, lam=10.0)
    >>> round(small_distortion_temperature(eta, gamma=3.0, lam=10.0), 3), float(exact.round(3))
    (0.898, 0.892)
    """
    posterior, weight = weighted_posteriors(eta, weights)
    gamma, lam = one_number("gamma", focusing(gamma)), one_number("lam", at_least_zero("lam", lam))
    bias = pre_asymptotic_bias(posterior, gamma=gamma, lam=lam)
    log_eta, _ = _relative_logs(posterior)
    mean, variance = _moments(posterior, log_eta)
    spread = weight @ variance
    if not spread > 0:
        return 1.0
    return float(1 / (1 - weight @ ((log_eta - mean[:, None]) * bias).sum(1) / spread))


def weighted_posteriors(eta: Any, weights: Any) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, " n"]]:
    """Checked posteriors and weights; a posterior of weight 0 is left out."""
    posterior = state_rows("eta", np.atleast_2d(distributions("eta", eta)))
    weight = state_weights(weights, len(posterior))
    return posterior[weight > 0], weight[weight > 0]


def inverse_temperature(
    eta: Float[np.ndarray, "n k"], weight: Float[np.ndarray, " n"], gamma: float, lam: float
) -> float:
    """1 / T_pop, for checked arguments.

    With b = 1/T and l = log q* the mean cross-entropy f is convex in b,

        f'(b) = sum_i w_i (E_i[l] - eta_i . l_i),        f''(b) = sum_i w_i Var_i[l],

    with the moments of row i under softmax(b l_i); l is shifted by its row's largest entry. Newton's steps, inside the
    bracket that the sign of f' gives.
    """
    if gamma == 0:
        return 1.0
    log_q, support = _relative_logs(minimise(eta, gamma=gamma, lam=lam).unwrap())
    target = (eta * log_q).sum(1)
    b, low, high = 1.0, 0.0, np.inf  # f' < 0 at low and > 0 at high
    for _ in range(_MOST_STEPS):
        powered = np.where(support, np.exp(b * log_q), 0.0)
        mean, variance = _moments(powered / powered.sum(1, keepdims=True), log_q)
        slope, curvature = float(weight @ (mean - target)), float(weight @ variance)
        if not curvature > 0:  # every l_i is constant on its support
            return 1.0
        low, high = (low, b) if slope > 0 else (b, high)
        proposal = min(max(b - slope / curvature, b / _FACTOR), b * _FACTOR)
        if not low <= proposal <= high:
            proposal = (low + high) / 2
        if abs(proposal - b) <= _SETTLED * b:
            return proposal
        b = proposal
    return b


def _relative_logs(probs: Float[np.ndarray, "n k"]) -> tuple[Float[np.ndarray, "n k"], np.ndarray]:
    """log p minus its largest entry in the row, 0 off the support and where a row is uniform on it; and the support."""
    support = probs > 0
    with np.errstate(divide="ignore", invalid="ignore"):  # log 0 is meant, and masked
        logs = -minus_log(probs, complements(probs))
        logs = np.where(support, logs - logs.max(1, keepdims=True), 0.0)
    logs[np.abs(logs).max(1) <= _ROUNDING] = 0.0
    return logs, support


def _moments(
    probs: Float[np.ndarray, "n k"], values: Float[np.ndarray, "n k"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Mean and variance of each row of `values` under that row of `probs`."""
    mean = (probs * values).sum(1)
    return mean, (probs * (values - mean[:, None]) ** 2).sum(1)
