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

from focalcal.theory.at_posterior import at_posterior

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_EPS = float(np.finfo(np.float64).eps)
_HUGE = float(np.finfo(np.float64).max)  # keeps infinity out of quotients


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

    def put(self, at: Int[np.ndarray, " n"], point: _Point, swap: Int[np.ndarray, "b k"]) -> None:
        """Record the points of those rows."""
        self.q[at] = np.take_along_axis(point.q, swap[at], 1)
        self.displacement[at] = np.take_along_axis(point.d, swap[at], 1)
        self.log_multiplier[at] = point.sigma
        self.stationarity[at] = np.tanh(point.error / 2)
        self.floor[at] = np.tanh(point.floor / 2)
        self.excess[at] = point.excess


@dataclass(frozen=True)
class _Rows:
    """The problems, one a row, with the class m in column 0."""

    eta: Float[np.ndarray, "b k"]
    log_eta: Float[np.ndarray, "b k"]
    gamma: Float[np.ndarray, "b 1"]
    log_2lam: Float[np.ndarray, "b 1"]
    log_pull: Float[np.ndarray, "b k"] | None  # of the absolute anchor: log 2 lam (eta_m - eta_k)

    def __getitem__(self, rows: np.ndarray) -> _Rows:
        log_pull = None if self.log_pull is None else self.log_pull[rows]
        return _Rows(self.eta[rows], self.log_eta[rows], self.gamma[rows], self.log_2lam[rows], log_pull)


@dataclass(frozen=True)
class _Point:
    """Where the rows stand, how far from a solution, and the Newton step from there."""

    q: Float[np.ndarray, "b k"]
    d: Float[np.ndarray, "b k"]  # q - eta, kept beside q because it is known to more digits than the difference is
    sigma: Float[np.ndarray, " b"]  # log s
    error: Float[np.ndarray, " b"]  # max_k |rho_k|
    floor: Float[np.ndarray, " b"]  # the largest, over k, of what rounding alone can make of |rho_k|
    excess: Float[np.ndarray, " b"]  # max_k of |rho_k| beyond its own rounding; 0 is perfect, inf is off the simplex
    d_log_q: Float[np.ndarray, "b k"]
    d_sigma: Float[np.ndarray, " b"]

    def __getitem__(self, rows: np.ndarray) -> _Point:
        return _Point(*(getattr(self, f.name)[rows] for f in fields(self)))

    def put(self, rows: np.ndarray, other: _Point) -> None:
        """Overwrite those rows."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(other, field.name)

    def moved(
        self, eta: Float[np.ndarray, "b k"], share: Float[np.ndarray, " b"]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, d and log s after that share of the step: multiplicative in q, so that q stays positive.

        Of q and d the one with more correct digits gives the other, so that they cannot drift apart.
        """
        step = self.q * np.expm1(share[:, None] * self.d_log_q)
        q, d = self.q + step, self.d + step
        far = np.abs(q - eta) > eta / 2
        return np.where(far, q, eta + d), np.where(far, q - eta, d), self.sigma + share * self.d_sigma


