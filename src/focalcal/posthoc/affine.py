"""Softmax of an affine map of rows of any size, and the solver for all such maps, whose ridge spares a multiple of 1.

On inputs f (n, m), of whose columns the first K are x, with temperature's optimum at 1, it minimises

    L(a, M) = mean of -log softmax(a x + M (f, 1))_y + sum of strength_ij M_ij^2

M (K, m + 1) being what W has beside a 1 and, as its last column, the bias c; or (K, 2), the diagonal and the bias.
What has an infinite strength stays 0. L-BFGS in coordinates in which the curvature is nearly the identity; derived in
docs/math/structured.md.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import ThreadpoolController

from focalcal._native.softmax import affine_loss
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import namespace, softmax
from focalcal.posthoc.temperature import Optimum, TemperatureStatus, optimal_inverse_temperature

if TYPE_CHECKING:
    from jaxtyping import Float

    from focalcal.core.arrays import Labels, PerRow, Scores

    _Loss = tuple[float, float, Float[np.ndarray, "k m+1"]]  # its value and its derivatives in a and in M

_HUGE = 1e300  # logits further apart than this are as far apart as can be
_ONE_THREAD = 512  # classes at most
_TINY = 1e-300  # the least size to divide by: weights for smaller logits would overflow
_PAIRS = 12  # steps that L-BFGS remembers
_FLAT = 1e-12  # a curvature that counts as none
_LEAST = 1e-8  # of the largest curvature: the least that coordinates are scaled by, so that rounding does not grow


def centred(logits: Any) -> Any:
    """float64 logits (n, K) less their row's mean: what softmax sees of them, and nothing else."""
    xp = namespace(logits)
    shifted = xp.clip(logits - xp.max(logits, axis=1, keepdims=True), -_HUGE, None)
    return shifted - xp.mean(shifted, axis=1, keepdims=True)


def affine_probs(weight: Any, bias: Any, inputs: Any) -> Any:
    """softmax(W x + c) of the rows x of inputs (n, K), c (K,); a vector `weight` is the diagonal of W.

    Rows of any size: x and W are first divided by powers of two, which is exact, so that no product overflows, and
    the differences W x - max(W x) are multiplied by them again, at most by 1e300.
    """
    xp = namespace(inputs)
    row_size = _power_of_two(xp.max(xp.abs(inputs), axis=1, keepdims=True))
    weight_size = _power_of_two(xp.max(xp.reshape(xp.abs(weight), (-1,)), axis=0))  # ONNX wants an axis
    inputs, weight = inputs / row_size, weight / weight_size
    products = inputs * weight if weight.ndim == 1 else inputs @ weight.T
    gaps = products - xp.max(products, axis=1, keepdims=True)
    return softmax(gaps * xp.clip(row_size * weight_size, None, _HUGE) + bias)


def _power_of_two(sizes: Any) -> Any:
    """Powers of two within a factor of two of the sizes, or of the least size to divide by."""
    xp = namespace(sizes)
    return xp.exp2(xp.floor(xp.log2(xp.clip(sizes, _TINY, None))))  # exp2 is not in the standard, but in both libraries


def unit_scaled(logits: Scores, weights: PerRow) -> tuple[Scores, float]:
    """Centred logits divided by the weighted median of their rows' root mean squares, and that number (or 1).

    The median, not the mean: one row of enormous logits leaves the others their size.
    """
    inputs = centred(logits.astype(np.float64))
    largest = np.maximum(np.abs(inputs).max(1, keepdims=True), _TINY)
    sizes = (largest * np.sqrt(((inputs / largest) ** 2).mean(1, keepdims=True))).ravel()
    order = sizes.argsort()
    mass = (weights[order] * (sizes[order] > 0)).cumsum()  # rows that are all equal have no size
    middle = order[np.searchsorted(mass, mass[-1] / 2)]
    scale = max(float(sizes[middle]), _TINY) if mass[-1] > 0 else 1.0
    return inputs / scale, scale


