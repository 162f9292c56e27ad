"""How much of each strength of a ridge rows support, by cross-validation along a path from strong to weak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import logsumexp
from focalcal.posthoc.affine_fit import AffineFit, AffineProblem, Curvature
from focalcal.posthoc.cross_fit import stratified_folds
from focalcal.posthoc.newton_temperature import optimal_inverse_temperature

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    Inputs = Float[np.ndarray, "n m"]
    Scores = Float[np.ndarray, "n k"]
    Labels = Int[np.ndarray, " n"]
    Weights = Float[np.ndarray, " n"]

_STRENGTHS = tuple(10 ** (0.5 - step / 2) for step in range(10))  # 3.2 ... 1e-4
_LEAST_ROWS = 1.0  # the least strength in rows: n times it, below which few rows would choose by accident
_PATIENCE = 2, 4  # strengths without a gain after which the path ends, once there was one and before
_TOL = 1e-2  # of the gradient, whose half square is 5e-5 nats
_MAX_ITER = 100
_SOME, _MANY = 2e6, 2e7  # n K^2 above which there are five folds at most, and above which three of them are held out
_SAMPLED = 5e9  # n K^2 of each of two samples of the rows, one fitted and one held out, where there is more
_PRICE = 3.0  # nats, of all rows together, that a whole share away from temperature scaling must gain
_SETTLED = 1e-5  # the projected gradient at which shares are taken, in nats
_LEAST_SHARE = 0.01


def path_shares(
    inputs: Inputs, labels: Labels, weights: Weights, curvatures: dict[int, Curvature], start: AffineFit, *, folds: int
) -> tuple[dict[tuple[int, float], float], float]:
    """The share of each strength, and the projected gradient; what is left of 1 is temperature's.

    There is a path for as many first columns of the inputs as `curvatures` names. v >= 0 minimise the mean loss of
    held-out rows under the scores z_T + sum_s v_s (z_s - z_T), z_s from the fit at strength s and z_T from temperature
    scaling, both on the other folds, plus 3 / n sum_s v_s. It is convex.
    """
    classes = len(start.part)
    products = len(inputs) * classes**2
    sampled = products > _SAMPLED
    folds = max(2, round(products / _SAMPLED)) if sampled else min(folds, 5) if products > _SOME else folds
    visited = 1 if sampled else min(folds, 3) if products > _MANY else folds
    inputs, labels, weights, fold = stratified_folds(inputs, labels, weights, folds, classes)
    held_out = [fold == at for at in range(min(visited, fold.max() + 1))]
    fitted = [fold == 1] if sampled else [~held for held in held_out]
    truth, counts = (np.concatenate([values[held] for held in held_out]) for values in (labels, weights))
    starts = [
        optimal_inverse_temperature(inputs[rows, :classes], labels[rows], weights[rows]).inverse_temperature
        for rows in fitted
    ]
    plain = np.concatenate([a * inputs[held, :classes] for a, held in zip(starts, held_out, strict=True)])
    moves: dict[tuple[int, float], Scores] = {}
    for columns, curvature in curvatures.items():
        own = inputs[:, :columns]
        problems = [AffineProblem(own[rows], labels[rows], weights[rows], curvature) for rows in fitted]
        fits = [AffineFit(a, np.zeros((classes, columns + 1))) for a in starts]
        losses, gained = [_loss(plain, truth, counts)], -1
        for step, strength in enumerate(_STRENGTHS):
            if strength < _LEAST_ROWS / weights.sum():
                break
            for at, problem in enumerate(problems):
                fits[at] = problem.fit(strength, fits[at], tol=_TOL, max_iter=_MAX_ITER)
            found = np.concatenate([scores(own[held], fit) for held, fit in zip(held_out, fits, strict=True)])
            moves[columns, strength] = found - plain
            losses.append(_loss(found, truth, counts))
            if losses[-1] < min(losses[:-1]):
                gained = step
            elif step - gained >= _PATIENCE[gained < 0]:
                break
    shares, gradient = _best_shares(plain, [*moves.values()], truth, counts)
    mass = float(weights[fitted[0]].sum() / weights.sum())  # n s, the prior's precision, is what fits have in common
    found_shares = zip(moves, shares.tolist(), strict=True)
    return {(columns, s * mass): share for (columns, s), share in found_shares if share > _LEAST_SHARE}, gradient


def _best_shares(plain: Scores, moves: list[Scores], labels: Labels, weights: Weights) -> tuple[Any, float]:
    """The shares of the moves, and the largest entry of the gradient projected on what may still change."""
    if not moves:
        return np.zeros(0), 0.0
    rows, mass = np.arange(len(labels)), float(weights.sum())
    each = np.stack([move.ravel() for move in moves])

    def objective(shares: Any) -> tuple[float, Any]:
        found = plain + (shares.astype(each.dtype) @ each).reshape(plain.shape)
        largest = found.max(1, keepdims=True)
        gap = np.exp(found - largest)
        total = gap.sum(1)
        loss = np.log(total) + largest[:, 0] - found[rows, labels]
        gap /= total[:, None]
        gap[rows, labels] -= 1
        gap *= (weights / mass)[:, None]
        return float(weights @ loss + _PRICE * shares.sum()) / mass, each @ gap.ravel() + _PRICE / mass

    options = {"maxiter": 500, "ftol": 0.0, "gtol": _SETTLED / 2}
    result = minimize(
        objective, np.zeros(len(moves)), jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(moves), options=options
    )
    gradient = np.where(result.x > 0, result.jac, np.minimum(result.jac, 0))
    return result.x, float(np.abs(gradient).max())


def _loss(scores_: Scores, labels: Labels, weights: Weights) -> float:
    losses = logsumexp(scores_) - scores_[np.arange(len(labels)), labels]
    return float(weights @ losses / weights.sum())


def scores(inputs: Inputs, fit: AffineFit) -> Scores:
    """a x + M (f, 1) of every row."""
    classes = len(fit.part)
    found = np.empty((len(inputs), classes), inputs.dtype)
    for start, f in row_chunks(inputs):
        found[start : start + len(f)] = fit.scale * f[:, :classes] + f @ fit.part[:, :-1].T + fit.part[:, -1]
    return found
