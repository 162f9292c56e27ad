"""Effects of groups on a calibrated map, each shrunk by as much as the groups of its column tell: empirical Bayes.

Row i of groups g_1, g_2, ... (one of every column) has logits exp(sum_c t_c[g_c]) z_i + sum_c b_c[g_c], z the common
map's log-probabilities, t ~ N(0, tau_t^2), b ~ N(0, tau_b^2 I), with the two tau of a column for all of its groups.

    effects      their posterior mode, by L-BFGS
    tau          maximise the marginal likelihood of each column, with the log-likelihood replaced by its quadratic at
                 the mode (Laplace): of a group whose log-likelihood has gradient s and Hessian -H at its effects e, and
                 with the prior's precision P, it is  (log|P| - log|H + P| + (H e + s)' (H + P)^-1 (H e + s)) / 2

Mode and tau are found in turn; of all turns the one with the largest evidence (Laplace's) is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from focalcal.core.checks import warn
from focalcal.core.numerics import softmax
from focalcal.posthoc.calibrator import CalibrationWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float

    from focalcal.core.arrays import Labels, PerRow, Scores

_FIRST = math.log(0.3)  # of log tau
_BOUNDS = (math.log(1e-3), math.log(10.0))  # the lower one is no effect to speak of
_ROUNDS = 10  # 3 to 5 were needed where groups differ
_SETTLED = 0.02  # of tau, relative to 0.1 + tau
_TOLERANCE = 1e-7  # of the gradient of the mean loss
_TAU_TOLERANCE = 1e-4  # of the gradient of a group's evidence in log tau


@dataclass(frozen=True, eq=False)
class Effects:
    """Of one column: log of the factor on the logits (G,) and bias (G, K) of each group, and the two tau.

    shrinkage  (G,) from 0, the group's own estimate of the factor, to 1, the common map
    """

    log_factor: Float[np.ndarray, " g"]
    bias: Float[np.ndarray, "g k"]
    tau: tuple[float, float]
    shrinkage: Float[np.ndarray, " g"]


@dataclass(frozen=True, eq=False)
class _Rows:
    z: Scores
    labels: Labels
    weights: PerRow
    members: Sequence[Any]  # of every column, sparse (G, n): 1 where the row is in the group


def common_scores(probs: Scores) -> Scores:
    """What a factor multiplies: log-probabilities less their row's mean."""
    logs = np.log(np.maximum(probs, 1e-300))
    return logs - logs.mean(1, keepdims=True)


def with_effects(z: Scores, effects: Sequence[Effects], places: Sequence[Labels]) -> Scores:
    """Probabilities (n, K) of rows whose groups have these places in each column; -1 is a group without an effect."""
    log_factor, bias = np.zeros((len(z), 1)), np.zeros_like(z)
    for one, place in zip(effects, places, strict=True):
        known = place >= 0
        log_factor[known, 0] += one.log_factor[place[known]]
        bias[known] += one.bias[place[known]]
    return softmax(np.exp(log_factor) * z + bias)


