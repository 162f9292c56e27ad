"""The temperature that minimises the negative log-likelihood, to float64 precision, in about two passes.

With b = 1 / T and s_ik = z_ik - max_j z_ij the loss of a data set is convex in b:

    f(b) = sum_i log sum_k exp(b s_ik) - b s_iy,        f'(b)  = sum_i E_i[s] - s_iy,
    f''(b) = sum_i Var_i[s],                            f'''(b) = sum_i E_i[(s - E_i[s])^3],

with the moments of each row taken under softmax(b s_i), and every term times the weight of its row. A step is
Halley's (cubic convergence), kept inside a bracket by the sign of f'. The first steps see a sample of the rows, the
next one all rows in float32; only the last ones, which decide the answer, cost float64. One read of the logits and one
exponential per element and pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from focalcal._native import softmax
from focalcal.core.arrays import as_array, scores_and_labels
from focalcal.core.checks import shown
from focalcal.core.chunks import row_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 1e-3, 1e3
_SAMPLE = 1 << 13  # elements a sample of the rows has at least
_FACTOR = 10.0  # the farthest a step moves b
_SETTLED = 1e-4  # a relative step so small leaves an error of its third power


def at_bound(temperature: float) -> bool:
    """Whether a fitted T is an end of [1e-3, 1e3], taken because there is no finite optimum inside."""
    return not LOWEST_TEMPERATURE * (1 + 1e-9) < temperature < HIGHEST_TEMPERATURE * (1 - 1e-9)


class TemperatureStatus(StrEnum):
    """How the search for a temperature ended."""

    CONVERGED = "converged"
    SEPARABLE = "every label has its row's largest logit, so the likelihood rises without end as T falls to 0"
    LOWER_BOUND = "the best temperature lies below the lower bound"
    UPPER_BOUND = "the best temperature lies above the upper bound"
    WORSE_THAN_CHANCE = "the logits say less than nothing about the labels, so no temperature is high enough"
    FLAT = "all logits of every row are equal, so every temperature is as good as another"


@dataclass(frozen=True)
class Optimum:
    """The inverse temperature, how it was reached, and how often all rows were looked at."""

    inverse_temperature: float
    status: TemperatureStatus
    passes: int


class _Derivatives(NamedTuple):
    first: float
    second: float
    third: float


def optimal_inverse_temperature(
    logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"] | None = None
) -> Optimum:
    """argmin over b = 1/T of the mean of -log softmax(b z)_y, T in [1e-3, 1e3]; finite logits, labels in range.

    Weights of the rows are float64 and > 0, one if there are none. The error relative to the exact minimiser, for the
    logits as they are given, is below 1e-9.

    Args:
        logits: (N, K).
        labels: (N,), class indices.
        weights: (N,), how often each row counts.

    Returns:
        1 / T, how it was reached, and how often all rows were looked at; `TemperatureScaling` has the rest.

    >>> logits = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    >>> round(1 / optimal_inverse_temperature(logits, np.array([0, 0, 1, 1])).inverse_temperature, 4)
    1.8205
    """
    logits, labels = scores_and_labels("logits", logits, labels)
    if logits.ndim != 2:
        raise ValueError(f"logits must be (N, K), got shape {logits.shape}; put the examples into dimension 0")
    if weights is None:
        weights = np.ones(len(logits))
    elif np.shape(weights) != labels.shape or (weights := as_array("weights", weights)).dtype != np.float64:
        raise TypeError(f"weights must be a float64 array with one weight per row, got {shown(weights)}")
    if all(_own_is_largest(rows, labels[start : start + len(rows)]) for start, rows in row_chunks(logits)):
        if all((rows.min(1) == rows.max(1)).all() for _, rows in row_chunks(logits)):
            return Optimum(1.0, TemperatureStatus.FLAT, 1)
        return Optimum(1 / LOWEST_TEMPERATURE, TemperatureStatus.SEPARABLE, 1)

    def slopes(rows: slice, *, exact: bool) -> Callable[[float], _Derivatives]:
        part = logits[rows], labels[rows], weights[rows]

        def at(b: float) -> _Derivatives:
            sums = softmax.moment_sums(*part, b, exact=exact)
            return _Derivatives(sums.mean - sums.own, sums.variance, sums.third)

        return at

    everything = slice(None)
    stride = len(logits) // max(1, _SAMPLE // logits.shape[1], len(logits) // 16)
    sample = slice(None, None, max(1, stride))
    b = _first_guess(slopes(sample, exact=False))
    guess, status, _ = _search(slopes(sample, exact=False), b, settled=0.03, most=30)
    if status is TemperatureStatus.CONVERGED:
        b = guess
    rough, status, _ = _search(slopes(everything, exact=False), b, settled=math.inf, most=1)
    b = rough if status is TemperatureStatus.CONVERGED else b
    b, status, passes = _search(slopes(everything, exact=True), b, settled=_SETTLED, most=200)
    if status is TemperatureStatus.UPPER_BOUND and _slope_at_zero(logits, labels, weights) >= 0:
        status = TemperatureStatus.WORSE_THAN_CHANCE
    return Optimum(b, status, passes + 1)


def _own_is_largest(logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"]) -> bool:
    return bool((logits[np.arange(len(labels)), labels] == logits.max(1)).all())


def _slope_at_zero(
    logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> float:
    """f'(0): the sum over the rows of mean logit minus the label's logit."""
    total = 0.0
    for start, rows in row_chunks(logits):
        at = np.arange(start, start + len(rows))
        own = rows[at - start, labels[at]].astype(np.float64)
        total += float(((rows.astype(np.float64) / rows.shape[1]).sum(1) - own) @ weights[at])
    return total


def _first_guess(slope: Callable[[float], _Derivatives]) -> float:
    """Newton's step from b = 0, where softmax is uniform: right in scale whatever the logits' scale is."""
    at_zero = slope(1e-30)
    scale = math.sqrt(max(at_zero.second, 1e-300))
    guess = -at_zero.first / at_zero.second if at_zero.first < 0 < at_zero.second else 1 / scale
    return min(max(guess, 1 / HIGHEST_TEMPERATURE), 1 / LOWEST_TEMPERATURE)


def _search(
    slope: Callable[[float], _Derivatives], b: float, *, settled: float, most: int
) -> tuple[float, TemperatureStatus, int]:
    """The root of f' from `b`: Halley's steps, at most a factor of ten, bisection where they leave the bracket."""
    lowest, highest = 1 / HIGHEST_TEMPERATURE, 1 / LOWEST_TEMPERATURE
    low, high = 0.0, math.inf  # f' < 0 at low and > 0 at high, once they are known
    for step in range(1, most + 1):
        f = slope(b)
        if f.first >= 0 and b <= lowest:
            return lowest, TemperatureStatus.UPPER_BOUND, step
        if f.first <= 0 and b >= highest:
            return highest, TemperatureStatus.LOWER_BOUND, step
        low, high = (low, b) if f.first > 0 else (b, high)
        proposal = _halley(b, f)
        proposal = min(max(proposal, b / _FACTOR, lowest), b * _FACTOR, highest)
        if not low <= proposal <= high:
            proposal = math.sqrt(low * high)
        change = abs(proposal - b)
        b = proposal
        if change <= settled * b:
            return b, TemperatureStatus.CONVERGED, step
    return b, TemperatureStatus.CONVERGED, most


def _halley(b: float, f: _Derivatives) -> float:
    """The next b; downhill by the largest step allowed where f is too flat to say."""
    if not f.second > 0 or not math.isfinite(f.first):
        return math.inf if f.first < 0 else 0.0
    newton = f.first / f.second
    bend = 1 - newton * f.third / (2 * f.second)
    return b - newton / (bend if 0.5 < bend < 2 else 1.0)
