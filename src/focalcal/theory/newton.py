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
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal import _native
from focalcal.theory.potential import at_posterior

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    Table = Float[np.ndarray, "b k"]
    Column = Float[np.ndarray, " b"]

_EPS = float(np.finfo(np.float64).eps)
_TINY = 5e-324  # the spacing of subnormal numbers
_HUGE = float(np.finfo(np.float64).max)  # keeps infinity out of quotients
_AT_ONCE = 1 << 15  # elements: what one step computes stays in the cache


@dataclass(frozen=True)
class Problems:
    """The problems, one per row, with the class m in column 0."""

    eta: Table
    log_eta: Table
    gamma: Float[np.ndarray, "b 1"]
    log_2lam: Float[np.ndarray, "b 1"]
    lowest: Column  # q_m is above it: at the solution it is the largest, hence at least 1 / |S|
    outside: Bool[np.ndarray, "b k"] | None  # where eta_k = 0; None if nowhere
    log_pull: Table | None  # of the absolute anchor: log 2 lam (eta_m - eta_k)

    @staticmethod
    def of(eta: np.ndarray, gamma: np.ndarray, lam: np.ndarray, *, absolute: bool) -> Problems:
        """Those problems, with the largest eta_k in column 0 already and at least two classes in each support."""
        outside = eta == 0
        log_2lam = (np.log(2.0) + np.log(lam))[:, None]
        return Problems(
            eta=eta,
            log_eta=np.log(eta),
            gamma=gamma[:, None],
            log_2lam=log_2lam,
            lowest=0.5 / (~outside).sum(1),
            outside=outside if outside.any() else None,
            log_pull=log_2lam + np.log(eta[:, :1] - eta) if absolute else None,
        )

    def __getitem__(self, rows: np.ndarray) -> Problems:
        """Some of the rows."""

        def some(part: Any) -> Any:
            return None if part is None else part[rows]

        return Problems(*(some(getattr(self, field.name)) for field in fields(self)))

    def masked(self, values: Table) -> Table:
        """The values on the support, 0 outside."""
        return values if self.outside is None else np.where(self.outside, 0.0, values)


@dataclass(frozen=True)
class NewtonPoint:
    """Where the rows stand, how far from a solution, and the Newton step from there."""

    q: Table
    d: Table  # q - eta, kept beside q because it is known to more digits than the difference is
    sigma: Column  # log s
    error: Column  # max_k |rho_k|
    floor: Column  # the largest, over k, of what rounding alone can make of |rho_k|
    excess: Column  # max_k of |rho_k| beyond its own rounding; 0 is perfect, inf is off the simplex
    d_log_q: Table
    d_sigma: Column
    reach: Column  # the largest share of the step, up to one, that keeps every q_k <= 1

    def __getitem__(self, rows: np.ndarray) -> NewtonPoint:
        """Some of the rows."""
        return NewtonPoint(*(getattr(self, f.name)[rows] for f in fields(self)))

    def improved(self, rows: np.ndarray, other: NewtonPoint) -> NewtonPoint:
        """The other's rows where told so."""
        if rows.all():
            return other
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(other, field.name)[rows]
        return self

    def moved(self, eta: Table, share: Column) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, d and log s after that share of the step: multiplicative in q, so that q stays positive.

        Of q and d the one with more correct digits gives the other, so that they cannot drift apart.
        """
        step = self.q * np.expm1(share[:, None] * self.d_log_q)
        q, d = self.q + step, self.d + step
        from_q = q - eta
        far = np.abs(from_q) > eta / 2
        return np.where(far, q, eta + d), np.where(far, from_q, d), self.sigma + share * self.d_sigma


def start(rows: Problems) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q = eta, and the s that is right for an infinitely strong anchor: the mean of -psi(eta_k) over the support."""
    here = at_posterior(rows.eta, rows.gamma[:, 0])
    log_minus_psi = np.where(here.support, here.log_minus_psi, -np.inf)
    largest = log_minus_psi.max(1)
    mean = np.exp(log_minus_psi - largest[:, None]).sum(1) / here.support.sum(1)
    return rows.eta, np.zeros(rows.eta.shape), largest + np.log(mean)


