"""Spline calibration of the largest probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from focalcal.core.checks import whole_number
from focalcal.core.numerics import column_index, namespace, softmax
from focalcal.posthoc.calibrator import Calibrator
from focalcal.posthoc.one_vs_rest import interpolated
from focalcal.posthoc.storage import Decoder, curve, rising_curve

if TYPE_CHECKING:
    from jaxtyping import Float

    from focalcal.core.arrays import Labels, PerRow, Scores

_MOST_POINTS = 1001  # of the stored map


class SplineCalibration(Calibrator):
    """The accuracy of predictions as confident as this one, from a smooth cumulative curve (Gupta et al., 2021).

    With the fitted rows sorted by confidence, h(u) is the number of right rows among the first u N, divided by N. A
    natural cubic spline with `knots` evenly spaced knots is fitted to h by least squares; its derivative at a row's
    rank is the probability that the row is right. The map from confidence to it is stored at up to 1,001 ranks, linear
    between them and constant beyond. The other classes keep their proportions and share the rest, so the predicted
    class can change where the map ends below them.

    Attributes: `confidence_` and `accuracy_`, the points of the map; `classes_`, `n_features_in_`.

    Args:
        knots: of the spline.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> probs, top = SplineCalibration().fit(3 * logits, labels).predict_proba(3 * logits), logits.argmax(1)
    >>> round(float(probs[range(2000), top].mean()), 2), round(float((top == labels).mean()), 2)
    (0.6, 0.6)
    """

    _state: ClassVar[dict[str, Decoder]] = {"confidence_": rising_curve, "accuracy_": curve}

    def __init__(self, knots: int = 6) -> None:
        self.knots = knots

    def _check_params(self) -> None:
        whole_number("knots", self.knots, least=3, most=1000, remedy="6 is usual")

    def _check_state(self) -> None:
        if len(self.confidence_) != len(self.accuracy_):
            raise ValueError("confidence_ and accuracy_ must have as many numbers")

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        probs = softmax(logits.astype(np.float64))
        right = probs.argmax(1) == labels
        values, place = np.unique(probs.max(1), return_inverse=True)
        part = weights / weights.sum()
        step = np.bincount(place, part)  # rows of equal confidence are passed at once
        rank, share = np.cumsum(step), np.cumsum(np.bincount(place, right * part))
        heights = np.linalg.lstsq(natural_spline(np.r_[0, rank], self.knots)[0], np.r_[0, share], rcond=None)[0]
        accuracy = np.clip(natural_spline(rank - step / 2, self.knots)[1] @ heights, 0.0, 1.0)
        kept = np.unique(np.linspace(0, len(values) - 1, _MOST_POINTS).round().astype(int))
        self.confidence_, self.accuracy_ = values[kept], accuracy[kept]

    def _map(self, logits: Any, **learnt: Any) -> Any:
        xp = namespace(logits)
        probs = softmax(logits)
        top = xp.max(probs, axis=1, keepdims=True)
        own = column_index(probs) == xp.argmax(probs, axis=1, keepdims=True)
        accuracy = interpolated(learnt["confidence"][None, :], learnt["accuracy"][None, :], top)
        others = xp.where(own, 0.0, probs)
        total = xp.sum(others, axis=1, keepdims=True)
        alike = 1 / (probs.shape[1] - 1)  # where nothing is left to share
        shares = xp.where(total > 0, others / xp.where(total > 0, total, 1.0), alike)
        return xp.where(own, accuracy, shares * (1 - accuracy))


def natural_spline(x: PerRow, knots: int) -> tuple[Float[np.ndarray, "n knots"], Float[np.ndarray, "n knots"]]:
    """Natural cubic splines on [0, 1] that are 1 at one of the even knots and 0 at the others, and their slopes.

    As `scipy.interpolate.CubicSpline` has them, whose import takes longer than the fit.
    """
    width, unit = 1 / (knots - 1), np.eye(knots)
    bend = np.zeros((knots, knots))  # second derivatives at the knots, times width^2 / 6; 0 at both ends
    middle = 4 * np.eye(knots - 2) + np.eye(knots - 2, k=1) + np.eye(knots - 2, k=-1)
    bend[1:-1] = np.linalg.solve(middle, np.diff(unit, 2, axis=0))
    left = np.clip((x / width).astype(np.int64), 0, knots - 2)
    b = (x / width - left)[:, None]
    a, right = 1 - b, left + 1
    values = a * unit[left] + b * unit[right] + (a**3 - a) * bend[left] + (b**3 - b) * bend[right]
    slopes = unit[right] - unit[left] + (3 * b**2 - 1) * bend[right] - (3 * a**2 - 1) * bend[left]
    return values, slopes / width