def solve_rows(
    eta: Float[np.ndarray, "b k"],
    gamma: Float[np.ndarray, " b"],
    lam: Float[np.ndarray, " b"],
    *,
    max_steps: int,
    absolute: bool = False,
) -> Roots:
    """The minimiser for each row of eta; at a vertex, where there is nothing to solve, d = 0 and nu = phi'(1)."""
    count = len(eta)
    found = Roots(
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
    lowest = 0.5 / (eta > 0).sum(1)  # of q_m: at the solution it is the largest of the q_k, as eta_m is of the eta_k
    with np.errstate(all="ignore"):  # log 0 is meant, and what is NaN outside the support is masked
        rows = _rows(np.take_along_axis(eta, swap, 1)[at], gamma[at], lam[at], absolute=absolute)
        point = _evaluate(rows, *_start(rows))
        share = _whole_step(point)
        for _ in range(max_steps):
            if not len(at):
                break
            trial = _evaluate(rows, *point.moved(rows.eta, share))
            better = trial.excess < point.excess * (1 - 1e-4 * share)
            better &= trial.q[:, 0] > np.maximum(0.1 * point.q[:, 0], lowest[at])
            point.put(better, trial[better])
            share = np.where(better, _whole_step(point), share / 2)
            found.steps[at] += 1
            # At the floor, or so near to it that rounding decides which step looks better.
            done = (point.excess == 0) | ((point.excess < 1e-12) & (share < 0.1)) | (share < 1e-12)
            found.put(at[done], point[done], swap)
            at, rows, point, share = at[~done], rows[~done], point[~done], share[~done]
        found.put(at, point, swap)
    return found


def _top_first(eta: Float[np.ndarray, "b k"]) -> Int[np.ndarray, "b k"]:
    """Indices that exchange column 0 and the largest entry, in each row. Doing it twice undoes it."""
    index = np.tile(np.arange(eta.shape[1]), (len(eta), 1))
    top = eta.argmax(1)
    index[:, 0] = top
    index[np.arange(len(eta)), top] = 0
    return index


def _rows(eta: np.ndarray, gamma: np.ndarray, lam: np.ndarray, *, absolute: bool) -> _Rows:
    log_2lam = (np.log(2.0) + np.log(lam))[:, None]
    log_pull = log_2lam + np.log(eta[:, :1] - eta) if absolute else None
    return _Rows(eta, np.log(eta), gamma[:, None], log_2lam, log_pull)


def _start(rows: _Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q = eta, and the s that is right for an infinitely strong anchor: the mean of -psi(eta_k) over the support."""
    here = at_posterior(rows.eta, rows.gamma[:, 0])
    log_minus_psi = np.where(here.support, here.log_minus_psi, -np.inf)
    mean = np.logaddexp.reduce(log_minus_psi, 1) - np.log(here.support.sum(1))
    return rows.eta, np.zeros(rows.eta.shape), mean


def _whole_step(point: _Point) -> Float[np.ndarray, " b"]:
    """The largest share of the step, up to one, that keeps every q_k <= 1."""
    room = np.where(point.d_log_q > 0, -np.log(point.q) / point.d_log_q, np.inf)
    return np.minimum(1.0, room.min(1))


@dataclass(frozen=True)
class _Focal:
    """The focal term's part of a point. Each class has its own variable: q_k, and 1 - q_m for the class m."""

    own: Float[np.ndarray, "b k"]
    log_own: Float[np.ndarray, "b k"]
    log_weight: Float[np.ndarray, "b k"]  # log of eta_k w(q_k)
    elasticity: Float[np.ndarray, "b k"]  # |d log w / d log own|
    rounding: Float[np.ndarray, "b k"]  # what it does to log_weight
    spacing: Float[np.ndarray, "b k"]  # of own, relative


def _focal(rows: _Rows, q: Float[np.ndarray, "b k"], rest: Float[np.ndarray, " b"]) -> _Focal:
    gamma = rows.gamma
    not_q, log_q, log_not_q = 1 - q, np.log(q), np.log1p(-q)
    not_q[:, 0], log_not_q[:, 0] = rest, np.log(rest)
    log_q[:, 0] = np.where(rest < 0.5, np.log1p(-rest), log_q[:, 0])
    own, log_own = q.copy(), log_q.copy()
    own[:, 0], log_own[:, 0] = rest, log_not_q[:, 0]

    bent = -log_q * q / not_q
    slope = gamma * bent + 1  # w(q) = (1 - q)^gamma slope / q
    power = gamma * log_not_q
    spacing = np.spacing(q)
    spacing[:, 0] = np.where(rest < 0.5, spacing[:, 1:].sum(1), spacing[:, 0])  # 1 - q_m is a sum, or gives q_m
    return _Focal(
        own=own,
        log_own=log_own,
        log_weight=rows.log_eta + power + np.log(slope) - log_q,
        elasticity=(gamma * ((gamma - 1) * bent + 2) * (own / not_q) + own / q) / slope,
        rounding=_EPS * (2 + np.abs(rows.log_eta) + np.abs(power) + np.abs(log_q)),
        spacing=spacing / own,
    )


def _evaluate(
    rows: _Rows, q: Float[np.ndarray, "b k"], d: Float[np.ndarray, "b k"], sigma: Float[np.ndarray, " b"]
) -> _Point:
    """rho and the Newton step at (q, d, log s). Those of the class m follow from the others, whatever is given."""
    q, d, inside = q.copy(), d.copy(), rows.eta > 0
    rest = q[:, 1:].sum(1)
    d[:, 0] = -d[:, 1:].sum(1)
    q[:, 0] = np.where(rest < 0.5, 1 - rest, rows.eta[:, 0] + d[:, 0])
    focal = _focal(rows, q, rest)

    if rows.log_pull is None:
        log_anchor, falls = rows.log_2lam + np.log(np.abs(d)), d < 0
    else:
        log_anchor, falls = rows.log_pull, np.zeros(d.shape, dtype=bool)
        sigma = focal.log_weight[:, 0]  # t = eta_m w(q_m): known once q is
    s_side = sigma[:, None]
    log_sum = np.logaddexp(np.where(falls, focal.log_weight, s_side), log_anchor)  # the side that holds the anchor
    rho = np.where(falls, log_sum - s_side, focal.log_weight - log_sum)
    s_share = np.where(falls, 1.0, np.exp(s_side - log_sum))
    bend = np.where(falls, np.exp(focal.log_weight - log_sum), 1.0) * focal.elasticity
    pull = np.exp(rows.log_2lam + focal.log_own - log_sum) if rows.log_pull is None else np.zeros(d.shape)
    slope = np.minimum(bend + pull, _HUGE)  # |d rho / d log own|: rho falls with log q_k, and rises with log(1 - q_m)

    # Rounding shakes the logarithms, the variable, and d where it is subnormal.
    shaken = 2 * bend * focal.spacing
    too_large = np.where(np.arange(d.shape[1]) > 0, rho < 0, rho > 0)
    shaken[(focal.own < 1e-322) & too_large] = np.inf  # float64 has nothing smaller
    floor = np.where(inside, focal.rounding + shaken + pull * np.spacing(np.abs(d)) / focal.own, 0.0)
    size = np.where(inside, np.abs(rho), 0.0)
    excess = np.where(np.isinf(floor), 0.0, np.maximum(size - floor, 0.0)).max(1)
    excess[~((q[:, 0] > 0) & ~np.isnan(excess))] = np.inf

    share = np.where(inside, focal.own / rest[:, None] / slope, 0.0)[:, 1:]
    pushed = (share * np.where(inside, rho, 0.0)[:, 1:]).sum(1)
    d_sigma = (rho[:, 0] + slope[:, 0] * pushed) / (s_share[:, 0] + slope[:, 0] * (share * s_share[:, 1:]).sum(1))
    d_log_q = np.where(inside & (focal.own > 0), (rho - s_share * d_sigma[:, None]) / slope, 0.0)
    d_log_q[:, 0] = 0.0  # it follows from the others
    return _Point(q, d, sigma, size.max(1), floor.max(1), excess, d_log_q, d_sigma)