def fitted_effects(
    z: Scores,
    labels: Labels,
    weights: PerRow,
    places: Sequence[Labels],
    sizes: Sequence[int],
    taus: Sequence[tuple[float, float]] | None = None,
) -> list[Effects]:
    """The effects of every column; `places` are the groups' numbers, `sizes` how many there are, `taus` a start."""
    n, k = z.shape
    members = [
        csr_array((np.ones(n), (place, np.arange(n))), shape=(size, n))
        for place, size in zip(places, sizes, strict=True)
    ]
    rows = _Rows(z, labels, weights, members)
    log_taus = np.full((len(sizes), 2), _FIRST) if taus is None else np.log(np.maximum(taus, math.exp(_BOUNDS[0])))
    best, theta, largest = None, np.zeros(sum(sizes) * (1 + k)), True
    for at in range(_ROUNDS):
        theta, density, settled = _mode(rows, theta, log_taus)
        parts = _split(theta, sizes, k)
        blocks = _curvature(rows, parts)
        evidence = density - sum(_log_volume(h, log_tau) for (_, _, h), log_tau in zip(blocks, log_taus, strict=True))
        if best is None or evidence > best[0]:
            best = evidence, parts, blocks, log_taus, settled and largest
        found = [_best_taus(*block, log_tau) for block, log_tau in zip(blocks, log_taus, strict=True)]
        new, largest = np.array([log_tau for log_tau, _ in found]), all(is_best for _, is_best in found)
        tau, change = np.exp(log_taus), np.exp(new) - np.exp(log_taus)
        if (np.abs(change) / (0.1 + tau)).max() <= _SETTLED:
            break
        log_taus = np.log(tau + change / max(1, at - 1))  # from the fourth on shorter steps: some would alternate
    _, parts, blocks, log_taus, settled = best or (0.0, [], [], log_taus, True)
    if not settled:
        warn(
            "the groups' effects are not optimal: the search stopped before the gradient was small; fit fewer columns "
            "of groups, or on more rows",
            CalibrationWarning,
        )
    return [
        Effects(t, b, (math.exp(tau[0]), math.exp(tau[1])), _shrinkage(block[2], tau))
        for (t, b), block, tau in zip(parts, blocks, log_taus, strict=True)
    ]


def _split(theta: Any, sizes: Sequence[int], k: int) -> list[tuple[Any, Any]]:
    """t (G,) and b (G, K) of every column."""
    each = np.split(theta, np.cumsum([size * (1 + k) for size in sizes])[:-1])
    return [(part[:size], part[size:].reshape(size, k)) for part, size in zip(each, sizes, strict=True)]


def _mode(rows: _Rows, start: Any, log_taus: Any) -> tuple[Any, float, bool]:
    """The effects of largest posterior density, its logarithm but for the prior's norm, and whether it is the largest.

    Searched in units of tau, where the penalty is a half square.
    """
    n, k = rows.z.shape
    sizes = [member.shape[0] for member in rows.members]
    units = np.concatenate(
        [
            np.r_[np.full(size, math.exp(t)), np.full(size * k, math.exp(b))]
            for size, (t, b) in zip(sizes, log_taus, strict=True)
        ]
    )
    total, at = rows.weights.sum(), np.arange(n)

    def objective(scaled: Any) -> tuple[float, Any]:
        factor, logits = _logits(rows, _split(scaled * units, sizes, k))
        logits -= logits.max(1, keepdims=True)
        sums = np.exp(logits)
        norm = sums.sum(1, keepdims=True)
        value = rows.weights @ (np.log(norm[:, 0]) - logits[at, rows.labels])
        gap = sums / norm
        gap[at, rows.labels] -= 1
        gap *= rows.weights[:, None]
        by_factor = factor * (gap * rows.z).sum(1)
        slope = np.concatenate([np.r_[member @ by_factor, (member @ gap).ravel()] for member in rows.members])
        value += 0.5 * scaled @ scaled
        return float(value / total), (slope * units + scaled) / total

    options = {"maxiter": 500, "maxfun": 1000, "gtol": _TOLERANCE, "ftol": 0.0, "maxcor": 20}
    found = minimize(objective, start / units, jac=True, method="L-BFGS-B", options=options)
    return found.x * units, -found.fun * total, bool(np.abs(found.jac).max() <= 100 * _TOLERANCE)


