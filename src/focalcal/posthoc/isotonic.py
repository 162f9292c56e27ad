"""Isotonic regression, its centred form and Venn-Abers predictors, one class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import isotonic_regression

from focalcal.core.numerics import softmax
from focalcal.posthoc.one_vs_rest import OneVsRestCalibrator, below, by_class, interpolated
from focalcal.posthoc.storage import Decoder, curves, rising_curves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.core.arrays import Labels, PerRow, Scores

_SAME = 1e-7  # probabilities as close as this are one score: float32 does not tell them apart


class IsotonicCalibration(OneVsRestCalibrator):
    """The rising function of p_k nearest in squares to 1[label = k], normalised; p = softmax(logits).

    Zadrozny and Elkan (2002): linear between the fitted points, the ends of its flat stretches, and constant beyond
    them. Flat stretches make classes tie, so the predicted class can change.

    Attributes: `thresholds_` and `values_`, for each class the points of its map; `classes_`, `n_features_in_`.

    >>> import numpy as np
    >>> p, y = np.array([0.1, 0.3, 0.6, 0.8]), np.array([0, 1, 0, 1])
    >>> IsotonicCalibration().fit(probs=p, labels=y).predict_proba(probs=p)[:, 1]  # a stretch for 0.3 and 0.6
    array([0. , 0.5, 0.5, 1. ])
    """

    _state: ClassVar[dict[str, Decoder]] = {"thresholds_": rising_curves, "values_": curves}

    def _check_state(self) -> None:
        if [len(t) for t in self.thresholds_] != [len(v) for v in self.values_]:
            raise ValueError("thresholds_ and values_ must have as many numbers in every class")

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        probs = softmax(logits.astype(np.float64))
        self.thresholds_, self.values_ = [], []
        for k in range(probs.shape[1]):
            points, place = np.unique(probs[:, k], return_inverse=True)
            count = np.bincount(place, weights)
            rising = isotonic_regression(np.bincount(place, weights * (labels == k)) / count, weights=count)
            ends = np.unique([rising.blocks[:-1], rising.blocks[1:] - 1])
            self.thresholds_.append(points[ends])
            self.values_.append(np.clip(rising.x[ends], 0.0, 1.0))

    def _arrays(self) -> dict[str, Any]:
        return {"thresholds": _as_one(self.thresholds_), "values": _as_one(self.values_)}

    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        return interpolated(learnt["thresholds"], learnt["values"], softmax(logits))


class CentredIsotonic(IsotonicCalibration):
    """Isotonic regression with a point for every flat stretch, at the mean score of its rows; normalised.

    Oron and Flournoy (2017): the map rises strictly between the first and the last stretch, so that it makes no ties,
    and has less bias than the steps. Linear between the points, constant beyond them; stretches of exactly 0 or 1
    stay flat.

    Attributes: as those of `IsotonicCalibration`.

    >>> import numpy as np
    >>> p, y = np.array([0.1, 0.3, 0.6, 0.8]), np.array([0, 1, 0, 1])
    >>> CentredIsotonic().fit(probs=p, labels=y).predict_proba(probs=p)[:, 1].round(3)  # no tie of 0.3 and 0.6
    array([0.   , 0.286, 0.714, 1.   ])
    """

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        super()._fit(logits, labels, weights)
        probs = softmax(logits.astype(np.float64))
        for k, (points, heights) in enumerate(zip(self.thresholds_, self.values_, strict=True)):
            self.thresholds_[k], self.values_[k] = _centred(points, heights, probs[:, k], weights)


class VennAbers(OneVsRestCalibrator):
    """high / (1 - low + high) for each class k, normalised; low and high from two isotonic regressions.

    Inductive Venn-Abers predictors (Vovk, Petej and Fedorova, 2015): to the fitted rows the row to predict is added,
    once with the label "not k" and once with "k"; low and high are what the rising function nearest in squares then
    says of it. One of them is a calibrated probability whatever the distribution; their merger is the minimax one for
    the log loss. It is never 0 or 1, so that no row costs an infinite NLL, and with few rows it stays away from both.

    Attributes: `thresholds_`, the fitted scores of each class, `low_` and `high_` at them; `classes_`,
    `n_features_in_`.

    >>> import numpy as np
    >>> p, y = np.array([0.1, 0.3, 0.6, 0.8]), np.array([0, 1, 0, 1])
    >>> VennAbers().fit(probs=p, labels=y).predict_proba(probs=p)[:, 1].round(3)  # far from 0 and 1 with so few rows
    array([0.333, 0.5  , 0.5  , 0.667])
    """

    _state: ClassVar[dict[str, Decoder]] = {"thresholds_": rising_curves, "low_": rising_curves, "high_": rising_curves}

    def _check_state(self) -> None:
        sizes = [[len(curve) for curve in each] for each in (self.thresholds_, self.low_, self.high_)]
        if not sizes[0] == sizes[1] == sizes[2]:
            raise ValueError("thresholds_, low_ and high_ must have as many numbers in every class")

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        probs = softmax(logits.astype(np.float64))
        self.thresholds_, self.low_, self.high_ = [], [], []
        for k in range(probs.shape[1]):
            order = np.argsort(probs[:, k], kind="stable")
            scores, events = probs[order, k], weights[order] * (labels[order] == k)
            first = np.flatnonzero(np.append(True, np.diff(np.round(scores / _SAME)) > 0))
            count, happened = (np.add.reduceat(each, first) for each in (weights[order], events))
            self.thresholds_.append(scores[first])
            self.high_.append(_with_one_more(count, happened))
            self.low_.append(1 - _with_one_more(count[::-1], (count - happened)[::-1])[::-1])

    def _arrays(self) -> dict[str, Any]:
        return {
            "thresholds": _as_one(self.thresholds_),
            "low": _as_one([np.append(0.0, curve) for curve in self.low_]),
            "high": _as_one([np.append(curve, 1.0) for curve in self.high_]),
        }

    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        probs, points = softmax(logits), learnt["thresholds"]
        # A score between two fitted ones joins the upper one with the label "k", the lower one with "not k". Shorter
        # curves repeat their last point, at which nothing is below any more.
        under = below(points, probs - _SAME)
        not_over = below(points, probs + _SAME)
        low = by_class(learnt["low"], not_over)
        high = by_class(learnt["high"], under)
        return high / (1 - low + high)


def _as_one(curves: list[Any]) -> Any:
    """Shorter ones repeat their last point, beyond which the map is constant."""
    table = np.empty((len(curves), max(map(len, curves))))
    for row, curve in zip(table, curves, strict=True):
        row[: len(curve)] = curve
        row[len(curve) :] = curve[-1]
    return table


def _centred(
    points: NDArray[np.float64], heights: NDArray[np.float64], scores: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of every stretch, or in their place its centre."""
    levels, first = np.unique(heights, return_index=True)
    last = np.append(first[1:], len(points)) - 1
    own = np.searchsorted(points[first], scores, side="right") - 1
    own = np.clip(own, 0, None)  # softmax of one row may round below that of many
    centre = np.bincount(own, weights * scores, len(levels)) / np.bincount(own, weights, len(levels))
    centre = np.clip(centre, points[first], points[last])
    flat = (levels <= 0) | (levels >= 1)
    ends = np.stack([np.where(flat, points[first], centre), np.where(flat, points[last], centre)], 1)
    kept = np.stack([np.ones(len(levels), dtype=bool), flat & (last > first)], 1).ravel()
    return ends.ravel()[kept], np.repeat(levels, 2)[kept]


