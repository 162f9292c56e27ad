"""How much more confident a network is than the posterior: a factor on its logits, and an interval for it."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import log_softmax, logsumexp
from focalcal.metrics.bootstrap_statistics import row_weights
from focalcal.posthoc.calibrator import CalibrationWarning
from focalcal.posthoc.newton_temperature import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from focalcal.posthoc.recovery import PosteriorRecovery
from focalcal.posthoc.temperature import TemperatureScaling
from focalcal.theory.recovery import inverse_map

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_POPULATION = 1 << 18  # elements that the posteriors need not exceed; their share of the error is in the derivation
_POPULATION_ROWS = 1000
_NODES = 9  # temperatures at which the likelihood of every row is known
_REACH = 6.0  # standard errors of log T on either side


def fitted_temperature(calibrator: Any, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"]) -> float:
    """The calibrator's temperature, which must not be a bound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        calibrator.fit(logits, labels)
    if calibrator.at_bound_ or getattr(calibrator, "status_", "converged") != "converged":
        reason = getattr(calibrator, "status_", "the labels are predicted perfectly, or worse than chance")
        raise ValueError(
            f"logits must have a best temperature between {LOWEST_TEMPERATURE:g} and {HIGHEST_TEMPERATURE:g}, got "
            f"{calibrator.temperature_:g}: {reason}; check the labels, and pass more rows that the network was not "
            "trained on"
        )
    return float(calibrator.temperature_)


class HeldOut:
    """Held-out logits and labels of a network, taken for c log q*(eta) and labels drawn from eta.

    q* is that of Focal Calibration Loss at `trained_with`, gamma = 0 being cross-entropy, where q* = eta. c, the
    overfitting factor, maximises the likelihood of the eta recovered from softmax(logits / c).
    """

    def __init__(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], trained_with: tuple[float, float]
    ) -> None:
        self._logits, self._labels = logits, labels
        self._gamma, self._lam = trained_with
        self._sampled = _systematic_sample(logits)

    def overfitting(self) -> float:
        """c; after cross-entropy the temperature of temperature scaling."""
        if self._gamma == 0:
            return fitted_temperature(TemperatureScaling(), self._logits, self._labels)
        recovery = PosteriorRecovery(self._gamma, self._lam, fit_temperature=True)
        return fitted_temperature(recovery, self._logits, self._labels)

    def posteriors(self, temperature: float) -> Float[np.ndarray, "m k"]:
        """The recovered posteriors of the sampled rows."""
        return np.asarray(np.exp(self._log_probs(self._logits[self._sampled], temperature)))

    def interval(self, temperature: float, *, level: float, resamples: int, seed: int) -> tuple[float, float]:
        """Percentiles of the temperature that resampled rows need."""
        reach = _REACH * self._standard_error(temperature)
        nodes = reach * np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)  # Chebyshev's, in log T - log temperature
        losses = np.stack([self._row_losses(temperature * math.exp(node)) for node in nodes])
        grid = np.linspace(-reach, reach, 2001)
        through = np.linalg.solve(np.vander(nodes / reach).T, np.vander(grid / reach, _NODES).T)  # (nodes, grid)
        batches = row_weights(len(self._logits), len(self._logits), resamples, seed)
        best = np.concatenate([grid[((losses @ weights).T @ through).argmin(1)] for weights in batches])
        tail = (1 - level) / 2
        low, high = temperature * np.exp(np.quantile(best, [tail, 1 - tail]))
        return float(low), float(high)

    def _standard_error(self, temperature: float) -> float:
        """Of log T, by the sandwich formula from differences of the rows' losses."""
        step = 0.01
        below, at, above = (self._row_losses(temperature * math.exp(move)) for move in (-step, 0.0, step))
        slope, curvature = (above - below) / (2 * step), (above + below - 2 * at).sum() / step**2
        return float(min(np.sqrt((slope**2).sum()) / max(curvature, 1e-300), 1.0))

    def _row_losses(self, temperature: float) -> Float[np.ndarray, " n"]:
        losses = np.empty(len(self._labels))
        for start, rows in row_chunks(self._logits):
            at = np.arange(len(rows))
            losses[start + at] = -self._log_probs(rows, temperature)[at, self._labels[start + at]]
        return losses

    def _log_probs(self, logits: Float[np.ndarray, "n k"], temperature: float) -> Float[np.ndarray, "n k"]:
        with np.errstate(all="ignore"):
            scaled = (logits - logits.max(1, keepdims=True)).astype(np.float64) / temperature
            log_probs = log_softmax(scaled) if self._gamma == 0 else inverse_map(scaled, self._gamma, self._lam)
        return np.asarray(log_probs)


def _systematic_sample(logits: Float[np.ndarray, "n k"]) -> Int[np.ndarray, " m"]:
    """Every so many rows in the order of confidence: what depends on confidence varies less than in a random sample."""
    wanted = max(_POPULATION_ROWS, _POPULATION // logits.shape[1])
    if len(logits) <= wanted:
        return np.arange(len(logits))
    lead = [logsumexp(rows.astype(np.float64)) - rows.max(1) for _, rows in row_chunks(logits)]
    places = (np.arange(wanted) + 0.5) * (len(logits) / wanted)
    chosen: Int[np.ndarray, " m"] = np.argsort(np.concatenate(lead), kind="stable")[places.astype(np.int64)]
    return chosen
