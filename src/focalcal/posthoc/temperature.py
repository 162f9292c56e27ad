"""Temperature scaling: one number for all logits, which minimises the NLL to float64 precision in about two passes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from focalcal._native.softmax import moment_sums
from focalcal.core.arrays import as_array, scores_and_labels
from focalcal.core.checks import finite_at_least, shown, warn
from focalcal.core.chunks import row_chunks
from focalcal.core.numerics import namespace, softmax
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.storage import Decoder, count, positive, word

if TYPE_CHECKING:
    from collections.abc import Callable

    from focalcal.core.arrays import Labels, PerRow, Scores

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


def optimal_inverse_temperature(logits: Scores, labels: Labels, weights: PerRow | None = None) -> Optimum:
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
            sums = moment_sums(*part, b, exact=exact)
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


def _own_is_largest(logits: Scores, labels: Labels) -> bool:
    return bool((logits[np.arange(len(labels)), labels] == logits.max(1)).all())


def _slope_at_zero(logits: Scores, labels: Labels, weights: PerRow) -> float:
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


class TemperatureScaling(Calibrator):
    """softmax(logits / T), T > 0 minimising the mean negative log-likelihood (Guo et al., 2017).

    Never changes the predicted class. The minimum is found exactly (relative error below 1e-9) by Newton-like steps
    on 1/T, in which the loss is convex. T is kept in [1e-3, 1e3]: labels that the logits predict perfectly, or worse
    than chance, have no finite optimum; a bound is taken with a `CalibrationWarning`, and `at_bound_` is True. It is
    used to predict: at 1e-3 rows are nearly one-hot, so that a single wrong one makes the NLL infinite, at 1e3 nearly
    uniform. Such a T belongs in no mean of temperatures, nor the metrics after it in a mean of metrics. A logit of -inf
    is an impossible class, and stays one; no label may be such.

    Attributes: `temperature_`; `at_bound_`; `status_`, "converged", "given" or what stood in the way; `n_iter_`,
    passes over all rows; `classes_`, `n_features_in_`.

    Args:
        temperature: a T that is known already: nothing is learnt, and `predict_proba` needs no `fit`.

    >>> import numpy as np
    >>> logits = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    >>> scaling = TemperatureScaling().fit(logits, np.array([0, 0, 1, 1]))  # confidence 0.88, accuracy 0.75
    >>> round(scaling.temperature_, 6)
    1.820478
    >>> scaling.predict_proba(logits)[0].round(6)
    array([0.75, 0.25])
    >>> TemperatureScaling(temperature=2.0).predict_proba(logits)[0].round(6)
    array([0.731059, 0.268941])
    """

    _state: ClassVar[dict[str, Decoder]] = {"temperature_": positive, "status_": word, "n_iter_": count}
    _takes_masked: ClassVar[bool] = True
    temperature_: float
    status_: str
    n_iter_: int

    def __init__(self, temperature: float | None = None) -> None:
        self.temperature = temperature

    def _check_params(self) -> None:
        value = self.temperature
        if value is not None and finite_at_least("temperature", value, 0.0) == 0:
            raise ValueError(f"temperature must be above 0, got {value!r}; leave it out to have it fitted")

    def _needs_fit(self) -> bool:
        return self.temperature is None

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        if self.temperature is not None:
            self.temperature_, self.status_, self.n_iter_ = float(self.temperature), "given", 0
            return
        optimum = optimal_inverse_temperature(_finite(logits, labels), labels, weights)
        self.temperature_ = 1 / optimum.inverse_temperature
        self.status_ = str(optimum.status)
        self.n_iter_ = optimum.passes
        if optimum.status is not TemperatureStatus.CONVERGED:
            bound = "no finite optimum, since " * self.at_bound_
            warn(
                f"temperature set to {self.temperature_:g}: {bound}{optimum.status}; "
                "check the labels, and fit on rows that the network was not trained on",
                CalibrationWarning,
            )

    @property
    def at_bound_(self) -> bool:
        """Whether T is a bound, since the fitted rows have no finite optimum."""
        return self.temperature is None and at_bound(self.temperature_)

    def _arrays(self) -> dict[str, Any]:
        return {"temperature": self.temperature_ if self.temperature is None else float(self.temperature)}

    def _map(self, logits: Any, **learnt: Any) -> Any:
        xp = namespace(logits)
        return softmax((logits - xp.max(logits, axis=1, keepdims=True)) / learnt["temperature"])


def _finite(logits: Scores, labels: Labels) -> Scores:
    """Impossible classes so far below the others that they weigh exactly 0 in float64 at every temperature."""
    if not any(rows.min() == -np.inf for _, rows in row_chunks(logits)):
        return logits
    impossible = logits == -np.inf
    own = impossible[np.arange(len(labels)), labels]
    if own.any():
        at = int(own.argmax())
        raise ValueError(
            f"labels must be possible, got class {int(labels[at])} in row {at}, whose logit is -inf; "
            "leave the row out, or do not mask its class"
        )
    wide = logits.astype(np.promote_types(logits.dtype, np.float32), copy=False)
    return np.where(impossible, wide.max(1, keepdims=True) - 1000 * HIGHEST_TEMPERATURE, wide)