def _logits(rows: _Rows, parts: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """The factor (n,) of every row, and its logits (n, K)."""
    log_factor = sum(member.T @ t for member, (t, _) in zip(rows.members, parts, strict=True))
    bias = sum(member.T @ b for member, (_, b) in zip(rows.members, parts, strict=True))
    factor = np.exp(np.clip(log_factor, -20, 20))  # a search may try anything
    return factor, factor[:, None] * rows.z + bias


def _curvature(rows: _Rows, parts: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any, Any]]:
    """Of every column: the effects (G, 1 + K), the gradient s likewise and H (G, 1 + K, 1 + K) (Gauss-Newton)."""
    n, k = rows.z.shape
    factor, logits = _logits(rows, parts)
    p = softmax(logits)
    gap = -p
    gap[np.arange(n), rows.labels] += 1
    own = factor[:, None] * rows.z  # the derivative of the logits in t
    spread = own - (p * own).sum(1, keepdims=True)
    w = rows.weights[:, None]
    tt, tb, slope_t = (w * p * spread**2).sum(1), w * p * spread, (w * gap * own).sum(1)
    found = []
    for member, (t, b) in zip(rows.members, parts, strict=True):
        h = np.zeros((member.shape[0], 1 + k, 1 + k))
        h[:, 0, 0] = member @ tt
        h[:, 0, 1:] = h[:, 1:, 0] = member @ tb
        for at in range(member.shape[0]):
            inside = member.indices[member.indptr[at] : member.indptr[at + 1]]
            weighted = w[inside] * p[inside]
            h[at, 1:, 1:] = np.diag(weighted.sum(0)) - weighted.T @ p[inside]
        slope = np.concatenate([(member @ slope_t)[:, None], member @ (w * gap)], 1)
        found.append((np.concatenate([t[:, None], b], 1), slope, h))
    return found


def _best_taus(effects: Any, slope: Any, h: Any, start: Any) -> tuple[Any, bool]:
    """log tau of factor and bias that maximise the marginal likelihood, as said at the head of this file; if they do.

    With A = (H + P)^-1 and m = A (H e + s) of every group, minus the derivative in log tau is the sum of
    1 - (A_jj + m_j^2) / tau^2 over its groups and entries: at the maximum tau^2 is the mean of A_jj + m_j^2. Within
    bounds, by L-BFGS from the best of four starts; the gradient projected on them is checked.
    """
    target = np.einsum("gij,gj->gi", h, effects) + slope
    groups, entries = target.shape

    def loss(log_taus: Any) -> tuple[float, Any]:
        precision = _precision(log_taus, entries - 1)
        both = h + np.diag(precision)
        inverse = np.linalg.inv(both)
        mean = np.einsum("gij,gj->gi", inverse, target)
        value = (np.linalg.slogdet(both)[1] - np.log(precision).sum() - (target * mean).sum(1)).sum() / 2
        parts = groups - precision * (np.einsum("gjj->j", inverse) + (mean**2).sum(0))
        return float(value) / groups, np.array([parts[0], parts[1:].sum()]) / groups

    starts = [start, np.full(2, _FIRST), np.array([_FIRST, _BOUNDS[0]]), np.array([_BOUNDS[0], _FIRST])]
    best = min(starts, key=lambda log_taus: loss(log_taus)[0])
    options = {"maxiter": 200, "gtol": _TAU_TOLERANCE / 10, "ftol": 0.0}
    found = minimize(loss, best, jac=True, method="L-BFGS-B", bounds=[_BOUNDS] * 2, options=options)
    free = np.clip(found.x - found.jac, *_BOUNDS) - found.x
    return found.x, bool(np.abs(free).max() <= _TAU_TOLERANCE)


def _log_volume(h: Any, log_taus: Any) -> float:
    """Half of log|H + P| - log|P|: what evidence an effect costs that has to be fitted."""
    precision = _precision(log_taus, h.shape[1] - 1)
    return float(np.linalg.slogdet(h + np.diag(precision))[1].sum() - len(h) * np.log(precision).sum()) / 2


def _precision(log_taus: Any, classes: int) -> Any:
    return np.exp(-2 * np.r_[log_taus[0], np.full(classes, log_taus[1])])


def _shrinkage(h: Any, log_taus: Any) -> Any:
    """The posterior variance of t over its prior one."""
    variance = np.linalg.inv(h + np.diag(_precision(log_taus, h.shape[1] - 1)))[:, 0, 0]
    return np.clip(variance * math.exp(-2 * log_taus[0]), 0, 1)
