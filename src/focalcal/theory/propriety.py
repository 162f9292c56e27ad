"""How improper Focal Calibration Loss is: the distance from a posterior to its minimiser, and the largest there is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from focalcal.core.checks import finite_at_least, one_of, whole_number
from focalcal.core.numerics import log_probs_and_complements, softmax
from focalcal.theory.minimiser import minimise
from focalcal.theory.recovery import posterior_shift, recover, shift_and_pull

if TYPE_CHECKING:
    from jaxtyping import Float

Norm = Literal["l2", "linf"]
_EVERY_FAMILY = 40  # classes up to which every two-level family is looked at
_SMALLEST_GAMMA = 1e-12  # the shift is of the order of gamma, and known to 1e-15 of one
_ZOOMS = 8  # each makes the bracket of a maximum 16 times smaller


def propriety_error(eta: Any, *, gamma: Any, lam: Any) -> Float[np.ndarray, "*b"]:
    """max_k |q*_k - eta_k|: 0 for every posterior if and only if gamma = 0 (the paper's proposition on propriety).

    Also 0 at uniform posteriors, at vertices, and where psi(t) = t phi'(t) happens to have one value on the support.

    Args:
        eta: posteriors, (K,) or (*b, K).
        gamma: >= 0, a number or an array that broadcasts with (*b).
        lam: >= 0, likewise.

    Returns:
        (*b), in [0, 1].

    >>> propriety_error([0.7, 0.2, 0.1], gamma=[0.0, 2.0], lam=1.0).round(4)
    array([0.    , 0.1076])
    """
    solution = minimise(eta, gamma=gamma, lam=lam)
    solution.unwrap()
    return np.abs(solution.displacement).max(-1)[()]


@dataclass(frozen=True, eq=False)
class LargestDistortion:
    """The largest |q* - eta| found, and where.

    Attributes:
        distortion: in the norm that was asked for.
        posterior: (K,), the eta that suffers it.
        prediction: (K,), the q* for it.

    >>> worst = largest_distortion(3, gamma=2.0, lam=1.0)
    >>> bool(np.isclose(np.linalg.norm(worst.prediction - worst.posterior), worst.distortion))
    True
    """

    distortion: float
    posterior: Float[np.ndarray, " k"]
    prediction: Float[np.ndarray, " k"]


def largest_distortion(
    classes: int, *, gamma: float, lam: float, norm: Norm = "l2", starts: int = 8, seed: int = 0
) -> LargestDistortion:
    """The maximum of |q*(eta) - eta| over all posteriors of so many classes: the best found, not a proven bound.

    eta -> q* is a bijection with a closed-form inverse (docs/math/inverse_map.md), so this maximises
    |q - recover(q)| over q, without a solve. First over two-level q: n classes share one value, m another, the rest
    is zero; every (n, m) for up to 40 classes, beyond that a grid of them and a pattern search from its best. Then
    `starts` seeded ascents from random q and from near the best look for something better among all q.

    What was seen in 170 random problems (2 to 10 classes, gamma from 0.001 to 1000, lam from 0 to 1e8): nearly always
    one class leads, with a probability that is too low, and equal others follow, often with zeros. Where gamma and lam
    are both large, several lead in l2. Where lam is large, the others can split into two levels, which only the ascents
    find (0.7 % more for 20 classes, gamma = 2, lam = 1e6). sqrt(log(classes) / lam) bounds the distortion from above
    (the paper's global posterior-distortion bound).

    The relative error is about 1e-15 / gamma. gamma is 0 or at least 1e-12; where it is small the distortion is
    proportional to it.

    Args:
        classes: K, at least 1.
        gamma: 0, or at least 1e-12.
        lam: >= 0.
        norm: "l2", or "linf" for the largest of the K differences.
        starts: of ascents.
        seed: of their starts.

    Returns:
        The distortion, the posterior and the prediction.

    >>> worst = largest_distortion(3, gamma=2.0, lam=1.0)
    >>> round(worst.distortion, 4), worst.posterior.round(3), worst.prediction.round(3)
    (0.1611, array([0.845, 0.078, 0.078]), array([0.713, 0.143, 0.143]))
    """
    limits = (("classes", classes, 1, 10**9), ("starts", starts, 0, 10**6), ("seed", seed, 0, None))
    for name, number, least, most in limits:
        whole_number(name, number, least=least, most=most, remedy="choose another")
    one_of("norm", norm, get_args(Norm))
    problem = _Problem(finite_at_least("gamma", gamma, 0.0), finite_at_least("lam", lam, 0.0), norm)
    if 0 < problem.gamma < _SMALLEST_GAMMA:
        raise ValueError(
            f"gamma must be 0 or at least {_SMALLEST_GAMMA:g}, got {problem.gamma:g}: the distortion is below "
            "rounding; it is proportional to gamma there, so take that of gamma = 1e-8 and scale it"
        )
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
    prediction = softmax(logits, 0)
    return LargestDistortion(distortion, recover(prediction, gamma=problem.gamma, lam=problem.lam), prediction)


@dataclass(frozen=True)
class _Problem:
    gamma: float
    lam: float
    norm: Norm

    def distortions(
        self, log_q: np.ndarray, log_not_q: np.ndarray, copies: np.ndarray | None = None
    ) -> Float[np.ndarray, " n"]:
        """|eta - q| of each row."""
        return self.norms(posterior_shift(log_q, log_not_q, gamma=self.gamma, lam=self.lam, copies=copies), copies)

    def norms(self, shift: np.ndarray, copies: np.ndarray | None = None) -> Float[np.ndarray, " n"]:
        """The norm of each row."""
        if self.norm == "linf":
            return np.abs(shift).max(1)
        scale = _largest(shift)  # of the order of 1 / lam, whose square float64 need not hold
        weighted = shift / scale if copies is None else shift / scale * np.sqrt(copies)
        return np.linalg.norm(weighted, axis=1) * scale[:, 0]

    def direction(self, shift: np.ndarray) -> np.ndarray:
        """The gradient of `norms` in the shift; equally large entries share that of the maximum."""
        if self.norm == "linf":
            top = np.abs(shift) == np.abs(shift).max(1, keepdims=True)
            return np.sign(shift) * top / top.sum(1, keepdims=True)
        scaled = shift / _largest(shift)
        return scaled / np.linalg.norm(scaled, axis=1, keepdims=True)

    def distortion_and_gradient(self, logits: np.ndarray) -> tuple[float, np.ndarray]:
        """|eta - q| and its gradient, at logits (K,)."""
        logs = log_probs_and_complements(logits[None])
        shift, gradient = shift_and_pull(*logs, self.direction, gamma=self.gamma, lam=self.lam)
        return float(self.norms(shift)[0]), gradient[0]


def _largest(shift: np.ndarray) -> np.ndarray:
    """The largest entry of each row, as a column; 1 where all are 0."""
    largest = np.abs(shift).max(1, keepdims=True)
    return np.where(largest > 0, largest, 1.0)


@dataclass(frozen=True)
class _Family:
    """`top` classes whose logits lead those of `rest` others by `lead`; all further classes have probability zero."""

    distortion: float
    top: int
    rest: int
    lead: float


def _best_family(problem: _Problem, classes: int) -> _Family:
    if classes <= _EVERY_FAMILY:
        return _best(problem, [(n, m) for n in range(1, classes) for m in range(1, classes - n + 1)])
    sizes = np.unique(np.geomspace(1, classes - 1, 32).round().astype(int)).tolist()
    best = _best(problem, [(n, min(m, classes - n)) for n in sizes for m in sizes])
    step = max(1, classes // 8)
    while True:
        around = [(best.top + step * i, best.rest + step * j) for i in range(-2, 3) for j in range(-2, 3)]
        around += [(n, classes - n) for n in (best.top - step, best.top, best.top + step)]  # no zeros
        better = _best(problem, [(n, m) for n, m in around if n >= 1 and m >= 1 and n + m <= classes])
        if better.distortion > best.distortion * (1 + 1e-12):
            best = better
        elif step == 1:
            return best
        else:
            step //= 2


def _best(problem: _Problem, pairs: Sequence[tuple[int, int]]) -> _Family:
    """A look at a grid of leads for each family (n, m), and a closer one at those that can still win."""
    furthest = 40.0 + np.log1p(problem.lam)  # where the others have less than 1e-17 / lam
    grid = np.concatenate([np.geomspace(1e-9, 0.5, 60), np.linspace(0.5, furthest, 150)[1:]])
    sizes = np.array(sorted(set(pairs)), dtype=np.float64)
    values = _along(problem, sizes, np.broadcast_to(grid, (len(sizes), len(grid))))
    # Between two points of the grid a maximum rises by less than 1 %.
    near = values.max(1) >= 0.98 * values.max()
    sizes, at = sizes[near], values[near].argmax(1)
    lead, room = grid[at], grid[np.minimum(at + 1, len(grid) - 1)] - grid[np.maximum(at - 1, 0)]
    for _ in range(_ZOOMS):
        leads = np.maximum(lead[:, None] + room[:, None] * np.linspace(-1, 1, 33), 0.0)
        values = _along(problem, sizes, leads)
        lead, room = leads[np.arange(len(leads)), values.argmax(1)], room / 16
    first = int(values.max(1).argmax())
    top, rest = sizes[first].astype(int).tolist()
    return _Family(float(values.max()), top, rest, float(lead[first]))


def _along(problem: _Problem, sizes: Float[np.ndarray, "f 2"], leads: Float[np.ndarray, "f g"]) -> np.ndarray:
    """The distortions (f, g), from two numbers for each family and lead: the q_k of the top and that of the rest."""
    n, m = sizes[:, :1], sizes[:, 1:]
    with np.errstate(divide="ignore"):
        rest_share = np.log(m) - leads  # over q_top
        log_top = -np.logaddexp(np.log(n), rest_share)
        log_not_top = np.logaddexp(np.log(n - 1), rest_share) + log_top
    log_q = np.stack([log_top, log_top - leads], -1).reshape(-1, 2)
    log_not_q = np.stack([log_not_top, np.log1p(-np.exp(log_top - leads))], -1).reshape(-1, 2)
    copies = np.broadcast_to(sizes[:, None], (*leads.shape, 2)).reshape(-1, 2)
    return problem.distortions(log_q, log_not_q, copies).reshape(leads.shape)


def _starts(best: np.ndarray, count: int, seed: int) -> Iterable[np.ndarray]:
    generator = np.random.default_rng(seed)
    near = np.maximum(best, -20.0)  # an ascent in logits cannot leave zero probabilities
    for i in range(count):
        noise = generator.normal(size=len(best))
        yield near + noise if i % 2 else noise * generator.choice([1.0, 3.0, 8.0])


def _ascent(problem: _Problem, start: np.ndarray) -> tuple[float, np.ndarray]:
    """A local maximum over all logits."""
    from scipy.optimize import minimize  # here, because importing it takes longer than all else

    scale = 1.0 / max(problem.distortion_and_gradient(start)[0], 1e-300)

    def negative(at: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = problem.distortion_and_gradient(at)
        return -scale * value, -scale * np.nan_to_num(gradient)  # NaN: saturated, flat

    result = minimize(
        negative, start, jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-15, "gtol": 1e-10}
    )
    return float(-result.fun) / scale, result.x
