"""How improper Focal Calibration Loss is: the distance from a posterior to its minimiser, and the largest there is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch

from focalcal.core.arrays import finite_at_least, one_of
from focalcal.theory.minimiser import minimise
from focalcal.theory.recovery import posterior_shift, recover

if TYPE_CHECKING:
    from jaxtyping import Float

Norm = Literal["l2", "linf"]
_EVERY_FAMILY = 12  # classes up to which every two-level family is looked at
_MOST_ON_TOP = 3  # beyond, how many classes may share the top level
_ZOOMS = 8  # each makes the bracket of a maximum 16 times smaller


def propriety_error(eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b"]:
    """max_k |q*_k - eta_k|: 0 for every posterior if and only if gamma = 0 (the paper's Proposition 1).

    eta (K,) or (*b, K); gamma and lam broadcast with (*b). Also 0 at uniform posteriors, at vertices, and where
    psi(t) = t phi'(t) happens to have one value on the support.
    """
    solution = minimise(eta, gamma=gamma, lam=lam)
    solution.unwrap()
    return np.abs(solution.displacement).max(-1)[()]


@dataclass(frozen=True)
class LargestDistortion:
    """The largest |q* - eta| found, the posterior eta (K,) that suffers it, and the prediction q* (K,) for it."""

    distortion: float
    posterior: Float[np.ndarray, " k"]
    prediction: Float[np.ndarray, " k"]


def largest_distortion(
    classes: int, *, gamma: float, lam: float, norm: Norm = "l2", starts: int = 8, seed: int = 0
) -> LargestDistortion:
    """The maximum of |q*(eta) - eta| over all posteriors of so many classes: the best found, not a proven bound.

    eta -> q* is a bijection with a closed-form inverse (docs/math/inverse_map.md), so this maximises
    |q - recover(q)| over q, without a solve. First over two-level q: n classes share one value, m another, the rest
    is zero; every (n, m) for up to 12 classes, beyond that n <= 3 and a search over m. Then `starts` seeded ascents
    from random q and from near the best look for something better among all q. Wherever this was tried (2 to 10
    classes, gamma from 0.001 to 1000, lam from 0 to 1e8) the maximum had one leading class, equal others, and often
    zeros, with the leader's probability too low. sqrt(log(classes) / lam) bounds it from above (the paper's Theorem 2).

    >>> worst = largest_distortion(3, gamma=2.0, lam=1.0)
    >>> round(worst.distortion, 4), worst.posterior.round(3), worst.prediction.round(3)
    (0.1611, array([0.845, 0.078, 0.078]), array([0.713, 0.143, 0.143]))
    """
    for name, number, least in (("classes", classes, 1), ("starts", starts, 0), ("seed", seed, 0)):
        if not hasattr(number, "__index__") or isinstance(number, bool) or number < least:
            raise ValueError(f"{name} must be a whole number >= {least}, got {number!r}")
    one_of("norm", norm, get_args(Norm))
    problem = _Problem(finite_at_least("gamma", gamma, 0.0), finite_at_least("lam", lam, 0.0), norm)
    if classes == 1 or problem.gamma == 0:
        nowhere = np.full(classes, 1 / classes)
        return LargestDistortion(0.0, nowhere, nowhere.copy())
    family = _best_family(problem, classes)
    logits = np.full(classes, -np.inf)
    logits[: family.top + family.rest] = 0.0
    logits[: family.top] = family.lead
    distortion = family.distortion
    for start in _starts(logits, starts, seed):
        value, at = _ascent(problem, start)
        if value > distortion * (1 + 1e-9):
            distortion, logits = value, at
    prediction = torch.from_numpy(logits).softmax(0).numpy()
    return LargestDistortion(distortion, recover(prediction, gamma=problem.gamma, lam=problem.lam), prediction)


@dataclass(frozen=True)
class _Problem:
    gamma: float
    lam: float
    norm: Norm

    def distortions(self, logits: torch.Tensor) -> torch.Tensor:
        """|eta - q| of each row, q = softmax(logits)."""
        shift = posterior_shift(logits, gamma=self.gamma, lam=self.lam)
        return torch.linalg.vector_norm(shift, 2 if self.norm == "l2" else torch.inf, dim=1)


@dataclass(frozen=True)
class _Family:
    """`top` classes whose logits lead those of `rest` others by `lead`; all further classes have probability zero."""

    distortion: float
    top: int
    rest: int
    lead: float
    room: float  # how far from `lead` the maximum may be


def _best_family(problem: _Problem, classes: int) -> _Family:
    if classes <= _EVERY_FAMILY:
        pairs = [(n, m) for n in range(1, classes) for m in range(1, classes - n + 1)]
        return _best(problem, pairs)
    widths = np.unique(np.geomspace(1, classes - 1, 32).round().astype(int))
    best = _best(problem, [(n, min(int(m), classes - n)) for n in range(1, _MOST_ON_TOP + 1) for m in widths])
    # The distortion has one maximum in m, as a function of a real m: halve the steps between the m around the best.
    step = max(1, int(best.rest * 0.25))
    while True:
        around = np.clip(best.rest + step * np.arange(-2, 3), 1, classes - best.top)
        better = _best(problem, [(best.top, int(m)) for m in np.unique(around)])
        if better.distortion > best.distortion * (1 + 1e-12):
            best = better
        elif step == 1:
            return best
        else:
            step //= 2


def _best(problem: _Problem, pairs: Iterable[tuple[int, int]]) -> _Family:
    """A look at a grid of leads for each family, and a closer one at those that can still win."""
    furthest = 40.0 + np.log1p(problem.lam)  # where the others have less than 1e-17 / lam
    grid = np.concatenate([np.geomspace(1e-9, 0.5, 60), np.linspace(0.5, furthest, 150)[1:]])
    seen = []
    for n, m in dict.fromkeys(pairs):
        values = _along(problem, n, m, grid)
        i = int(values.argmax())
        room = grid[min(i + 1, len(grid) - 1)] - grid[max(i - 1, 0)]
        seen.append(_Family(float(values[i]), n, m, float(grid[i]), float(room)))
    # Between two points of the grid a maximum rises by less than 1 %.
    least = 0.98 * max(family.distortion for family in seen)
    return max((_zoomed(problem, family) for family in seen if family.distortion >= least), key=lambda f: f.distortion)


def _zoomed(problem: _Problem, family: _Family) -> _Family:
    lead, room, value = family.lead, family.room, family.distortion
    for _ in range(_ZOOMS):
        leads = np.maximum(lead + np.linspace(-room, room, 33), 0.0)
        values = _along(problem, family.top, family.rest, leads)
        i = int(values.argmax())
        lead, value, room = float(leads[i]), float(values[i]), room / 16
    return _Family(value, family.top, family.rest, lead, room)


def _along(problem: _Problem, top: int, rest: int, leads: np.ndarray) -> np.ndarray:
    logits = torch.zeros(len(leads), top + rest, dtype=torch.float64)
    logits[:, :top] = torch.from_numpy(leads)[:, None]
    return problem.distortions(logits).numpy()


def _starts(best: np.ndarray, count: int, seed: int) -> Iterable[np.ndarray]:
    generator = np.random.default_rng(seed)
    near = np.maximum(best, -20.0)  # an ascent in logits cannot leave zero probabilities
    for i in range(count):
        noise = generator.normal(size=len(best))
        yield near + noise if i % 2 else noise * generator.choice([1.0, 3.0, 8.0])


def _ascent(problem: _Problem, start: np.ndarray) -> tuple[float, np.ndarray]:
    """A local maximum over all logits."""
    from scipy.optimize import minimize  # here, because importing it takes longer than all else

    def negative(at: np.ndarray) -> tuple[float, np.ndarray]:
        logits = torch.from_numpy(at[None].copy()).requires_grad_()
        value = problem.distortions(logits)[0]
        value.backward()  # type: ignore[no-untyped-call]
        assert logits.grad is not None
        return -scale * value.item(), -scale * np.nan_to_num(logits.grad[0].numpy())  # NaN: saturated, flat

    scale = 1.0 / max(float(problem.distortions(torch.from_numpy(start[None]))[0]), 1e-300)
    found = minimize(negative, start, jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return float(-found.fun) / scale, found.x