def _with_one_more(count: NDArray[np.float64], events: NDArray[np.float64]) -> NDArray[np.float64]:
    """What isotonic regression says of each group once it has one row more, in which the event happened.

    It is a slope of the greatest convex minorant of the cumulative sums, on whose way from group to group the
    additional row moves one step ahead (Vovk, Petej and Fedorova, 2015, algorithms 1 to 3): linear in the groups.
    """
    rising = isotonic_regression(events / count, weights=count)  # its blocks end at the corners of the minorant
    corners = np.append(0, np.cumsum(count))[rising.blocks], np.append(0, np.cumsum(events))[rising.blocks]
    right_x, right_y = (each[::-1].tolist() for each in corners)  # from here on, the next one last
    while len(right_x) > 1 and (right_x[-1] + 1) * (right_y[-2] - right_y[-1]) <= (right_y[-1] + 1) * (
        right_x[-2] - right_x[-1]
    ):
        del right_x[-1], right_y[-1]  # above the edge from P_-1 = (-1, -1) to the corner before it
    x0, y0, x1, y1 = -1.0, -1.0, right_x.pop(), right_y.pop()
    x = y = -1.0
    result = []
    for more, happened in zip(count.tolist(), events.tolist(), strict=True):
        result.append((y1 - y0) / (x1 - x0))
        x, y = x + more, y + happened  # where the additional row has moved a point to
        if (y - y0) * (x1 - x0) < (y1 - y0) * (x - x0):  # a new corner, below the old edge
            x0, y0 = x, y
            while right_x and (x1 - x0) * (right_y[-1] - y1) <= (y1 - y0) * (right_x[-1] - x1):
                x1, y1 = right_x.pop(), right_y.pop()
    return np.clip(np.maximum.accumulate(result), 0.0, 1.0)  # rising but for rounding
