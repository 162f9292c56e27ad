"""Platt, beta and quadratic calibration: logistic regression on a few terms, one class against the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit

from focalcal.core.numerics import namespace, sigmoid
from focalcal.posthoc.one_vs_rest import OneVsRestCalibrator, bounded_logs
from focalcal.posthoc.storage import Decoder, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Bool, Float

    from focalcal.core.arrays import Labels, PerRow, Scores

_ROUNDING = 1e-14  # of the loss: smaller gains are not seen in it, and Newton's steps need no proof of them
_RIDGE = 1e-10  # on coefficients of features scaled to unit size: separated data, too, have a finite optimum
_CERTAIN = 40.0  # log odds beyond which float64 does not tell a probability from 0 or 1


class PlattScaling(OneVsRestCalibrator):
    """sigmoid(a_k s_k + c_k) for each class k, normalised; s_k = log p_k - log(1 - p_k), p = softmax(logits).

    a_k and c_k minimise the log loss against Platt's (1999) targets (n+ + 1) / (n+ + 2) and 1 / (n- + 2), which keep
    them finite for classes that are separable or absent. The score is the log odds, as exact for p near 1 as near 0.

    Attributes: `slope_` (K,), `intercept_` (K,), `classes_`, `n_features_in_`.

    >>> import numpy as np
    >>> logits = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])  # confidence 0.88, accuracy 0.75
    >>> PlattScaling().fit(logits, np.array([0, 0, 1, 1])).predict_proba(logits)[0].round(2)
    array([0.58, 0.42])
    """

    _state: ClassVar[dict[str, Decoder]] = {"slope_": vector, "intercept_": vector}

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        odds = _log_odds(logits.astype(np.float64))
        self.slope_, self.intercept_ = np.empty(odds.shape[1]), np.empty(odds.shape[1])
        for k in range(odds.shape[1]):
            positive = labels == k
            count, others = weights[positive].sum(), weights[~positive].sum()
            targets = np.where(positive, (count + 1) / (count + 2), 1 / (others + 2))
            features = np.stack([odds[:, k], np.ones(len(labels))], 1)
            (self.slope_[k], self.intercept_[k]), _ = logistic_coefficients(features, targets, weights)

    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        return sigmoid(_log_odds(logits) * learnt["slope"] + learnt["intercept"])


class BetaCalibration(OneVsRestCalibrator):
    """sigmoid(a_k log p_k - b_k log(1 - p_k) + c_k) for each class k, a_k, b_k >= 0, normalised; p = softmax(logits).

    The three-parameter map of Kull, Silva Filho and Flach (2017): a = b = 1, c = 0 is the identity. The log loss is
    convex, so the best point of a face on which a or b is 0 is the answer when the free optimum has one of them
    negative. A class that no label names gets the constant 1 / (N + 2), as Platt's targets would give.

    Attributes: `a_`, `b_`, `c_`, each (K,), `classes_`, `n_features_in_`.

    >>> import numpy as np
    >>> p = np.linspace(0.05, 0.95, 19).repeat(20)
    >>> y = np.arange(380) % 20 < 20 * p**2  # events are rarer than p says
    >>> BetaCalibration().fit(probs=p, labels=y.astype(int)).predict_proba(probs=[0.5])[0].round(2)
    array([0.73, 0.27])
    """

    _state: ClassVar[dict[str, Decoder]] = {"a_": vector, "b_": vector, "c_": vector}

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        log_p, log_not_p = bounded_logs(logits.astype(np.float64))
        terms = np.stack([log_p, -log_not_p, np.ones(log_p.shape)], 2)
        signs, faces = np.eye(3)[:2], [np.eye(3)[free] for free in ([0, 1, 2], [0, 2], [1, 2], [2])]
        maps = [_held_map(terms[:, k], faces, signs, labels == k, weights) for k in range(log_p.shape[1])]
        self.a_, self.b_, self.c_ = np.array(maps).T.copy()

    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        log_p, log_not_p = bounded_logs(logits)
        return sigmoid(learnt["a"] * log_p - learnt["b"] * log_not_p + learnt["c"])


class QuadraticScaling(OneVsRestCalibrator):
    """sigmoid(a_k + b_k z_k + c_k z_k^2) for each class k, rising in z_k, normalised; z_k the log odds of p_k.

    Platt scaling with one more number, which bends it: over-confidence that grows with the score, say. The log loss is
    least among the maps that do not fall between the smallest and the largest fitted z; beyond these the map goes on
    in a straight line. It is convex, so that the best point of a face is the answer where the free optimum falls. z is
    taken at most 40 either way. A class that no label names gets the constant 1 / (N + 2), as Platt's targets would
    give.

    Attributes: `a_`, `b_`, `c_`, and `lowest_`, `highest_`, between which it is quadratic, each (K,); `classes_`,
    `n_features_in_`.

    >>> import numpy as np
    >>> p = np.linspace(0.05, 0.95, 19).repeat(20)
    >>> y = np.arange(380) % 20 < 20 * p**2  # events are rarer than p says
    >>> QuadraticScaling().fit(probs=p, labels=y.astype(int)).predict_proba(probs=[0.5])[0].round(2)
    array([0.73, 0.27])
    """

    _state: ClassVar[dict[str, Decoder]] = dict.fromkeys(("a_", "b_", "c_", "lowest_", "highest_"), vector)

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        odds = _log_odds(logits.astype(np.float64), _CERTAIN)
        self.lowest_, self.highest_ = odds.min(0), odds.max(0)
        terms, maps = np.stack([odds, odds * odds, np.ones(odds.shape)], 2), []
        for k, ends in enumerate(zip(self.lowest_, self.highest_, strict=True)):
            slopes = np.array([[1, 2 * end, 0] for end in ends])
            # The slope may be 0 at the lower end, at the upper one, or at both.
            faces = [np.eye(3), *(np.array([[-2 * end, 1, 0], [0, 0, 1]]) for end in ends), np.eye(3)[[2]]]
            maps.append(_held_map(terms[:, k], faces, slopes, labels == k, weights))
        self.b_, self.c_, self.a_ = np.array(maps).T.copy()

    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        xp, odds = namespace(logits), _log_odds(logits, _CERTAIN)
        inside = xp.minimum(xp.maximum(odds, learnt["lowest"]), learnt["highest"])
        slope = learnt["b"] + 2 * learnt["c"] * inside  # that of the straight line beyond an end
        bent = learnt["a"] + learnt["b"] * inside + learnt["c"] * inside * inside
        return sigmoid(bent + slope * (odds - inside))


def _log_odds(logits: Any, most: float | None = None) -> Any:
    log_p, log_not_p = bounded_logs(logits)
    odds = log_p - log_not_p
    return odds if most is None else namespace(logits).clip(odds, -most, most)


def _held_map(
    terms: Float[np.ndarray, "n d"],
    faces: Sequence[Float[np.ndarray, "f d"]],
    held: Float[np.ndarray, "c d"],
    positive: Bool[np.ndarray, " n"],
    weights: PerRow,
) -> Float[np.ndarray, " d"]:
    """The coefficients w of least log loss with held w >= 0: the free optimum, or the best of the faces.

    The rows of a face span what is free on it; the first one is all of the space. The last term is the constant.
    """
    best, least = np.zeros(terms.shape[1]), math.inf
    if not positive.any():
        best[-1] = -math.log(weights.sum() + 1)
        return best
    for face in faces:
        coefficients, loss = logistic_coefficients(terms @ face.T, positive.astype(np.float64), weights)
        w = coefficients @ face
        room = 1e-9 * np.abs(held) @ np.abs(w)  # rounding, where a face has a slope of 0
        if (held @ w >= -room).all() and loss < least:
            best, least = w, loss
            if len(face) == terms.shape[1]:
                break
    return best


def logistic_coefficients(features: Any, targets: Any, weights: Any) -> tuple[Any, float]:
    """argmin_w of mean(log(1 + exp(x w)) - t x w) + 1e-10/2 |w|^2 and its value; features (n, d), targets in [0, 1].

    The mean is weighted by `weights` (n,); the penalty is on the coefficients of features divided by their root mean
    square.
    """
    share = weights / weights.sum()
    scale = np.sqrt(share @ features**2)
    scale[scale == 0] = 1.0
    x = features / scale
    w = np.zeros(x.shape[1])
    value = _loss(x, targets, share, w)
    last = math.inf
    for _ in range(200):
        p = expit(x @ w)
        gradient = x.T @ (share * (p - targets)) + _RIDGE * w
        hessian = (x.T * (share * p * (1 - p))) @ x + _RIDGE * np.eye(len(w))
        step = np.linalg.solve(hessian, gradient)
        decrement, length = float(gradient @ step), 1.0
        if decrement < 1e-22:
            break
        if decrement > _ROUNDING * value:  # a gain that values can show
            while (
                trial := _loss(x, targets, share, w - length * step)
            ) > value - 0.1 * length * decrement and length > 1e-10:
                length /= 2
        elif decrement < last:
            trial = _loss(x, targets, share, w - step)
        else:  # what is left is rounding
            break
        w, value, last = w - length * step, trial, decrement
        if length <= 1e-10 or decrement < 1e-18:
            break
    return w / scale, value


def _loss(x: Any, targets: Any, share: Any, w: Any) -> float:
    margin = x @ w
    return float(share @ (np.logaddexp(0, margin) - targets * margin)) + 0.5 * _RIDGE * float(w @ w)
