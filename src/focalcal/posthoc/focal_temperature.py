"""Focal temperature scaling: the inverse of focal loss's distortion, of scaled logits, both parameters fitted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from focalcal.core.checks import warn
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import log_probs_and_complements, log_softmax, namespace
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.storage import Decoder, nonnegative, positive
from focalcal.posthoc.temperature import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, at_bound, optimal_inverse_temperature
from focalcal.theory.recovery import inverse_map

if TYPE_CHECKING:
    from jaxtyping import Float

    from focalcal.core.arrays import Labels, PerRow, Scores

_HIGHEST_GAMMA = 20.0
_FLAT = 1e-4  # what the gradient may be at the optimum


class FocalTemperatureScaling(Calibrator):
    """eta_k proportional to 1 / -phi'(q_k), q = softmax(logits / T), phi(u) = -(1 - u)^gamma log u; T, gamma fitted.

    Komisarenko and Kull (2024): the map that takes the optimum of focal loss back to the posterior, as a two-parameter
    family for any network. Both minimise the mean negative log-likelihood; gamma = 0 is temperature scaling, where the
    search starts, so it is never worse on the fitted rows. The order of the classes never changes.
    `PosteriorRecovery` is the same map with a known gamma, and with FCL's lam.

    Attributes: `temperature_`, `gamma_` in [0, 20], `at_bound_` (of T), `classes_`, `n_features_in_`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> scaling = FocalTemperatureScaling().fit(3 * logits, labels)  # no focal loss made these
    >>> round(scaling.temperature_, 2), scaling.gamma_
    (2.86, 0.0)
    """

    _state: ClassVar[dict[str, Decoder]] = {"temperature_": positive, "gamma_": nonnegative}
    temperature_: float
    gamma_: float

    @property
    def at_bound_(self) -> bool:
        """Whether T is a bound, since the fitted rows have no finite optimum."""
        return at_bound(self.temperature_)

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        start = -math.log(optimal_inverse_temperature(logits, labels, weights).inverse_temperature)
        bounds = [(math.log(LOWEST_TEMPERATURE), math.log(HIGHEST_TEMPERATURE)), (0.0, _HIGHEST_GAMMA)]

        def nll(point: Any) -> tuple[float, Float[np.ndarray, " 2"]]:
            sums = np.zeros(3)
            for first, rows in row_chunks(logits):
                own, weight = (each[first : first + len(rows)] for each in (labels, weights))
                sums += _loss_and_slopes(rows.astype(np.float64), own, weight, math.exp(point[0]), float(point[1]))
            sums /= weights.sum()
            return float(sums[0]), sums[1:]

        options = {"ftol": 1e-14, "gtol": 1e-8}
        search = minimize(nll, (start, 0.0), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        best, gradient = (float(search.x[0]), float(search.x[1])), search.jac
        without, its_gradient = nll((start, 0.0))
        if without - search.fun <= 1e-13 * abs(search.fun):  # less is rounding
            best, gradient = (start, 0.0), its_gradient
        slope = _slope(gradient, best, bounds)
        if slope > _FLAT * max(1.0, abs(search.fun)):
            warn(
                f"the fit stopped at a point that is not optimal: the NLL still falls by {slope:.1e} per unit of log T "
                "or gamma; fit on more rows, or use TemperatureScaling",
                CalibrationWarning,
            )
        self.temperature_, self.gamma_ = math.exp(best[0]), best[1]

    def _map(self, logits: Any, **learnt: Any) -> Any:
        return namespace(logits).exp(_log_probs(logits, learnt["temperature"], learnt["gamma"]))


def _slope(gradient: Any, point: tuple[float, float], bounds: list[tuple[float, float]]) -> float:
    """The largest derivative along an axis by which the loss could fall within the bounds."""
    outward = [
        (at <= low and by > 0) or (at >= high and by < 0)
        for at, by, (low, high) in zip(point, gradient, bounds, strict=True)
    ]
    return float(np.abs(np.where(outward, 0.0, gradient)).max())


def _loss_and_slopes(logits: Any, labels: Any, weights: Any, temperature: float, gamma: float) -> Any:
    """The sum over rows of -log eta_y and its derivatives in log T and in gamma.

    -log eta_y = log s_y + log sum_k 1 / s_k, s = -phi'(q); with r = -log u / (1 - u),
    log s = gamma log(1 - u) + log(1 + gamma u r) - log u.
    """
    shifted = _shifted(logits) / temperature
    log_q, log_not_q = log_probs_and_complements(shifted)
    q, not_q = np.exp(log_q), np.exp(log_not_q)
    with np.errstate(divide="ignore", invalid="ignore"):
        ur = np.where(not_q < 1e-8, q * (1 + not_q / 2), -q * log_q / not_q)
        bend = np.where(not_q < 1e-5, -0.5 - not_q / 6, (ur - 1) / not_q)  # u dr/du
    log_eta = log_softmax(log_q - gamma * log_not_q - np.log1p(gamma * ur))
    along_log_q = (gamma * q * bend - 1) / (1 + gamma * ur) - gamma * np.exp(np.minimum(log_q - log_not_q, 700.0))
    slopes = along_log_q * ((q * shifted).sum(1, keepdims=True) - shifted), log_not_q + ur / (1 + gamma * ur)
    eta, rows = np.exp(log_eta), np.arange(len(labels))
    own = -log_eta[rows, labels], *(each[rows, labels] - (eta * each).sum(1) for each in slopes)
    return np.stack(own) @ weights


def _shifted(logits: Any) -> Any:
    return logits - namespace(logits).max(logits, axis=1, keepdims=True)


def _log_probs(logits: Any, temperature: Any, gamma: Any) -> Any:
    return inverse_map(_shifted(logits) / temperature, gamma, 0.0)
