"""The temperature that minimises the negative log-likelihood, to float64 precision, in about two passes.

With b = 1 / T and s_ik = z_ik - max_j z_ij the loss of a data set is convex in b:

    f(b) = sum_i log sum_k exp(b s_ik) - b s_iy,        f'(b)  = sum_i E_i[s] - s_iy,
    f''(b) = sum_i Var_i[s],                            f'''(b) = sum_i E_i[(s - E_i[s])^3],

with the moments of each row taken under softmax(b s_i), and every term times the weight of its row. A step is
Halley's (cubic convergence), kept inside a bracket by the sign of f'. The first steps see a sample of the rows, the
next one all rows in float32; only the last ones, which decide the answer, cost float64. One exponential per element and
pass; memory for one chunk of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from focalcal.core.checks import shown
from focalcal.core.chunks import row_chunks
from focalcal.core.scores import scores_and_labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int

LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 1e-3, 1e3
_CHUNK = 1 << 19  # bytes: two buffers of them stay in the second-level cache
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
    logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"], weights: Float[Tensor, " n"] | None = None
) -> Optimum:
    """argmin over b = 1/T of the mean of -log softmax(b z)_y, T in [1e-3, 1e3]; finite logits, labels in range.

    Weights of the rows are float64 and > 0, one if there are none. The error relative to the exact minimiser, for the
    logits as they are given, is below 1e-9.
    """
    logits, labels = scores_and_labels("logits", logits, labels)
    if logits.dim() != 2:
        raise ValueError(f"logits must be (N, K), got shape {tuple(logits.shape)}; put the examples into dimension 0")
    if weights is None:
        weights = torch.ones(len(logits), dtype=torch.float64, device=logits.device)
    elif not isinstance(weights, Tensor) or weights.shape != labels.shape or weights.dtype != torch.float64:
        raise TypeError(f"weights must be a float64 tensor with one weight per row, got {shown(weights)}")
    top = logits.amax(1, keepdim=True)
    own = (logits.gather(1, labels.unsqueeze(1)).double() - top.double()).squeeze(1)
    if not bool(own.any()):
        if bool((logits.amin(1, keepdim=True) == top).all()):
            return Optimum(1.0, TemperatureStatus.FLAT, 1)
        return Optimum(1 / LOWEST_TEMPERATURE, TemperatureStatus.SEPARABLE, 1)

    def slopes(rows: slice, dtype: torch.dtype) -> Callable[[float], _Derivatives]:
        part, part_top, part_weights = logits[rows], top[rows], weights[rows]
        part_own = float(own[rows].dot(part_weights))

        def at(b: float) -> _Derivatives:
            mean, variance, skew = _moment_sums(part, part_top, part_weights, b, dtype)
            return _Derivatives(mean - part_own, variance, skew)

        return at

    everything = slice(None)
    stride = len(logits) // max(1, _SAMPLE // logits.shape[1], len(logits) // 16)
    sample = slice(None, None, max(1, stride))
    b = _first_guess(slopes(sample, torch.float32))
    guess, status, _ = _search(slopes(sample, torch.float32), b, settled=0.03, most=30)
    if status is TemperatureStatus.CONVERGED:
        b = guess
    rough, status, _ = _search(slopes(everything, torch.float32), b, settled=math.inf, most=1)
    b = rough if status is TemperatureStatus.CONVERGED else b
    b, status, passes = _search(slopes(everything, torch.float64), b, settled=_SETTLED, most=200)
    if status is TemperatureStatus.UPPER_BOUND and _slope_at_zero(logits, labels, weights) >= 0:
        status = TemperatureStatus.WORSE_THAN_CHANCE
    return Optimum(b, status, passes + 1)


def _moment_sums(
    logits: Float[Tensor, "n k"], top: Float[Tensor, "n 1"], weights: Float[Tensor, " n"], b: float, dtype: torch.dtype
) -> tuple[float, float, float]:
    """Weighted sums over the rows of mean, variance and third central moment of z - max z under softmax(b z)."""
    rows = min(max(1, _CHUNK // (logits.shape[1] * dtype.itemsize)), len(logits))
    shifted = torch.empty(rows, logits.shape[1], dtype=dtype, device=logits.device)
    exponentials = torch.empty_like(shifted)
    powers = torch.empty(4, rows, dtype=dtype, device=logits.device)
    ones = torch.ones(logits.shape[1], dtype=dtype, device=logits.device)
    # Below this an entry weighs nothing; cutting it off keeps denormals (slow) and 0 * inf (wrong) out.
    floor = (-80.0 if dtype is torch.float32 else -690.0) / b
    total = torch.zeros(3, dtype=torch.float64, device=logits.device)
    for start in range(0, len(logits), rows):
        chunk, chunk_top = logits[start : start + rows], top[start : start + rows]
        s, e, moments = shifted[: len(chunk)], exponentials[: len(chunk)], powers[:, : len(chunk)]
        if chunk.dtype.itemsize >= dtype.itemsize:
            torch.sub(chunk, chunk_top, out=s)
        else:  # subtract in the wider of the two dtypes, here as there
            s.copy_(chunk).sub_(chunk_top)
        torch.mul(s.clamp_(min=floor), b, out=e).exp_()
        for power in range(4):  # sums over the classes of e, e s, e s^2, e s^3
            torch.mv(e if power == 0 else e.mul_(s), ones, out=moments[power])
        moments = moments.double()
        mean, square, cube = moments[1:].div_(moments[0])
        variance = square.addcmul_(mean, mean, value=-1)
        skew = cube.sub_(mean * (mean * mean + 3 * variance))
        total += torch.stack([mean, variance, skew]) @ weights[start : start + rows]
    mean_sum, variance_sum, skew_sum = total.tolist()
    return mean_sum, variance_sum, skew_sum


def _slope_at_zero(logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"], weights: Float[Tensor, " n"]) -> float:
    """f'(0): the sum over the rows of mean logit minus the label's logit."""
    own = logits.gather(1, labels.unsqueeze(1)).double().squeeze(1)
    means = torch.cat([(rows.double() / rows.shape[1]).sum(1) for _, rows in row_chunks(logits)])
    return float((means - own).dot(weights))


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
