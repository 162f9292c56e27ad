"""Focal temperature scaling: the inverse of focal loss's distortion, of scaled logits, both parameters fitted."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from focalcal.core.checks import user_level
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import namespace
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.newton_temperature import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    at_bound,
    optimal_inverse_temperature,
)
from focalcal.posthoc.storage import Decoder, nonnegative, positive
from focalcal.theory.recovery import inverse_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

_HIGHEST_GAMMA = 20.0
_STEP, _FLAT = 1e-4, 1e-4  # of the differences that the optimum is checked with, and what they may leave


class FocalTemperatureScaling(Calibrator):
    """eta_k proportional to 1 / -phi'(q_k), q = softmax(logits / T), phi(u) = -(1 - u)^gamma log u; T, gamma fitted.

    Komisarenko and Kull (2024): the map that takes the optimum of focal loss back to the posterior, as a two-parameter
    family for any network. Both minimise the mean negative log-likelihood; gamma = 0 is temperature scaling, where the
    search starts, so it is never worse on the fitted rows. The order of the classes never changes.
    `PosteriorRecovery` is the same map with a known gamma, and with FCL's lam.

    Attributes: `temperature_`, `gamma_` in [0, 20], `at_bound_` (of T), `classes_`, `n_features_in_`.
    """

    _state: ClassVar[dict[str, Decoder]] = {"temperature_": positive, "gamma_": nonnegative}
    temperature_: float
    gamma_: float

    @property
    def at_bound_(self) -> bool:
        """Whether T is a bound, since the fitted rows have no finite optimum."""
        return at_bound(self.temperature_)

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        start = -math.log(optimal_inverse_temperature(logits, labels, weights).inverse_temperature)
        bounds = [(math.log(LOWEST_TEMPERATURE), math.log(HIGHEST_TEMPERATURE)), (0.0, _HIGHEST_GAMMA)]

        def nll(point: tuple[float, float]) -> float:
            temperature, total = math.exp(point[0]), 0.0
            for first, rows in row_chunks(logits):
                own, weight = (each[first : first + len(rows)] for each in (labels, weights))
                log_p = _log_probs(rows.astype(np.float64), temperature, float(point[1]))
                total -= float(log_p[np.arange(len(rows)), own] @ weight)
            return total / float(weights.sum())

        options = {"ftol": 1e-14, "gtol": 1e-8}
        search = minimize(nll, (start, 0.0), jac="3-point", method="L-BFGS-B", bounds=bounds, options=options)
        best = (float(search.x[0]), float(search.x[1]))
        if nll((start, 0.0)) - search.fun <= 1e-13 * abs(search.fun):  # less is rounding
            best = (start, 0.0)
        slope = _slope(nll, best, bounds)
        if slope > _FLAT * max(1.0, abs(search.fun)):
            warnings.warn(
                f"the fit stopped at a point that is not optimal: the NLL still falls by {slope:.1e} per unit of log T "
                "or gamma; fit on more rows, or use TemperatureScaling",
                CalibrationWarning,
                stacklevel=user_level(),
            )
        self.temperature_, self.gamma_ = math.exp(best[0]), best[1]

    def _arrays(self) -> dict[str, Any]:
        return {"temperature": self.temperature_, "gamma": self.gamma_}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        return namespace(logits).exp(_log_probs(logits, learnt["temperature"], learnt["gamma"]))


def _slope(
    nll: Callable[[tuple[float, float]], float], point: tuple[float, float], bounds: list[tuple[float, float]]
) -> float:
    """The largest derivative along an axis by which the loss could fall within the bounds, from differences."""
    slopes = []
    for axis, (low, high) in enumerate(bounds):
        left, right = max(low, point[axis] - _STEP), min(high, point[axis] + _STEP)
        rise = [nll((at, point[1]) if axis == 0 else (point[0], at)) for at in (left, right)]
        slope = (rise[1] - rise[0]) / (right - left)
        outward = (left == point[axis] and slope > 0) or (right == point[axis] and slope < 0)
        slopes.append(0.0 if outward else abs(slope))
    return max(slopes)


def _log_probs(logits: Any, temperature: Any, gamma: Any) -> Any:
    shifted = logits - namespace(logits).max(logits, axis=1, keepdims=True)
    return inverse_map(shifted / temperature, gamma, 0.0)
