"""A batched Newton method for the conditional-risk minimiser, in logarithms (docs/math/solver.md).

On the support of eta, with w = -phi' and s = -nu, stationarity reads  eta_k w(q_k) - 2 lam d_k = s,  d = q - eta.
Terms are moved to the side where they are positive,

    left_k = eta_k w(q_k) + 2 lam max(-d_k, 0),    right_k = s + 2 lam max(d_k, 0),    rho_k = log left_k - log right_k,

so that |tanh(rho_k / 2)| is the relative residual, and rho is close to linear in log q_k and log s over hundreds of
orders of magnitude. The class m of the largest eta_k is eliminated: d_m is minus the sum of the other d_k, and 1 - q_m
the sum of the other q_k, so nothing is lost when q_m rounds to one. A Newton step costs O(K).

With the absolute anchor, eta_k (w(q_k) + 2 lam) = s, the same holds with right_k = t + 2 lam (eta_m - eta_k) and the
unknown t = s - 2 lam eta_m in place of s.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from focalcal import _native
from focalcal.theory.newton_point import NewtonPoint, Problems, newton_point, start

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_AT_ONCE = 1 << 15  # elements: what one step computes stays in the cache


@dataclass(frozen=True)
class Roots:
    """What was found for each row: q, d, log s (log t with the absolute anchor), and the figures."""

    q: Float[np.ndarray, "b k"]
    displacement: Float[np.ndarray, "b k"]
    log_multiplier: Float[np.ndarray, " b"]
    stationarity: Float[np.ndarray, " b"]
    floor: Float[np.ndarray, " b"]
    excess: Float[np.ndarray, " b"]  # how far the worst class is above its own floor
    steps: Int[np.ndarray, " b"]

    def put(self, at: Int[np.ndarray, " n"], point: NewtonPoint, swap: Int[np.ndarray, "b k"]) -> None:
        """Record the points of those rows."""
        self.q[at] = np.take_along_axis(point.q, swap[at], 1)
        self.displacement[at] = np.take_along_axis(point.d, swap[at], 1)
        self.log_multiplier[at] = point.sigma
        self.stationarity[at] = np.tanh(point.error / 2)
        self.floor[at] = np.tanh(point.floor / 2)
        self.excess[at] = point.excess


def solve_rows(
    eta: Float[np.ndarray, "b k"],
    gamma: Float[np.ndarray, " b"],
    lam: Float[np.ndarray, " b"],
    *,
    max_steps: int,
    absolute: bool = False,
) -> Roots:
    """The minimiser for each row of eta; at a vertex, where there is nothing to solve, d = 0 and nu = phi'(1).

    By compiled code where there is some; it computes what `solve_with_numpy` does.
    """
    if _native.available():
        return solve_natively(eta, gamma, lam, max_steps=max_steps, absolute=absolute)
    at_once = max(1, _AT_ONCE // eta.shape[1])
    pieces = [slice(start, start + at_once) for start in range(0, max(len(eta), 1), at_once)]
    solved = [
        solve_with_numpy(eta[piece], gamma[piece], lam[piece], max_steps=max_steps, absolute=absolute)
        for piece in pieces
    ]
    return Roots(*(np.concatenate([getattr(part, field.name) for part in solved]) for field in fields(Roots)))


def solve_with_numpy(
    eta: Float[np.ndarray, "b k"],
    gamma: Float[np.ndarray, " b"],
    lam: Float[np.ndarray, " b"],
    *,
    max_steps: int,
    absolute: bool = False,
) -> Roots:
    """All rows at once, on whole arrays."""
    count = len(eta)
    roots = Roots(
        q=eta.copy(),
        displacement=np.zeros(eta.shape),
        log_multiplier=np.where(gamma == 0, 0.0, -np.inf),
        stationarity=np.zeros(count),
        floor=np.zeros(count),
        excess=np.zeros(count),
        steps=np.zeros(count, dtype=np.int64),
    )
    at = np.flatnonzero((eta > 0).sum(1) > 1)
    swap = _top_first(eta)
    with np.errstate(all="ignore"):  # log 0 is meant, and what is NaN outside the support is masked
        rows = Problems.of(np.take_along_axis(eta, swap, 1)[at], gamma[at], lam[at], absolute=absolute)
        point = newton_point(rows, *start(rows))
        share = point.reach
        for _ in range(max_steps):
            if not len(at):
                break
            trial = newton_point(rows, *point.moved(rows.eta, share))
            better = trial.excess < point.excess * (1 - 1e-4 * share)
            better &= trial.q[:, 0] > np.maximum(0.1 * point.q[:, 0], rows.lowest)
            point = point.improved(better, trial)
            share = np.where(better, point.reach, share / 2)
            roots.steps[at] += 1
            # At the floor, or so near to it that rounding decides which step looks better.
            done = (point.excess == 0) | ((point.excess < 1e-12) & (share < 0.1)) | (share < 1e-12)
            if done.any():
                roots.put(at[done], point[done], swap)
                left = ~done
                at, rows, point, share = at[left], rows[left], point[left], share[left]
        roots.put(at, point, swap)
    return roots


def solve_natively(
    eta: Float[np.ndarray, "b k"],
    gamma: Float[np.ndarray, " b"],
    lam: Float[np.ndarray, " b"],
    *,
    max_steps: int = 200,
    absolute: bool = False,
) -> Roots:
    """The same by compiled code, from arrays in any layout."""
    eta, gamma, lam = (np.ascontiguousarray(given, dtype=np.float64) for given in (eta, gamma, lam))
    if eta.ndim != 2 or gamma.shape != eta.shape[:1] or lam.shape != eta.shape[:1]:
        raise ValueError(f"eta must be (B, K), gamma and lam (B,), got {eta.shape}, {gamma.shape} and {lam.shape}")
    q, d = np.empty(eta.shape), np.empty(eta.shape)
    figures, steps = np.empty((4, len(eta))), np.empty(len(eta), dtype=np.int64)
    _native.kernel().minimisers(
        eta.ctypes.data, gamma.ctypes.data, lam.ctypes.data, *eta.shape, min(max_steps, 2**62), absolute,
        q.ctypes.data, d.ctypes.data, figures.ctypes.data, steps.ctypes.data,
    )  # fmt: skip
    log_multiplier, stationarity, floor, excess = figures
    return Roots(q, d, log_multiplier, stationarity, floor, excess, steps)


def _top_first(eta: Float[np.ndarray, "b k"]) -> Int[np.ndarray, "b k"]:
    """Indices that exchange column 0 and the largest entry, in each row. Doing it twice undoes it."""
    index = np.tile(np.arange(eta.shape[1]), (len(eta), 1))
    top = eta.argmax(1)
    index[:, 0] = top
    index[np.arange(len(eta)), top] = 0
    return index
