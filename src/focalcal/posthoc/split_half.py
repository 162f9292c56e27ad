"""The split-half protocol: fit on one half of the rows, compare before and after on the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from focalcal.core.arrays import like_given
from focalcal.core.checks import rounding_collected, shown, whole_number
from focalcal.core.display import Displayed, text_table
from focalcal.core.numerics import softmax
from focalcal.metrics import METRICS
from focalcal.posthoc.calibrator import Calibrator
from focalcal.posthoc.calibrator_inputs import labelled_rows, map_rows
from focalcal.posthoc.estimator import clone

if TYPE_CHECKING:
    from numpy.typing import NDArray

Metric = Callable[[Any, Any], float]
C = TypeVar("C")


@dataclass(frozen=True, repr=False)
class SplitHalf(Displayed, Generic[C]):
    """Metrics of softmax(logits) and of the calibrated probabilities on the same rows, and what was fitted on which.

    Where `calibrator.at_bound_` is True no temperature was best: leave `after` out of means.

    Attributes:
        before: metrics of the scores as they are, by name.
        after: of the calibrated probabilities.
        calibrator: the fitted one.
        fit_rows: the rows it was fitted on.
        evaluation_rows: the others.

    >>> import numpy as np
    >>> from focalcal.posthoc import TemperatureScaling
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> found = split_half(3 * logits, labels, TemperatureScaling())
    >>> found.after["nll"] < found.before["nll"], len(found.fit_rows)
    (True, 1000)
    """

    before: dict[str, float]
    after: dict[str, float]
    calibrator: C
    fit_rows: NDArray[np.int64]
    evaluation_rows: NDArray[np.int64]

    def frame(self) -> dict[str, list[Any]]:
        """One row per metric."""
        return {"metric": list(self.before), "before": list(self.before.values()), "after": list(self.after.values())}

    def __str__(self) -> str:
        """What was fitted on how many rows, and one line per metric."""
        rows = f"fitted on {len(self.fit_rows):,} rows, evaluated on {len(self.evaluation_rows):,} others"
        return f"{self.calibrator} {rows}\n{text_table(self.frame())}"


REPORTED: Mapping[str, Metric] = {
    name: METRICS[name] for name in ("error", "nll", "brier", "ece", "adaptive_ece", "classwise_ece", "smooth_ece")
}


def split_half(
    logits: Any = None,
    labels: Any = None,
    calibrator: C = None,  # type: ignore[assignment]
    *,
    probs: Any = None,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    seed: int = 0,
    metrics: Mapping[str, Metric] = REPORTED,
) -> SplitHalf[C]:
    """Permute the rows by `seed`, fit a clone of `calibrator` on the first half, report metrics on the second.

    Unscaled and scaled values come from identical examples and no example is used for both fitting and reporting. They
    are not comparable with values from the whole set. Of an odd number of rows the extra one is evaluated.

    Args:
        logits: (N, K), or in any other form of `focalcal.predictions.read_inputs`, `Predictions` among them.
        labels: (N,).
        calibrator: one of this package, or any scikit-learn estimator with `fit` and `predict_proba` (a grid search, a
            pipeline), which is given NumPy arrays of logits.
        probs: in place of logits; `before` is of them as they are, and their logarithm is calibrated.
        classes, positive: as for `Calibrator.fit`.
        seed: of the permutation.
        metrics: functions (probs, labels) -> float by name; both come in the kind (tensor or NumPy) that was given.

    Returns:
        The metrics before and after, and the fitted calibrator.

    >>> import numpy as np
    >>> from focalcal.posthoc import TemperatureScaling
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> round(split_half(3 * logits, labels, TemperatureScaling()).calibrator.temperature_, 1)
    2.8
    """
    usable = all(callable(getattr(calibrator, name, None)) for name in ("fit", "predict_proba", "get_params"))
    if isinstance(calibrator, type) or not usable:
        raise TypeError(
            f"calibrator must be an estimator with fit and predict_proba, got {shown(calibrator)}; "
            "e.g. TemperatureScaling()"
        )
    whole_number("seed", seed, least=0, remedy="the split has to be repeatable")
    if not isinstance(metrics, Mapping) or not metrics or not all(map(callable, metrics.values())):
        raise TypeError(f"metrics must map names to functions (probs, labels) -> float, got {shown(metrics)}")
    masked = getattr(calibrator, "_takes_masked", False)
    about = {"classes": classes, "positive": positive, "clip": "data"}
    all_rows = labelled_rows(logits, labels, probs=probs, masked=masked, **about)
    scores, index = all_rows.logits, all_rows.labels
    given = logits if probs is None else probs
    order = np.random.default_rng(int(seed)).permutation(len(scores))
    fit_rows, evaluation_rows = order[: len(order) // 2], order[len(order) // 2 :]

    fitted: Any = clone(calibrator)
    held_labels = like_given(given if labels is None else labels, index[evaluation_rows])
    fitted.fit(scores[fit_rows], index[fit_rows])
    after = fitted.predict_proba(scores[evaluation_rows])
    if isinstance(fitted, Calibrator):
        fitted.clip_ = all_rows.clip
        fitted._set_classes(scores.shape[1], all_rows.classes, one_column=all_rows.one_column)
    elif np.shape(after) != (len(evaluation_rows), scores.shape[1]):
        raise ValueError(
            f"calibrator must give probabilities of shape {(len(evaluation_rows), scores.shape[1])}, got "
            f"{np.shape(after)}; an estimator that leaves out classes without labels needs rows of every class in both "
            "halves"
        )
    if all_rows.kind == "logits":
        held = scores[evaluation_rows]
        before = map_rows(held, softmax, np.promote_types(held.dtype, np.float32))
    else:
        before = all_rows.scores[evaluation_rows]
    before, after = like_given(given, before), like_given(given, np.asarray(after))
    with rounding_collected():  # of probabilities that were looked at already
        return SplitHalf(
            before={name: float(metric(before, held_labels)) for name, metric in metrics.items()},
            after={name: float(metric(after, held_labels)) for name, metric in metrics.items()},
            calibrator=fitted,
            fit_rows=fit_rows,
            evaluation_rows=evaluation_rows,
        )
