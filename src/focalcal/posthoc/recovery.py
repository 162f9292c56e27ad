"""The exact inverse of what Focal Calibration Loss does to the posterior, as a calibrator."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from focalcal.core.checks import finite_at_least, warn, yes_or_no
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import namespace
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.storage import Decoder, positive
from focalcal.posthoc.temperature import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, at_bound
from focalcal.theory.recovery import inverse_map, log_posterior

if TYPE_CHECKING:
    from focalcal.core.arrays import Labels, PerRow, Scores

__all__ = ["PosteriorRecovery", "log_posterior"]

_SAMPLE, _SAMPLE_ROWS = 1 << 17, 2000  # elements, and rows, that the sample for a first look has at least
_LARGEST = 1e9  # gamma and lam beyond it leave nothing of the posterior in the probabilities


class PosteriorRecovery(Calibrator):
    """The posterior that Focal Calibration Loss (gamma, lam) would turn into these probabilities.

    FCL's population optimum q* differs from the posterior eta unless gamma = 0; eta -> q* has a closed-form inverse
    (`log_posterior`). Here q = softmax(logits / T). Without a fitted temperature T = 1: nothing is learnt, and
    `predict_proba` works before `fit`. With `fit_temperature=True`, T minimises the negative log-likelihood of the
    *recovered* probabilities; a T fitted to softmax(logits / T) itself would already undo part of the distortion, and
    the inverse would undo it twice. gamma and lam are those the network was trained with; lam = 0 is focal loss.

    The order of the classes in a row, hence the predicted class, never changes. A trained network is not exactly at
    the population optimum, so whether this helps is to be measured. Attributes: `temperature_`, `at_bound_` (as in
    `TemperatureScaling`), `classes_`, ...

    Args:
        gamma: that the network was trained with, >= 0.
        lam: likewise.
        fit_temperature: whether `fit` looks for a temperature, too.

    >>> import numpy as np
    >>> recovery = PosteriorRecovery(gamma=2.0, lam=1.0)
    >>> recovery.predict_proba(np.log([[0.5924, 0.2584, 0.1492]])).round(3)  # what FCL makes of (0.7, 0.2, 0.1)
    array([[0.7, 0.2, 0.1]])
    """

    _state: ClassVar[dict[str, Decoder]] = {"temperature_": positive}
    temperature_: float

    def __init__(self, gamma: float = 3.0, lam: float = 1.0, *, fit_temperature: bool = False) -> None:
        self.gamma = gamma
        self.lam = lam
        self.fit_temperature = fit_temperature

    def _check_params(self) -> None:
        for name in ("gamma", "lam"):
            if finite_at_least(name, value := getattr(self, name), 0.0) > _LARGEST:
                raise ValueError(f"{name} must be at most {_LARGEST:g}, got {value!r}; pass the value of the training")
        yes_or_no("fit_temperature", self.fit_temperature)

    @property
    def at_bound_(self) -> bool:
        """Whether the fitted T is a bound, since there is no finite optimum."""
        return at_bound(self.temperature_)

    def _needs_fit(self) -> bool:
        return bool(self.fit_temperature)

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        self.temperature_ = self._best_temperature(logits, labels, weights) if self.fit_temperature else 1.0

    def _arrays(self) -> dict[str, Any]:
        return {"temperature": self.temperature_ if self.fit_temperature else 1.0}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        return namespace(logits).exp(self._log_probs(logits, learnt["temperature"]))

    def _log_probs(self, logits: Any, temperature: Any) -> Any:
        shifted = logits - namespace(logits).max(logits, axis=1, keepdims=True)
        return inverse_map(shifted / temperature, float(self.gamma), float(self.lam))

    def _nll(self, logits: Scores, labels: Labels, weights: PerRow, temperature: float) -> float:
        total = 0.0
        for start, rows in row_chunks(logits):
            own, weight = (each[start : start + len(rows)] for each in (labels, weights))
            with np.errstate(all="ignore"):
                log_p = self._log_probs(rows.astype(np.float64), temperature)
            total -= float(log_p[np.arange(len(rows)), own] @ weight)
        return total / float(weights.sum())

    def _best_temperature(self, logits: Scores, labels: Labels, weights: PerRow) -> float:
        """Not convex in general: a grid over the whole range, then Brent's method, on a sample; then on all rows.

        If all rows lead away from where the sample led, the grid is laid over all rows.
        """
        rows = max(_SAMPLE_ROWS, _SAMPLE // logits.shape[1])
        chosen = np.random.default_rng(0).permutation(len(logits))[:rows]
        everything = (logits, labels, weights)
        sample = everything if len(logits) <= rows else (logits[chosen], labels[chosen], weights[chosen])
        lowest, highest = math.log(LOWEST_TEMPERATURE), math.log(HIGHEST_TEMPERATURE)
        bounds = lowest, highest
        grid = np.linspace(lowest, highest, 25).tolist()
        spacing = grid[1] - grid[0]

        @cache
        def on_sample(t: float) -> float:
            return self._nll(*sample, math.exp(t))

        @cache
        def on_all(t: float) -> float:
            return self._nll(*everything, math.exp(t))

        def best_of_grid(loss: Callable[[float], float]) -> float:
            near = min(grid, key=loss)
            around = max(lowest, near - spacing), min(highest, near + spacing)
            found = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-3})
            return float(min(near, found.x, key=loss))

        guess = best_of_grid(on_sample)
        best = _polish(on_all, guess, bounds)
        led = abs(best - guess) <= spacing / 2 and on_all(best) <= on_all(guess) and not at_bound(math.exp(best))
        if sample is not everything and not led:
            best = min(best, _polish(on_all, best_of_grid(on_all), bounds), key=on_all)
        if at_bound(math.exp(best)):
            warn(
                f"temperature set to {math.exp(best):g}: no finite optimum, since the logits predict the labels "
                "perfectly, or worse than chance; check the labels, and fit on rows the network was not trained on",
                CalibrationWarning,
            )
        return math.exp(best)


def _polish(function: Callable[[float], float], near: float, bounds: tuple[float, float]) -> float:
    """The minimum to 1e-7 or better, from differences that rounding leaves alone; `near` itself where it is flat."""
    width = 1e-4
    for _ in range(20):
        if min(near - bounds[0], bounds[1] - near) < width:
            return min(bounds, key=lambda bound: abs(bound - near))
        at, left, right = function(near), function(near - width), function(near + width)
        if left + right - 2 * at <= 1e-12 * abs(at):  # no curvature to speak of
            return near
        move = width * (left - right) / (2 * (left + right - 2 * at))
        near += min(max(move, -0.05), 0.05)
        if abs(move) < width:
            break
    return near
