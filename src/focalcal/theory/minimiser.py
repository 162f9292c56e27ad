"""The population minimiser of Focal Calibration Loss, to the last digits of float64."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.checks import whole_number
from focalcal.theory.newton import solve_rows
from focalcal.theory.posteriors import LARGEST_GAMMA, at_least_zero, broadcast, distributions

if TYPE_CHECKING:
    from jaxtyping import Float, Int

TOLERANCE = 1e-12


class Status(StrEnum):
    """How a solve ended; what is not converged says what to do."""

    CONVERGED = "converged"
    ROUNDING_FLOOR = "converged as far as float64 can tell: the figures are at the rounding floor, which is above 1e-12"
    MAX_STEPS = (
        "not converged: the figures are above 1e-12 and above the rounding floor; raise max_steps or lower gamma"
    )
    STALLED = "not converged: rounding keeps the figures above their floor; lower gamma, or use q if they will do"
    NO_DIGITS = "not converged: (1 - q)^gamma has no correct digit in float64 at this gamma; choose a smaller gamma"


class SolverError(ArithmeticError):
    """A solve whose answer must not be used."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """q* and the evidence for it. For posteriors of shape (*b, K) every field but q and displacement is (*b).

    Attributes:
        q: (*b, K), the minimiser.
        displacement: (*b, K), d = q* - eta, with many more digits than the difference of q* and eta: its error is
            about 1e-16 / (2 lam + curvature), so d is exact to 1e-12 of itself unless psi(eta_k) is so nearly the
            same for all k that d is that small by cancellation.
        multiplier: nu <= 0 of sum q = 1, eta_k phi'(q_k) + 2 lam (q_k - eta_k) = nu on the support of eta.
        stationarity: max_k |r_k| / (|eta_k phi'(q_k)| + 2 lam |d_k| + |nu|), r_k the difference of the two sides.
        feasibility: |sum d| / sum |d|.
        status: `Status.CONVERGED` if both are <= 1e-12; the risk being strictly convex q* is then *the* minimiser.
        steps: evaluations of the Newton system.
        floor: what rounding alone can make of `stationarity`.

    >>> solution = minimise([0.7, 0.2, 0.1], gamma=2.0, lam=1.0)
    >>> bool(solution.converged), solution.displacement.round(4)
    (True, array([-0.1076,  0.0584,  0.0492]))
    """

    q: Float[np.ndarray, "*b k"]
    displacement: Float[np.ndarray, "*b k"]
    multiplier: Float[np.ndarray, "*b"]
    stationarity: Float[np.ndarray, "*b"]
    feasibility: Float[np.ndarray, "*b"]
    status: Any  # a Status, or an object array of them
    steps: Int[np.ndarray, "*b"]
    floor: Float[np.ndarray, "*b"]

    def __repr__(self) -> str:
        """One posterior in full, or the worst figures of a batch."""
        stationarity, feasibility = (np.max(part, initial=0) for part in (self.stationarity, self.feasibility))
        worst = f"stationarity={stationarity:.1e}, feasibility={feasibility:.1e}"
        if self.q.ndim == 1 and len(self.q) <= 20:
            return f"Solution(q={self.q!r}, {worst}, steps={self.steps}, status={str(self.status)!r})"
        number = int(np.sum(self.converged))
        return f"Solution(q of shape {self.q.shape}, {worst}, converged: {number} of {np.size(self.status)})"

    @property
    def converged(self) -> Any:
        """True, for each posterior, if the figures are within 1e-12 or at the rounding floor."""
        accepted = (Status.CONVERGED, Status.ROUNDING_FLOOR)
        return np.vectorize(lambda status: status in accepted, otypes=[bool])(self.status)[()]

    def unwrap(self) -> Float[np.ndarray, "*b k"]:
        """q*, or a SolverError with the status of the first posterior that has none."""
        failed = np.argwhere(~np.asarray(self.converged))
        if len(failed):
            at = tuple(failed[0].tolist())
            status = self.status if not at else self.status[at]
            raise SolverError(f"posterior {at}: {status}; stationarity {np.asarray(self.stationarity)[at]:.2g}")
        return self.q


def minimise(eta: Any, *, gamma: Any, lam: Any, max_steps: int = 200) -> Solution:
    """q* = argmin over the simplex of R(q; eta) = sum_k eta_k phi(q_k) + lam |q - eta|^2 + const.

    phi(u) = -(1 - u)^gamma log u. A class with eta_k = 0 has q*_k = 0. The minimiser is unique
    (docs/math/unique_minimiser.md) and found by a Newton method that costs O(K) a step (docs/math/solver.md).

    Args:
        eta: posteriors, (K,) or (*b, K), the boundary included.
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: >= 0, likewise.
        max_steps: of Newton's method, after which the status says that it did not converge.

    Returns:
        q* with its displacement from eta, its optimality and its status.

    >>> minimise([0.7, 0.2, 0.1], gamma=2.0, lam=1.0).q.round(4)
    array([0.5924, 0.2584, 0.1492])
    """
    return _solve(eta, gamma=gamma, lam=lam, max_steps=max_steps, absolute=False)


def minimise_l1(eta: Any, *, gamma: Any, lam: Any, max_steps: int = 200) -> Solution:
    """The same with the absolute anchor lam |q - e_y|_1 = 2 lam (1 - q_y) in place of the quadratic one.

    Its expectation is linear in q, so stationarity is eta_k (phi'(q_k) - 2 lam) = nu, and as lam grows q* leaves the
    posterior for the vertex of the most probable class. In `stationarity`, 2 lam eta_k takes the place of 2 lam |d_k|.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: >= 0, likewise.
        max_steps: as for `minimise`.

    Returns:
        As of `minimise`.

    >>> minimise_l1([0.7, 0.2, 0.1], gamma=2.0, lam=100.0).q.round(3)
    array([0.997, 0.002, 0.001])
    """
    return _solve(eta, gamma=gamma, lam=lam, max_steps=max_steps, absolute=True)


def l1_anchor_minimisers(eta: Any) -> np.ndarray:
    """Of the absolute anchor alone, E |q - e_Y|_1 = 2 (1 - eta . q): True for the classes that may share all mass.

    Every distribution over the most probable classes is a minimiser, and no other is.

    Args:
        eta: posteriors, (K,) or (*b, K).

    Returns:
        Of the shape of eta.

    >>> l1_anchor_minimisers([0.4, 0.4, 0.2])
    array([ True,  True, False])
    """
    posterior = distributions("eta", eta)
    return posterior == posterior.max(-1, keepdims=True)


def _solve(eta: Any, *, gamma: Any, lam: Any, max_steps: int, absolute: bool) -> Solution:
    most = whole_number("max_steps", max_steps, least=1, remedy="200 is plenty")
    posterior, (g, weight) = broadcast(
        distributions("eta", eta), at_least_zero("gamma", gamma), at_least_zero("lam", lam)
    )
    batch, classes = posterior.shape[:-1], posterior.shape[-1]
    rows = posterior.reshape(-1, classes)
    g, weight = g.reshape(-1), weight.reshape(-1)
    roots = solve_rows(rows, g, weight, max_steps=most, absolute=absolute)
    size, feasibility = np.abs(roots.displacement).sum(-1), np.zeros(len(rows))
    np.divide(np.abs(roots.displacement.sum(-1)), size, out=feasibility, where=size > 0)
    status = _statuses(roots.stationarity, feasibility, roots.excess, g, roots.steps < most)
    with np.errstate(under="ignore", over="ignore"):
        multiplier = -np.exp(roots.log_multiplier) - (2 * weight * rows.max(-1) if absolute else 0.0)
    return Solution(
        q=roots.q.reshape(posterior.shape),
        displacement=roots.displacement.reshape(posterior.shape),
        **{
            name: values.reshape(batch)[()]
            for name, values in {
                "multiplier": multiplier,
                "stationarity": roots.stationarity,
                "feasibility": feasibility,
                "status": status,
                "steps": roots.steps,
                "floor": roots.floor,
            }.items()
        },
    )


def _statuses(
    stationarity: np.ndarray, feasibility: np.ndarray, excess: np.ndarray, gamma: np.ndarray, stalled: np.ndarray
) -> np.ndarray:
    status = np.full(len(gamma), Status.CONVERGED, dtype=object)
    above = np.maximum(stationarity, feasibility) > TOLERANCE
    floor = above & (excess <= TOLERANCE) & (feasibility <= TOLERANCE)
    status[floor] = Status.ROUNDING_FLOOR
    status[above & ~floor] = Status.MAX_STEPS
    status[above & ~floor & stalled] = Status.STALLED
    status[above & (gamma > LARGEST_GAMMA)] = Status.NO_DIGITS
    return status