def blas_threads(classes: int) -> AbstractContextManager[Any]:
    """One thread where products are so small that several wait for each other longer than they compute."""
    if classes > _ONE_THREAD:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@dataclass(frozen=True)
class AffineFit:
    """a and M, and the gradient there: its norm in the solver's coordinates, half its square being what is left."""

    scale: float
    part: Float[np.ndarray, "k m+1"]
    gradient: float = math.inf
    iterations: int = 0

    def moved(self, end: AffineFit, start: AffineFit, share: float) -> AffineFit:
        """This one, moved by a share of the way from temperature scaling to another, of the first columns maybe."""
        scale, part, columns = self.scale + share * (end.scale - start.scale), self.part.copy(), end.part.shape[1] - 1
        part[:, :columns] += share * end.part[:, :-1]
        part[:, -1] += share * end.part[:, -1]
        return AffineFit(scale, part, max(self.gradient, end.gradient), self.iterations + end.iterations)


class Curvature:
    """The Hessian of the mean loss at a = 1, M = 0, as a Kronecker product of A (K, K) and C (m + 1, m + 1).

    The Hessian of a row is (diag p - p p') x f f', f with a 1 at its end; A is the mean of the first factors, C the
    mean of the second ones, weighted by the trace of the first. Their eigenvectors are the coordinates of the search
    if it is `rotated`; where strong penalties hold some of M alone, its own entries are the better ones. With
    `diagonal` it is the diagonal of the Hessian in the diagonal of W and in the bias, (K, 2).
    """

    def __init__(
        self,
        inputs: Float[np.ndarray, "n m"],
        weights: PerRow,
        classes: int,
        *,
        diagonal: bool = False,
        rotated: bool = True,
    ) -> None:
        columns = inputs.shape[1] + 1
        left, right = np.zeros((classes, classes)), np.zeros((columns, columns))
        self.values, self.diagonal, self.rotated = np.zeros((classes, 2)), diagonal, rotated and not diagonal
        along = spread = 0.0
        for start, rows in row_chunks(inputs):
            share = weights[start : start + len(rows)]
            features = np.column_stack([rows.astype(np.float64, copy=False), np.ones(len(rows))])
            x = features[:, :classes]
            probs = softmax(x)
            along += float(share @ ((probs * x**2).sum(1) - (probs * x).sum(1) ** 2))
            if diagonal:
                bend = share[:, None] * probs * (1 - probs)
                self.values += np.stack([(bend * x**2).sum(0), bend.sum(0)], 1)
                continue
            trace = share * (1 - (probs**2).sum(1))
            left[np.diag_indices(classes)] += share @ probs
            left -= probs.T @ (probs * share[:, None])
            right += features.T @ (features * trace[:, None])
            spread += float(trace.sum())
        total = float(weights.sum())
        self.along = max(along / total, _FLAT)  # the second derivative in a
        self.values /= total
        if diagonal:
            return
        left, right = left / total, right / max(spread, _FLAT)
        of_left, of_right = left.diagonal(), right.diagonal()
        if rotated:
            (of_left, self._left), (of_right, self._right) = np.linalg.eigh(left), np.linalg.eigh(right)
        self.values = np.outer(of_left.clip(min=0), of_right.clip(min=0))

    def into(self, part: Float[np.ndarray, "k m"]) -> Float[np.ndarray, "k m"]:
        """M, or the derivatives in it, in the coordinates of the search."""
        return self._left.T @ part @ self._right if self.rotated else part

    def back(self, theta: Float[np.ndarray, "k m"]) -> Float[np.ndarray, "k m"]:
        """M of coordinates of the search."""
        return self._left @ theta @ self._right.T if self.rotated else theta