@dataclass(frozen=True)
class _Focal:
    """The focal term's part of a point. Each class has its own variable: q_k, and 1 - q_m for the class m."""

    own: Table
    log_own: Table
    log_q: Table
    log_weight: Table  # log of eta_k w(q_k)
    elasticity: Table  # |d log w / d log own|
    rounding: Table  # what it does to log_weight


def _focal(rows: Problems, q: Table, rest: Column) -> _Focal:
    gamma = rows.gamma
    own, not_q, log_q, log_not_q = q.copy(), 1 - q, np.log(q), np.log1p(-q)
    own[:, 0] = not_q[:, 0] = rest
    log_not_q[:, 0] = np.log(rest)
    log_own = log_q.copy()
    log_own[:, 0] = log_not_q[:, 0]
    log_q[:, 0] = np.where(rest < 0.5, np.log1p(-rest), log_q[:, 0])
    bent = -log_q * q / not_q
    slope = gamma * bent + 1  # w(q) = (1 - q)^gamma slope / q
    logs = rows.log_eta + gamma * log_not_q
    return _Focal(
        own=own,
        log_own=log_own,
        log_q=log_q,
        log_weight=logs + np.log(slope) - log_q,
        elasticity=(gamma * ((gamma - 1) * bent + 2) * (own / not_q) + own / q) / slope,
        rounding=_EPS * (2 - logs - log_q),
    )


@dataclass(frozen=True)
class _Balance:
    """rho and its derivatives: |d rho / d log own| = bend + pull, |d rho / d log s| = s_share."""

    rho: Table
    bend: Table
    pull: Table
    s_share: Table


def _quadratic(rows: Problems, focal: _Focal, d: np.ndarray, sigma: np.ndarray) -> _Balance:
    falls, log_s = d < 0, sigma[:, None]
    log_anchor = rows.log_2lam + np.log(np.abs(d))
    beside = np.where(falls, focal.log_weight, log_s)
    larger = np.maximum(beside, log_anchor)
    log_side = larger + np.log1p(np.exp(np.minimum(beside, log_anchor) - larger))  # the one that holds the anchor
    share = np.exp(beside - log_side)
    return _Balance(
        rho=np.where(falls, log_side - log_s, focal.log_weight - log_side),
        bend=np.where(falls, share, 1.0) * focal.elasticity,
        pull=np.exp(rows.log_2lam + focal.log_own - log_side),
        s_share=np.where(falls, 1.0, share),
    )


def _absolute(rows: Problems, focal: _Focal, sigma: np.ndarray) -> _Balance:
    log_right = np.logaddexp(0.0, rows.log_pull - sigma[:, None])
    rho = focal.log_weight - sigma[:, None] - log_right
    return _Balance(rho, focal.elasticity, np.zeros(rho.shape), np.exp(-log_right))


