"""Label shift: the class frequencies of new rows without labels, and probabilities corrected for them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls

from focalcal.core.arrays import like_given
from focalcal.core.checks import ProbabilityWarning, shown, warn, whole_number
from focalcal.core.display import Displayed, text_table
from focalcal.posthoc.affine_scaling import VectorScaling
from focalcal.posthoc.calibrator import CalibrationWarning, Calibrator
from focalcal.posthoc.calibrator_inputs import labelled_rows, rows_of
from focalcal.posthoc.ensemble import GAP, mixture_weights
from focalcal.posthoc.estimator import clone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int
    from numpy.typing import NDArray

    from focalcal.core.arrays import Labels, PerRow, Scores

_PERMUTATIONS = 999


@dataclass(frozen=True, eq=False, repr=False)
class LabelShift(Displayed):
    """Class frequencies of the source and of the target, and how sure they are; all arrays are (K,).

    Attributes:
        classes: names of the classes, or their numbers.
        source: the frequencies of the source's labels.
        target: of the target, by maximum likelihood (Saerens).
        low, high: its bootstrap interval.
        bbse: of the target, by the confusion matrix (Lipton).
        bbse_low, bbse_high: its interval.
        p_value: of the hypothesis that source and target have the same scores on average: small where something
            shifted.
        gap: nats by which the mean log-likelihood of `target` may miss its maximum.
        calibrator: what was fitted on the source's scores; None if they were taken as they are.

    >>> draws = np.random.default_rng(0)
    >>> odds, new = np.r_[draws.normal(-1, 1, 500), draws.normal(1, 1, 500)], draws.normal(-1, 1, 500)
    >>> probs = [1 / (1 + np.exp(-2 * z)) for z in (odds, new)]
    >>> found = label_shift(probs[0], np.repeat([0, 1], 500), probs[1])  # no event among the new rows
    >>> found.source, bool(found.target[1] < 0.1)
    (array([0.5, 0.5]), True)
    """

    classes: tuple[Any, ...]
    source: NDArray[np.float64]
    target: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    bbse: NDArray[np.float64]
    bbse_low: NDArray[np.float64]
    bbse_high: NDArray[np.float64]
    p_value: float
    gap: float
    calibrator: Calibrator | None

    def correct(self, probs: Any) -> Any:
        """Probabilities (N, K) of target rows: calibrated on the source, times target / source, divided by their sum.

        A tensor for a tensor, NumPy for all else; rows in which every possible class has frequency 0 stay calibrated.
        """
        calibrated = _calibrated(self.calibrator, _checked_target(probs, len(self.source)))
        weighted = calibrated * (self.target / self.source)
        total = weighted.sum(1, keepdims=True)
        corrected = np.where(total > 0, weighted / np.where(total > 0, total, 1.0), calibrated)
        return like_given(probs, corrected)

    def frame(self) -> dict[str, list[Any]]:
        """One row per class."""
        names = ("source", "target", "low", "high", "bbse", "bbse_low", "bbse_high")
        return {"class": list(self.classes)} | {name: getattr(self, name).tolist() for name in names}

    def __str__(self) -> str:
        """Whether anything shifted, and one line per class."""
        said = "the classes' frequencies shifted" if self.p_value < 0.05 else "no shift is shown"
        return f"{said} (p = {self.p_value:.3g})\n{text_table(self.frame())}"


def label_shift(
    probs_source: Any,
    labels_source: Any,
    probs_target: Any,
    *,
    classes: Sequence[Any] | None = None,
    calibrator: Calibrator | str | None = "auto",
    resamples: int = 200,
    seed: int = 0,
) -> LabelShift:
    """How often each class occurs among target rows, whose labels nobody has, if nothing else than that has changed.

    With the posterior p(k | x) of the source and its frequencies s_k the target's frequencies t maximise

        mean_i log sum_k t_k p(k | x_i) / s_k          over the simplex,

    the limit of the EM algorithm of Saerens, Latinne and Decaestecker (2002), which needs calibrated posteriors
    (Alexandari, Kundaje and Shrikumar, 2020). It is concave and maximised to a duality gap (KKT) of 1e-9; a larger one
    is a `CalibrationWarning`. The second estimate solves C w = m, w >= 0, with the source's confusion matrix
    C_jk = P(predicted j, label k) and the target's frequencies m of predicted classes (BBSE; Lipton, Wang and Smola,
    2018); it asks for no calibration. Where both intervals disagree, more than the frequencies has changed.

    The test permutes rows between source and target; its statistic is the Mahalanobis distance between mean scores.

    Args:
        probs_source: (N, K) probabilities of labelled, held-out rows, or one column of two classes.
        labels_source: (N,) their labels; every class must occur.
        probs_target: (M, K) probabilities that the same model gives new rows.
        classes: the name of each column, if labels are names.
        calibrator: fitted on the source's probabilities first; "auto" is a temperature and one bias per class
            (`VectorScaling(spread_l2=inf)`, called BCTS), None takes them as they are.
        resamples: of the bootstrap of both sets, for 95 % percentile intervals.
        seed: of the bootstrap and of the permutations.

    Returns:
        Both estimates with their intervals, the test, and `correct`, which adapts probabilities.

    >>> draws = np.random.default_rng(0)
    >>> odds = np.r_[draws.normal(-1, 1, 2000), draws.normal(1, 1, 2000)]  # labels 0 and 1, equally many
    >>> new = np.r_[draws.normal(-1, 1, 900), draws.normal(1, 1, 100)]
    >>> probs = [np.exp(-np.logaddexp(0, -2 * z)) for z in (odds, new)]
    >>> found = label_shift(probs[0], np.repeat([0, 1], 2000), probs[1])
    >>> bool(found.low[1] < 0.1 < found.high[1]), found.p_value
    (True, 0.001)
    """
    whole_number("resamples", resamples, least=20, most=10**6, remedy="200 is enough for 95 % intervals")
    whole_number("seed", seed, least=0, remedy="the intervals have to be repeatable")
    rows = labelled_rows(None, labels_source, probs=probs_source, classes=classes)
    columns = rows.scores.shape[1]
    names = tuple(range(columns)) if rows.classes is None else rows.classes
    counts = np.bincount(rows.labels, minlength=columns)
    if not counts.all():
        raise ValueError(
            f"labels_source must name every class, got no row of class {names[int(counts.argmin())]!r} among "
            f"{len(rows.labels)}; add rows of it, or leave its column out of both probabilities"
        )
    target_scores = _checked_target(probs_target, columns)
    fitted = _fitted(calibrator, rows.scores, rows.labels)
    source, target = _calibrated(fitted, rows.scores), _calibrated(fitted, target_scores)
    both = _Both(source.argmax(1), rows.labels, target, target.argmax(1))
    ones = np.ones(len(rows.labels)), np.ones(len(target))
    estimate, bbse, gap = both.estimates(*ones)
    if gap > GAP:
        warn(
            f"the target's frequencies may miss the optimum: the duality gap is {gap:.1e}, not below {GAP:g}; look at "
            "bbse beside them",
            CalibrationWarning,
        )
    draws = np.random.default_rng(seed)
    again = []
    for _ in range(resamples):
        source_weights, target_weights = (_resampled(len(each), draws) for each in ones)
        again.append(both.estimates(source_weights, target_weights, estimate)[:2])
    low, high = np.quantile([one for one, _ in again], [0.025, 0.975], axis=0)
    bbse_low, bbse_high = np.quantile([other for _, other in again], [0.025, 0.975], axis=0)
    p_value = _permutation_p(rows.scores.astype(np.float64), target_scores.astype(np.float64), draws)
    frequencies = counts / counts.sum()
    return LabelShift(
        names, frequencies, estimate, low, high, bbse, bbse_low, bbse_high, p_value, gap, fitted
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Both:
    """What both estimates need: predicted and true classes of the source; posteriors and predictions of the target."""

    predicted: Labels
    labels: Labels
    posterior: Float[np.ndarray, "m k"]
    predicted_target: Int[np.ndarray, " m"]

    def estimates(
        self,
        source_weights: PerRow,
        target_weights: Float[np.ndarray, " m"],
        start: Float[np.ndarray, " k"] | None = None,
    ) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], float]:
        """By likelihood, by the confusion matrix, and the gap of the first, for rows that count so many times."""
        k = self.posterior.shape[1]
        joint = np.bincount(self.predicted * k + self.labels, source_weights, minlength=k * k).reshape(k, k)
        source = np.maximum(joint.sum(0), 0.5)  # a class that a resample lacks counts as half a row
        kept = target_weights > 0
        likelihoods = self.posterior[kept] * (source.sum() / source)
        estimate, gap = mixture_weights(likelihoods, target_weights[kept], start)
        predicted = np.bincount(self.predicted_target, target_weights, minlength=k) / target_weights.sum()
        ratios, _ = nnls(joint / joint.sum(), predicted)
        bbse = ratios * source
        return estimate, bbse / bbse.sum() if bbse.sum() > 0 else source / source.sum(), gap


def _resampled(rows: int, draws: np.random.Generator) -> PerRow:
    """How often each row is drawn."""
    return np.bincount(draws.integers(0, rows, rows), minlength=rows).astype(np.float64)


def _permutation_p(source: Scores, target: Float[np.ndarray, "m k"], draws: Any) -> float:
    """How often rows put apart at random differ as much on average."""
    pooled = np.concatenate([source, target])
    pooled -= pooled.mean(0)
    values, vectors = np.linalg.eigh(pooled.T @ pooled / len(pooled))
    used = values > 1e-10 * max(values[-1], 1e-300)
    white = pooled @ (vectors[:, used] / np.sqrt(values[used]))
    few = min(len(source), len(target))  # sums over the smaller part say it all: the whole sums to zero
    own = white[: len(source)] if few == len(source) else white[len(source) :]
    distance = float((own.sum(0) ** 2).sum()) * (1 - 1e-9)
    chosen = (draws.choice(len(white), few, replace=False, shuffle=False) for _ in range(_PERMUTATIONS))
    larger = sum(float((white[rows].sum(0) ** 2).sum()) >= distance for rows in chosen)
    return (1 + larger) / (1 + _PERMUTATIONS)


def _fitted(calibrator: Any, probs: Scores, labels: Labels) -> Calibrator | None:
    if calibrator is None:
        return None
    if calibrator == "auto":
        calibrator = VectorScaling(spread_l2=np.inf)
    if not isinstance(calibrator, Calibrator):
        raise TypeError(
            f"calibrator must be one such as TemperatureScaling(), 'auto' or None, got {shown(calibrator)}; None takes "
            "the probabilities as they are"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbabilityWarning)
        return clone(calibrator).fit(probs=probs, labels=labels)


def _calibrated(calibrator: Calibrator | None, probs: Scores) -> Scores:
    wide = probs.astype(np.float64)
    return wide if calibrator is None else np.asarray(calibrator.predict_proba(probs=wide))


def _checked_target(probs: Any, classes: int) -> Float[np.ndarray, "m k"]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbabilityWarning)  # of zeros: the calibrator has its bound
        scores = rows_of(None, probs).scores
    if scores.shape[1] != classes:
        raise ValueError(
            f"probs_target must have the classes of the source in {classes} columns, got {scores.shape[1]}; use the "
            "same model for both"
        )
    return scores