class AffineProblem:
    """Inputs (n, m), labels and weights of rows, to be fitted with one strength after another."""

    def __init__(self, inputs: Float[np.ndarray, "n m"], labels: Labels, weights: PerRow, curvature: Curvature) -> None:
        self._rows = np.ascontiguousarray(inputs), labels, weights
        self._curvature = curvature
        self._last: tuple[AffineFit, _Loss] | None = None  # a path's next strength starts where the one before ended

    def value_and_gradient(
        self, scale: float, part: Float[np.ndarray, "k m+1"], strength: float | Float[np.ndarray, "k m+1"]
    ) -> _Loss:
        """L, and its derivatives in a and in M; the strengths are finite."""
        return _with_ridge(self._loss(scale, part), part, strength)

    def _loss(self, scale: float, part: Float[np.ndarray, "k m+1"]) -> _Loss:
        """The mean loss without the ridge: the one pass over the rows."""
        if self._curvature.diagonal:
            value, d_weight, d_bias = affine_loss(*self._rows, scale + part[:, 0], part[:, 1])
            return value, float(d_weight.sum()), np.column_stack([d_weight, d_bias])
        weight = part[:, :-1].copy()
        weight[np.diag_indices(len(weight))] += scale
        value, d_weight, d_bias = affine_loss(*self._rows, weight, part[:, -1])
        return value, float(np.trace(d_weight)), np.column_stack([d_weight, d_bias])

    def fit(
        self, strength: float | Float[np.ndarray, "k m+1"], start: AffineFit, *, tol: float, max_iter: int
    ) -> AffineFit:
        """The minimum from `start`, until the gradient in the search's coordinates is shorter than `tol`."""
        curvature, values = self._curvature, self._curvature.values
        free = np.isfinite(strength)
        strength = np.where(free, strength, 0.0)
        held = strength.mean() if curvature.rotated else strength
        sizes = 1 / np.sqrt(values + 2 * held + _LEAST * values.max() + _FLAT)
        along = 1 / math.sqrt(curvature.along)
        norm = math.inf
        known = self._last[1] if self._last and self._last[0] is start else None
        seen: tuple[Any, _Loss] | None = None

        def unpacked(theta: Any) -> tuple[float, Any]:
            return float(theta[0]) * along, free * curvature.back(theta[1:].reshape(sizes.shape) * sizes)

        def objective(theta: Any) -> tuple[float, Any]:
            nonlocal norm, known, seen
            scale, part = unpacked(theta)
            loss, known = known or self._loss(scale, part), None
            seen = theta, loss
            value, d_scale, d_part = _with_ridge(loss, part, strength)
            gradient = np.concatenate([[d_scale * along], (curvature.into(free * d_part) * sizes).ravel()])
            norm = float(np.sqrt(gradient @ gradient))
            return value, gradient

        def settled(intermediate_result: Any) -> None:
            if norm <= tol:
                raise StopIteration

        theta = np.concatenate([[start.scale / along], (curvature.into(start.part) / sizes).ravel()])
        options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": 0.0, "ftol": 0.0, "maxcor": _PAIRS}
        found = minimize(objective, theta, jac=True, method="L-BFGS-B", options=options, callback=settled)
        scale, part = unpacked(found.x)
        fit = AffineFit(scale, part, float(np.sqrt(found.jac @ found.jac)), int(found.nit))
        self._last = (fit, seen[1]) if seen is not None and np.array_equal(seen[0], found.x) else None
        return fit


def _with_ridge(loss: _Loss, part: Float[np.ndarray, "k m"], strength: float | Float[np.ndarray, "k m"]) -> _Loss:
    value, d_scale, d_part = loss
    return value + float((strength * part**2).sum()), d_scale, d_part + 2 * strength * part


def unit_temperature(x: Scores, labels: Labels, weights: PerRow) -> tuple[Optimum, float]:
    """Temperature's optimum, and the factor on x after which it is 1; where there is none, the one to unit size."""
    optimum = optimal_inverse_temperature(x, labels, weights)
    converged = optimum.status is TemperatureStatus.CONVERGED
    return optimum, optimum.inverse_temperature if converged else 1 / unit_scaled(x, weights)[1]
