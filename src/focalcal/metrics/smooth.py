"""Smooth calibration error: a kernel in place of bins, its width chosen by the data.

Blasiok & Nakkiran (2023), "Smooth ECE: principled reliability diagrams via kernel smoothing", with the numerical
choices of their code (relplot): residuals and counts are put on a grid of nodes in [0, 1], reflected at both ends,
smoothed with a Gaussian and compared on a mesh. On the grid the reflected signal is periodic, so one Fourier
transform serves every width.

One thing differs. A point's mirror image lies as far outside an end as the point lies inside; at the end itself
the two fall on the same node, which must hold both. relplot keeps one, so that confidences of exactly 1, common in
trained networks, count half of what 0.998 counts. convention="relplot" gives its values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import fft

from focalcal._native import scores as native
from focalcal.core.arrays import Array
from focalcal.core.binning import even_bin_index
from focalcal.core.checks import finite_at_least, one_of
from focalcal.metrics.scan import even_edges

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float

STEPS = 1024  # widths are searched for among the multiples of 1 / 1024
_COARSEST = 1000  # node intervals of all widths from 0.01 on
_FINEST_COARSE = 11  # of the multiples of 1 / 1024; what is narrower costs a transform of its own


def binary_smooth_ece(
    confidence: Float[Array, " n"],
    correct: Bool[Array, " n"],
    *,
    bandwidth: float | None = None,
    convention: str = "whole",
    weights: Array | None = None,
) -> float:
    """Smooth calibration error (smECE) of the confidence against correctness.

    Without a `bandwidth` the width is the smallest multiple of 1/1024 that is no smaller than the error it gives, so
    that the value itself says at what resolution it holds. `convention` says how mass at 0 and 1 counts: "whole", or
    by half, "relplot".
    """
    one_of("convention", convention, ("whole", "relplot"))
    if bandwidth is not None and not 1e-4 <= finite_at_least("bandwidth", bandwidth, 0.0) <= 1:
        raise ValueError(f"bandwidth must be from 0.0001 to 1, got {bandwidth!r}; leave it out to have it chosen")
    smoother = Smoother(lambda n, _: node_sums(interval_moments(confidence, correct, n, weights)[None]), convention)
    if bandwidth is not None:
        return float(smoother.error(bandwidth, np.array([0]))[0])
    return float(smooth_ece_of(smoother, 1)[0][0])


@dataclass(frozen=True, eq=False)
class SmoothReliability:
    """The curve whose distance from the diagonal is smECE: t - r(t) / n(t), for smoothed residuals r and counts n.

    confidence  (mesh,) even steps t from 0 to 1
    accuracy    (mesh,) what share is right at that confidence, from 0 to 1
    density     (mesh,) rows per unit of confidence, n(t): sum |t - accuracy| density / sum density is smECE
    bandwidth   standard deviation of the kernel, the width at which smECE holds
    """

    confidence: Array
    accuracy: Array
    density: Array
    bandwidth: float

    @property
    def rows(self) -> Array:
        """How many rows each value rests on, (sum K)^2 / sum K^2 for a Gaussian K among even rows."""
        return 2 * math.sqrt(math.pi) * self.bandwidth * self.density


def smooth_reliability(
    confidence: Float[Array, " n"], correct: Bool[Array, " n"], weights: Array | None = None
) -> SmoothReliability:
    """The smooth reliability diagram of Blasiok & Nakkiran (2023), at the width that the data choose."""
    smoother = Smoother(lambda n, _: node_sums(interval_moments(confidence, correct, n, weights)[None]))
    (bandwidth,) = smooth_ece_of(smoother, 1)[1].tolist()
    (residual,), (density,) = smoother.on_mesh(bandwidth, np.array([0]))
    at, density = np.linspace(0, 1, len(density)), density.clip(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = (at - residual / density).clip(0, 1)
    return SmoothReliability(at, accuracy, density, bandwidth)


def interval_moments(
    confidence: Array, correct: Array, intervals: int, weights: Array | None = None
) -> Float[Array, "5 intervals"]:
    """Sums of 1, f, a, f^2 and f a over `intervals` equal parts of [0, 1], for probabilities f and outcomes a."""
    if weights is None and native.usable(confidence):
        return native.bin_moments(confidence, correct, even_edges(intervals), even=True)
    index = even_bin_index(confidence, intervals)
    f, a = confidence.astype(np.float64), correct.astype(np.float64)
    own = np.ones_like(f) if weights is None else weights
    return np.stack([np.bincount(index, own * values, intervals) for values in (1.0, f, a, f * f, f * a)])


def smooth_ece_of(smoother: Smoother, sets: int) -> tuple[Array, Array]:
    """smECE and its width, each (sets,).

    The width is the first multiple of 1/1024, not below 0.001, that is no smaller than the error it gives. Wider
    kernels give smaller errors, so there is one, between any width tried and the error found there, and the search
    goes where the last error points (then halves what is left). The reference bisects and finds the same.
    All sets go on together.
    """
    everyone = np.arange(sets)
    narrow, wide = np.ones(sets, dtype=int), np.full(sets, STEPS)  # 1/1024 < 0.001; no error exceeds 1
    value = np.ones(sets)
    trial = np.full(sets, STEPS // 16)
    for attempt in range(2 * STEPS.bit_length()):
        searching = everyone[wide - narrow > 1]
        if not len(searching):
            break
        error, steps = smoother.errors(trial[searching] / STEPS, searching), trial[searching]
        enough = steps / STEPS >= error
        narrow[searching[~enough]] = steps[~enough]
        found = searching[enough]
        wide[found], value[found] = steps[enough], error[enough]
        pointed = np.ceil(error * STEPS).astype(int) if attempt < 4 else (narrow + wide)[searching] // 2
        low, high = narrow[searching] + 1, wide[searching] - 1
        trial[searching] = np.clip(pointed, np.maximum(low, np.minimum(high, _FINEST_COARSE)), high)
    unseen = everyone[wide == STEPS]
    if len(unseen):
        value[unseen] = smoother.error(1.0, unseen)
    return value, wide / STEPS


class Smoother:
    """The smoothed residual of several sets at any width, from `nodes(intervals, sets)` -> (sets, 2, intervals + 1)."""

    def __init__(self, nodes: Callable[[int, Any], Array], convention: str = "whole") -> None:
        self._nodes = nodes
        self._at_ends = 2.0 if convention == "whole" else 1.0
        self._spectra: Array | None = None  # of the coarsest nodes, which all widths from 0.01 on share

    @property
    def sets(self) -> int:
        """How many sets there are."""
        return len(self._spectrum(_COARSEST, slice(None)))

    def error(self, width: float, chosen: Array) -> Array:
        """smECE at the width: sum |residual| / sum (count + 1e-4) over the mesh, for the chosen sets."""
        return _error(*self.on_mesh(width, chosen))

    def errors(self, widths: Array, chosen: Array) -> Array:
        """The same at a width of each set's own; those with the same nodes and mesh in one transform."""
        kernels = [_kernel(width) for width in widths.tolist()]
        errors, alike = np.empty(len(chosen)), np.array([(each[0], len(each[2])) for each in kernels])
        for intervals, mesh in np.unique(alike, axis=0):
            at = np.flatnonzero((alike == (intervals, mesh)).all(1))
            own = np.stack([kernels[each][1] for each in at])[:, None]
            _, _, left, weight = kernels[at[0]]
            errors[at] = _error(*self._meshed(int(intervals), own, left, weight, chosen[at]))
        return errors

    def on_mesh(self, width: float, chosen: Array) -> tuple[Array, Array]:
        """The smoothed residual and count, each (chosen, mesh), at even steps from 0 to 1."""
        return self._meshed(*_kernel(width), chosen)

    def _meshed(self, intervals: int, kernel: Array, left: Array, weight: Array, chosen: Array) -> tuple[Array, Array]:
        smooth = fft.irfft(self._spectrum(intervals, chosen) * kernel, 2 * intervals)
        meshed = smooth.take(left, -1) * (1 - weight) + smooth.take(left + 1, -1) * weight
        return meshed[:, 0], meshed[:, 1]

    def _spectrum(self, intervals: int, chosen: Any) -> Array:
        """The transform of the nodes reflected at 1, which repeats with twice the length of [0, 1].

        A finer one is made for the chosen sets alone: a search looks at each narrow width once at most.
        """
        if intervals == _COARSEST and self._spectra is None:
            self._spectra = self._transformed(self._nodes(intervals, slice(None)))
        if intervals == _COARSEST:
            assert self._spectra is not None
            return self._spectra[chosen]
        return self._transformed(self._nodes(intervals, chosen))

    def _transformed(self, nodes: Array) -> Array:
        nodes[..., [0, -1]] *= self._at_ends
        return fft.rfft(np.concatenate([nodes, nodes[..., -2:0:-1]], axis=-1))


