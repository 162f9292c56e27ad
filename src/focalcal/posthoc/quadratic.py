"""Quadratic scaling of the log odds, one class against the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from focalcal.core.numerics import namespace, sigmoid
from focalcal.posthoc.logistic import logistic_coefficients
from focalcal.posthoc.one_vs_rest import OneVsRestCalibrator, bounded_logs
from focalcal.posthoc.storage import Decoder, vector

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy.typing import NDArray

_CERTAIN = 40.0  # log odds beyond which float64 does not tell a probability from 0 or 1


class QuadraticScaling(OneVsRestCalibrator):
    """sigmoid(a_k + b_k z_k + c_k z_k^2) for each class k, rising in z_k, normalised; z_k the log odds of p_k.

    Platt scaling with one more number, which bends it: over-confidence that grows with the score, say. The log loss is
    least among the maps that do not fall between the smallest and the largest fitted z; beyond these the map goes on
    in a straight line. It is convex, so that the best point of a face is the answer where the free optimum falls. z is
    taken at most 40 either way. A class that no label names gets the constant 1 / (N + 2), as Platt's targets would
    give.

    Attributes: `a_`, `b_`, `c_`, and `lowest_`, `highest_`, between which it is quadratic, each (K,); `classes_`,
    `n_features_in_`.
    """

    _state: ClassVar[dict[str, Decoder]] = dict.fromkeys(("a_", "b_", "c_", "lowest_", "highest_"), vector)
    a_: Any
    b_: Any
    c_: Any
    lowest_: Any
    highest_: Any

    def _fit(
        self, logits: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> None:
        odds = _log_odds(logits.astype(np.float64))
        self.lowest_, self.highest_ = odds.min(0), odds.max(0)
        maps = np.array([_rising_map(odds[:, k], labels == k, weights) for k in range(odds.shape[1])])
        self.a_, self.b_, self.c_ = maps.T.copy()

    def _arrays(self) -> dict[str, Any]:
        return {name: getattr(self, f"{name}_") for name in ("a", "b", "c", "lowest", "highest")}

    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        xp, odds = namespace(logits), _log_odds(logits)
        inside = xp.minimum(xp.maximum(odds, learnt["lowest"]), learnt["highest"])
        slope = learnt["b"] + 2 * learnt["c"] * inside  # that of the straight line beyond an end
        bent = learnt["a"] + learnt["b"] * inside + learnt["c"] * inside * inside
        return sigmoid(bent + slope * (odds - inside))


def _log_odds(logits: Any) -> Any:
    log_p, log_not_p = bounded_logs(logits)
    return namespace(logits).clip(log_p - log_not_p, -_CERTAIN, _CERTAIN)


def _rising_map(
    odds: NDArray[np.float64], positive: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[float, float, float]:
    """a, b, c of least log loss whose slope b + 2 c z is >= 0 at both ends: the free optimum, or the best of faces."""
    if not positive.any():
        return -math.log(weights.sum() + 1), 0.0, 0.0
    targets, ones = positive.astype(np.float64), np.ones(len(odds))
    ends = float(odds.min()), float(odds.max())
    # Columns of each face in terms of (1, z, z^2): the slope may be 0 at the lower end, at the upper one, or at both.
    faces = [
        np.eye(3),
        np.array([[1.0, 0, 0], [0, -2 * ends[0], 1]]),
        np.array([[1.0, 0, 0], [0, -2 * ends[1], 1]]),
        np.array([[1.0, 0, 0]]),
    ]
    terms = np.stack([ones, odds, odds * odds], 1)
    best, least = (0.0, 0.0, 0.0), math.inf
    for face in faces:
        coefficients, loss = logistic_coefficients(terms @ face.T, targets, weights)
        a, b, c = (coefficients @ face).tolist()
        room = 1e-9 * (abs(b) + 2 * abs(c) * max(map(abs, ends)))  # rounding, where a face has slope 0
        if min(b + 2 * c * end for end in ends) >= -room and loss < least:
            best, least = (a, b, c), loss
            if len(face) == 3:
                break
    return best