def newton_point(rows: Problems, q: Table, d: Table, sigma: Column) -> NewtonPoint:
    """rho and the Newton step at (q, d, log s). Those of the class m follow from the others, whatever is given."""
    q, d = q.copy(), d.copy()
    rest = q[:, 1:].sum(1)
    d[:, 0] = -d[:, 1:].sum(1)
    q[:, 0] = np.where(rest < 0.5, 1 - rest, rows.eta[:, 0] + d[:, 0])
    focal = _focal(rows, q, rest)
    if rows.log_pull is None:
        balance = _quadratic(rows, focal, d, sigma)
    else:
        sigma = focal.log_weight[:, 0]  # t = eta_m w(q_m): known once q is
        balance = _absolute(rows, focal, sigma)
    rho, s_share = rows.masked(balance.rho), balance.s_share
    # rho falls with log q_k, and rises with log(1 - q_m)
    slope = np.minimum(balance.bend + balance.pull, _HUGE)

    floor = rows.masked(focal.rounding + _shaken(q, focal, balance))
    size = np.abs(rho)
    excess = np.where(floor == np.inf, 0.0, np.maximum(size - floor, 0.0)).max(1)
    excess[~((q[:, 0] > 0) & (excess >= 0))] = np.inf  # NaN, too

    share = rows.masked(focal.own / rest[:, None] / slope)[:, 1:]
    pushed, damped = (share * rho[:, 1:]).sum(1), (share * s_share[:, 1:]).sum(1)
    d_sigma = (rho[:, 0] + slope[:, 0] * pushed) / (s_share[:, 0] + slope[:, 0] * damped)
    d_log_q = np.where(focal.own > 0, (rho - s_share * d_sigma[:, None]) / slope, 0.0)
    d_log_q[:, 0] = 0.0  # it follows from the others
    beyond = d_log_q > -focal.log_q
    reach = np.where(beyond, -focal.log_q / d_log_q, 1.0).min(1) if beyond.any() else np.ones(len(q))
    return NewtonPoint(q, d, sigma, size.max(1), floor.max(1), excess, d_log_q, d_sigma, reach)


def _shaken(q: np.ndarray, focal: _Focal, balance: _Balance) -> Table:
    """What the rounding of the variables, and of d where it is subnormal, can do to rho."""
    subnormal = _TINY / focal.own
    shaken = balance.bend * (2 * _EPS + 2 * subnormal) + balance.pull * subnormal
    # 1 - q_m is a sum; if it is above one half, q_m is known to more digits than follow from it
    known = np.minimum(1.0, q[:, 0] / focal.own[:, 0])
    shaken[:, 0] = balance.bend[:, 0] * (2 * _EPS * known + shaken.shape[1] * subnormal[:, 0])
    shaken[:, 0] += balance.pull[:, 0] * subnormal[:, 0]
    tiny = focal.own < 1e-322
    if tiny.any():  # what should be smaller still has no digits to be right
        tiny[:, 1:] &= balance.rho[:, 1:] < 0
        tiny[:, 0] &= balance.rho[:, 0] > 0
        shaken[tiny] = np.inf
    return shaken


@dataclass(frozen=True)
class Roots:
    """What was found for each row: q, d, log s (log t with the absolute anchor), and the figures."""

    q: Table
    displacement: Table
    log_multiplier: Column
    stationarity: Column
    floor: Column
    excess: Column  # how far the worst class is above its own floor
    steps: Int[np.ndarray, " b"]

    def put(self, at: Int[np.ndarray, " n"], point: NewtonPoint, swap: Int[np.ndarray, "b k"]) -> None:
        """Record the points of those rows."""
        self.q[at] = np.take_along_axis(point.q, swap[at], 1)
        self.displacement[at] = np.take_along_axis(point.d, swap[at], 1)
        self.log_multiplier[at] = point.sigma
        self.stationarity[at] = np.tanh(point.error / 2)
        self.floor[at] = np.tanh(point.floor / 2)
        self.excess[at] = point.excess


def solve_rows(eta: Table, gamma: Column, lam: Column, *, max_steps: int, absolute: bool = False) -> Roots:
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


def solve_with_numpy(eta: Table, gamma: Column, lam: Column, *, max_steps: int, absolute: bool = False) -> Roots:
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


def solve_natively(eta: Table, gamma: Column, lam: Column, *, max_steps: int = 200, absolute: bool = False) -> Roots:
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


def _top_first(eta: Table) -> Int[np.ndarray, "b k"]:
    """Indices that exchange column 0 and the largest entry, in each row. Doing it twice undoes it."""
    index = np.tile(np.arange(eta.shape[1]), (len(eta), 1))
    top = eta.argmax(1)
    index[:, 0] = top
    index[np.arange(len(eta)), top] = 0
    return index
