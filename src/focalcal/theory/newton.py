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


@dataclass(frozen=True)
class _Rows:
    """The problems: one a row, each with at least two classes in its support."""

    eta: Float[np.ndarray, "b k"]
    log_eta: Float[np.ndarray, "b k"]
    top: Int[np.ndarray, "b 1"]  # the class m
    gamma: Float[np.ndarray, "b 1"]
    log_2lam: Float[np.ndarray, "b 1"]
    log_pull: Float[np.ndarray, "b k"] | None  # of the absolute anchor: log 2 lam (eta_m - eta_k)

    def __getitem__(self, rows: np.ndarray) -> _Rows:
        log_pull = None if self.log_pull is None else self.log_pull[rows]
        return _Rows(
            self.eta[rows], self.log_eta[rows], self.top[rows], self.gamma[rows], self.log_2lam[rows], log_pull
        )


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

    def moved(self, share: Float[np.ndarray, " b"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, d and log s after that share of the step: multiplicative in q, so that q stays positive."""
        step = self.q * np.expm1(share[:, None] * self.d_log_q)
        return self.q + step, self.d + step, self.sigma + share * self.d_sigma


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
    with np.errstate(all="ignore"):  # log 0 is meant, and what is NaN outside the support is masked
        rows = _rows(eta[at], gamma[at], lam[at], absolute=absolute)
        point = _evaluate(rows, *_start(rows))
        share = _whole_step(point)
        for _ in range(max_steps):
            if not len(at):
                break
            trial = _evaluate(rows, *point.moved(share))
            better = trial.excess < point.excess * (1 - 1e-4 * share)
            point.put(better, trial[better])
            share = np.where(better, _whole_step(point), share / 2)
            found.steps[at] += 1
            # At the floor, or so near to it that rounding decides which step looks better.
            done = (point.excess == 0) | ((point.excess < 1e-12) & (share < 0.1)) | (share < 1e-12)
            _record(found, at[done], point[done])
            at, rows, point, share = at[~done], rows[~done], point[~done], share[~done]
        _record(found, at, point)
    return found


def _rows(eta: np.ndarray, gamma: np.ndarray, lam: np.ndarray, *, absolute: bool) -> _Rows:
    top = eta.argmax(1)[:, None]
    log_2lam = (np.log(2.0) + np.log(lam))[:, None]
    log_pull = log_2lam + np.log(np.take_along_axis(eta, top, 1) - eta) if absolute else None
    return _Rows(eta, np.log(eta), top, gamma[:, None], log_2lam, log_pull)


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


def _record(found: Roots, at: np.ndarray, point: _Point) -> None:
    found.q[at] = point.q
    found.displacement[at] = point.d
    found.log_multiplier[at] = point.sigma
    found.stationarity[at] = np.tanh(point.error / 2)
    found.floor[at] = np.tanh(point.floor / 2)
    found.excess[at] = point.excess


def _evaluate(
    rows: _Rows, q: Float[np.ndarray, "b k"], d: Float[np.ndarray, "b k"], sigma: Float[np.ndarray, " b"]
) -> _Point:
    """rho and the Newton step at (q, d, log s). Those of the class m follow from the others, whatever is given."""
    eta, gamma, top = rows.eta, rows.gamma, rows.top
    inside = eta > 0
    others, d, q = q.copy(), d.copy(), q.copy()
    np.put_along_axis(others, top, 0.0, 1)
    np.put_along_axis(d, top, 0.0, 1)
    rest, d_top = others.sum(1, keepdims=True), -d.sum(1, keepdims=True)
    q_top = np.where(rest < 0.5, 1 - rest, np.take_along_axis(eta, top, 1) + d_top)
    np.put_along_axis(d, top, d_top, 1)
    np.put_along_axis(q, top, q_top, 1)

    not_q = 1 - others
    np.put_along_axis(not_q, top, rest, 1)
    log_q, log_not_q = np.log(q), np.log1p(-others)
    np.put_along_axis(log_q, top, np.where(rest < 0.5, np.log1p(-rest), np.log(q_top)), 1)
    np.put_along_axis(log_not_q, top, np.log(rest), 1)

    # Each class has its own variable: log q_k, and log(1 - q_m) for the class m.
    own, log_own = others, log_q.copy()
    np.put_along_axis(own, top, rest, 1)
    np.put_along_axis(log_own, top, np.log(rest), 1)

    bent = -log_q * q / not_q
    slope = gamma * bent + 1  # w(q) = (1 - q)^gamma slope / q
    log_focal = rows.log_eta + gamma * log_not_q + np.log(slope) - log_q
    elasticity = (gamma * ((gamma - 1) * bent + 2) * (own / not_q) + own / q) / slope  # |d log w / d log own|

    s_side = sigma[:, None]
    if rows.log_pull is None:
        log_anchor, falls = rows.log_2lam + np.log(np.abs(d)), d < 0
    else:
        log_anchor, falls = rows.log_pull, np.zeros(d.shape, dtype=bool)
    log_sum = np.logaddexp(np.where(falls, log_focal, s_side), log_anchor)  # the side that holds the anchor
    rho = np.where(falls, log_sum - s_side, log_focal - log_sum)
    s_share = np.where(falls, 1.0, np.exp(s_side - log_sum))
    bend = np.where(falls, np.exp(log_focal - log_sum), 1.0) * elasticity
    pull = np.exp(rows.log_2lam + log_own - log_sum) if rows.log_pull is None else np.zeros(d.shape)
    slope_of_rho = np.minimum(
        bend + pull, _HUGE
    )  # |d rho / d log own|: negative for log q_k, positive for log(1 - q_m)

    # What rounding does: to each logarithm, to the variable, and to d where it is subnormal.
    floor = _EPS * (2 + np.abs(rows.log_eta) + np.abs(gamma * log_not_q) + np.abs(log_q))
    spacing = np.spacing(np.minimum(own, q)) / own  # of the smaller of q_m and 1 - q_m, which gives the other
    floor += np.where(spacing < 0.05, bend * spacing, np.inf) + pull * np.spacing(np.abs(d)) / own
    size, floor = np.where(inside, np.abs(rho), 0.0), np.where(inside, floor, 0.0)
    excess = np.where(np.isinf(floor), 0.0, np.maximum(size - floor, 0.0)).max(1)
    excess[~((q_top[:, 0] > 0) & ~np.isnan(excess))] = np.inf

    weight = np.where(inside, own / rest / slope_of_rho, 0.0)
    np.put_along_axis(weight, top, 0.0, 1)
    rho_top, s_top, slope_top = (np.take_along_axis(part, top, 1) for part in (rho, s_share, slope_of_rho))
    pushed = (weight * np.where(inside, rho, 0.0)).sum(1, keepdims=True)
    d_sigma = (rho_top + slope_top * pushed) / (s_top + slope_top * (weight * s_share).sum(1, keepdims=True))
    d_log_q = np.where(weight > 0, (rho - s_share * d_sigma) / slope_of_rho, 0.0)
    return _Point(q, d, sigma, size.max(1), floor.max(1), excess, d_log_q, d_sigma[:, 0])