def _error(residual: Array, count: Array) -> Array:
    return np.abs(residual).sum(-1) / (count + 1e-4).sum(-1)


def node_sums(moments: Array) -> Array:
    """(..., 5, M) sums over M intervals to (..., 2, M + 1) at their ends: of residuals f - a, and of counts.

    An example at f in [t_j, t_{j+1}] gives the share w = (f - t_j) M to the right end and 1 - w to the left one;
    (f - a) w is quadratic in f and a, so that the five moments give the sums exactly.
    """
    count, f, a, ff, fa = (moments[..., at, :] for at in range(5))
    intervals = moments.shape[-1]
    left = np.arange(intervals)
    nodes = np.zeros((*moments.shape[:-2], 2, intervals + 1))
    residual, residual_right = f - a, (ff - fa) * intervals - left * (f - a)
    count_right = f * intervals - left * count
    nodes[..., 0, :-1], nodes[..., 1, :-1] = residual - residual_right, count - count_right
    nodes[..., 0, 1:] += residual_right
    nodes[..., 1, 1:] += count_right
    return nodes


def intervals_for(width: float) -> int:
    """How many node intervals a width asks for."""
    return max(2 * _COARSEST, round(20 / width)) // 2


@lru_cache(maxsize=512)
def _kernel(width: float) -> tuple[int, Array, Array, Array]:
    """For one width: the number of node intervals, the kernel's transform, and where the mesh lies among the nodes.

    The kernel is the Gaussian density at as many points of [-1/2, 1/2] as there are nodes; with an even number of
    them it is half a node off centre, as in the reference.
    """
    intervals = intervals_for(width)
    points = np.linspace(-0.5, 0.5, intervals + 1)
    density = np.exp(-0.5 * (points / width) ** 2) / (width * np.sqrt(2 * np.pi))
    circle = np.zeros(2 * intervals)
    circle[(np.arange(intervals + 1) - (intervals + 1) // 2) % (2 * intervals)] = density
    mesh = np.linspace(0, 1, max(round(10 / width), 200)) * intervals
    left = np.minimum(mesh.astype(int), intervals - 1)
    return intervals, fft.rfft(circle), left, mesh - left


@lru_cache(maxsize=64)
def sensitivity(width: float) -> tuple[float, float, float]:
    """How what a row gives on the mesh depends on its place: largest slope and kink, and largest kink of the count.

    Slope and kinks (changes of slope at a node) are added up in absolute value over the mesh, for the worst place,
    and divided by the least that a row adds to the denominator. docs/math/sketch.md uses them.
    """
    intervals, kernel, left, weight = _kernel(width)
    size = 2 * intervals
    circle = fft.irfft(kernel, size)
    mesh = fft.rfft(np.bincount(left, 1 - weight, size) + np.bincount(left + 1, weight, size))

    def over_mesh(direct: Array, mirrored: Array) -> Array:
        """sum_n mesh_n (direct_{n - j} + mirrored_{n + j}) for the nodes j = 0 .. intervals."""
        there, back = (fft.irfft(mesh * fft.rfft(values).conj(), size) for values in (direct, mirrored))
        return there[: intervals + 1] + np.append(back[:1], back[: intervals - 1 : -1])

    rise = np.abs(np.roll(circle, -1) - circle)
    bend = np.abs(np.roll(circle, -1) - 2 * circle + np.roll(circle, 1))
    count = over_mesh(circle, circle)
    slope = over_mesh(np.roll(rise, 1), rise)[:-1].max()
    kink, count_kink = over_mesh(bend, bend)[1:-1].max(), np.abs(np.diff(count, 2)).max()
    scale = intervals / count.min()
    return float(slope * scale), float(kink * scale), float(count_kink * scale)
