"""The strength of a ridge, by cross-validation along a path on which each fit starts at that of a stronger one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import logsumexp
from focalcal.posthoc.newton_temperature import optimal_inverse_temperature
from focalcal.posthoc.ridge_path import AffineFit, Curvature, RidgeProblem
from focalcal.posthoc.stratified_folds import stratified_folds

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    Inputs = Float[np.ndarray, "n k"]
    Labels = Int[np.ndarray, " n"]
    Weights = Float[np.ndarray, " n"]

_STRENGTHS = tuple(10 ** (0.5 - step / 2) for step in range(10))  # 3.2 ... 1e-4
_LEAST_ROWS = 1.0  # the least strength in rows: n times it, below which few rows would choose by accident
_OWN = 1.0, 0.03  # what is tried
_BETWEEN = 10**0.25  # the steps of the second look, around the best of the first
_PATIENCE = 1, 4  # strengths without a gain after which the path ends, once there was one and before
_TOL = 1e-2  # of the gradient, whose half square is 5e-5 nats
_MAX_ITER = 100
_SOME, _MANY = 2e6, 2e7  # n K^2 above which there are five folds at most, and above which three of them are held out
_SAMPLED = 5e9  # n K^2 of each of two samples of the rows, one fitted and one held out, where there is more
_MARGIN = 0.5  # standard errors of the difference from the best, within which the strongest is taken
_DOUBT = 0.1  # the weight of a row that says nothing, against which a held-out loss is bounded


class Choice(NamedTuple):
    """The strength of the ridge on O, and by what it is multiplied for D and c."""

    strength: float
    own: float = 1.0


TEMPERATURE = Choice(math.inf)


def cross_validated_strength(
    inputs: Inputs, labels: Labels, weights: Weights, curvature: Curvature, start: AffineFit, *, folds: int
) -> Choice:
    """The strengths with the least mean loss of held-out rows; infinity is temperature scaling."""
    products = inputs.size * inputs.shape[1]
    sampled = products > _SAMPLED
    folds = max(2, round(products / _SAMPLED)) if sampled else min(folds, 5) if products > _SOME else folds
    visited = 1 if sampled else min(folds, 3) if products > _MANY else folds
    inputs, labels, weights, fold = stratified_folds(inputs, labels, weights, folds)
    held_out = [fold == at for at in range(min(visited, fold.max() + 1))]
    fitted = [fold == 1] if sampled else [~held for held in held_out]
    splits = [
        _Split(inputs, labels, weights, rows, held, curvature, start)
        for rows, held in zip(fitted, held_out, strict=True)
    ]
    share = np.concatenate([weights[held] for held in held_out])
    mass = float(share.sum())
    share /= mass

    losses: dict[Choice, Float[np.ndarray, " n"]] = {}

    def mean(choice: Choice) -> float:
        if choice not in losses:
            losses[choice] = np.concatenate([split.losses(choice) for split in splits])
        return float(share @ losses[choice])

    weakest, first = _LEAST_ROWS / weights.sum(), 0
    for own in _OWN:
        gained, best = first - 1, mean(TEMPERATURE)
        for step, strength in enumerate(_STRENGTHS[first:], first):
            if strength * own < weakest:
                break
            if mean(Choice(strength, own)) < best:
                gained, best = step, mean(Choice(strength, own))
            elif step - gained >= _PATIENCE[gained < first]:
                break
        first = max(0, gained - 1)  # the next path need not begin where this one had gained little
    chosen = min(losses, key=mean)
    if chosen.strength < math.inf:
        for strength in (chosen.strength * _BETWEEN, chosen.strength / _BETWEEN):
            mean(Choice(strength, chosen.own))
    chosen = min(losses, key=mean)
    for choice in sorted({TEMPERATURE} | {c for c in losses if c.own == chosen.own}, reverse=True):
        excess = losses[choice] - losses[chosen]  # the strongest that cannot be told from the best
        if share @ excess <= _MARGIN * math.sqrt(share @ (excess - share @ excess) ** 2 / mass):
            break
    return Choice(choice.strength * float(weights[fitted[0]].sum() / weights.sum()), choice.own)


class _Split:
    """Some rows, fitted at one strength after another, and others, which judge the fits."""

    def __init__(
        self,
        inputs: Inputs,
        labels: Labels,
        weights: Weights,
        rows: Bool[np.ndarray, " n"],
        held: Bool[np.ndarray, " n"],
        curvature: Curvature,
        start: AffineFit,
    ) -> None:
        self._held = inputs[held], labels[held]
        fitted = inputs[rows], labels[rows], weights[rows]
        self._problem = RidgeProblem(*fitted, curvature)
        temperature = optimal_inverse_temperature(*fitted).inverse_temperature
        self._fits = {TEMPERATURE: AffineFit(temperature, start.part)}
        self._doubt = _DOUBT / (float(weights.sum()) + _DOUBT)

    def losses(self, choice: Choice) -> Float[np.ndarray, " n"]:
        """Of the rows that judge, each likelihood with a uniform part so small that it bounds it only."""
        if choice not in self._fits:
            stronger = (c for c in self._fits if c.strength > choice.strength and c.own == choice.own)
            start = self._fits[min(stronger, default=TEMPERATURE)]
            self._fits[choice] = self._problem.fit(choice.strength, start, own=choice.own, tol=_TOL, max_iter=_MAX_ITER)
        inputs, labels = self._held
        likelihood = np.exp(-row_losses(inputs, labels, self._fits[choice]))
        bounded = (1 - self._doubt) * likelihood + self._doubt / inputs.shape[1]
        return np.asarray(-np.log(bounded))


def row_losses(inputs: Inputs, labels: Labels, fit: AffineFit) -> Float[np.ndarray, " n"]:
    """-log softmax(a x + M (x, 1))_y of every row."""
    losses = np.empty(len(labels))
    for start, x in row_chunks(inputs):
        scores = fit.scale * x + x @ fit.part[:, :-1].T + fit.part[:, -1]
        own = labels[start : start + len(x)]
        losses[start : start + len(x)] = logsumexp(scores) - scores[np.arange(len(x)), own]
    return losses
