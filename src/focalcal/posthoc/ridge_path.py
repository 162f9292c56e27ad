"""Softmax of an affine map held to a multiple of the identity by a ridge: one solver for every strength of it.

On inputs f (n, m), of whose columns the first K are x, with temperature's optimum at 1, it minimises

    L(a, M) = mean of -log softmax(a x + M (f, 1))_y + strength |M|^2

M (K, m + 1) being what W has beside a 1 and, as its last column, the bias c;
by L-BFGS in coordinates in which the curvature is nearly the identity; derived in docs/math/structured.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from focalcal._native.softmax import affine_loss
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import softmax

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_PAIRS = 12  # steps that L-BFGS remembers
_FLAT = 1e-12  # a curvature that counts as none


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
    mean of the second ones, weighted by the trace of the first. Their eigenvectors are the coordinates of the search.
    """

    def __init__(self, inputs: Float[np.ndarray, "n m"], weights: Float[np.ndarray, " n"], classes: int) -> None:
        columns = inputs.shape[1] + 1
        left, right = np.zeros((classes, classes)), np.zeros((columns, columns))
        along = spread = 0.0
        for start, rows in row_chunks(inputs):
            share = weights[start : start + len(rows)]
            features = np.column_stack([rows.astype(np.float64, copy=False), np.ones(len(rows))])
            x = features[:, :classes]
            probs = softmax(x)
            trace = share * (1 - (probs**2).sum(1))
            left[np.diag_indices(classes)] += share @ probs
            left -= probs.T @ (probs * share[:, None])
            right += features.T @ (features * trace[:, None])
            along += float(share @ ((probs * x**2).sum(1) - (probs * x).sum(1) ** 2))
            spread += float(trace.sum())
        total = float(weights.sum())
        left_values, self.left = np.linalg.eigh(left / total)
        right_values, self.right = np.linalg.eigh(right / max(spread, _FLAT))
        self.values = np.outer(left_values.clip(min=0), right_values.clip(min=0))
        self.along = max(along / total, _FLAT)  # the second derivative in a


class RidgeProblem:
    """Inputs (n, m), labels and weights of rows, to be fitted at one strength after another."""

    def __init__(
        self,
        inputs: Float[np.ndarray, "n m"],
        labels: Int[np.ndarray, " n"],
        weights: Float[np.ndarray, " n"],
        curvature: Curvature,
    ) -> None:
        self._rows = np.ascontiguousarray(inputs), labels, weights
        self._curvature = curvature

    def value_and_gradient(
        self, scale: float, part: Float[np.ndarray, "k m+1"], strength: float
    ) -> tuple[float, float, Float[np.ndarray, "k m+1"]]:
        """L, and its derivatives in a and in M."""
        weight = part[:, :-1].copy()
        weight[np.diag_indices(len(weight))] += scale
        value, d_weight, d_bias = affine_loss(*self._rows, weight, part[:, -1])
        gradient = np.column_stack([d_weight, d_bias]) + 2 * strength * part
        return value + strength * float((part**2).sum()), float(np.trace(d_weight)), gradient

    def fit(self, strength: float, start: AffineFit, *, tol: float, max_iter: int) -> AffineFit:
        """The minimum from `start`, until the gradient in the search's coordinates is shorter than `tol`."""
        left, right = self._curvature.left, self._curvature.right
        sizes = 1 / np.sqrt(self._curvature.values + 2 * strength + _FLAT)
        along = 1 / math.sqrt(self._curvature.along)
        norm = math.inf

        def unpacked(theta: Any) -> tuple[float, Any]:
            return float(theta[0]) * along, left @ (theta[1:].reshape(sizes.shape) * sizes) @ right.T

        def objective(theta: Any) -> tuple[float, Any]:
            nonlocal norm
            value, d_scale, d_part = self.value_and_gradient(*unpacked(theta), strength)
            gradient = np.concatenate([[d_scale * along], ((left.T @ d_part @ right) * sizes).ravel()])
            norm = float(np.sqrt(gradient @ gradient))
            return value, gradient

        def settled(intermediate_result: Any) -> None:
            if norm <= tol:
                raise StopIteration

        theta = np.concatenate([[start.scale / along], ((left.T @ start.part @ right) / sizes).ravel()])
        options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": 0.0, "ftol": 0.0, "maxcor": _PAIRS}
        found = minimize(objective, theta, jac=True, method="L-BFGS-B", options=options, callback=settled)
        scale, part = unpacked(found.x)
        return AffineFit(scale, part, float(np.sqrt(found.jac @ found.jac)), int(found.nit))
