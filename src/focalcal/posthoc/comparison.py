"""Which calibrators make sense, and how they compare: cross-fitted on the same rows, row by row."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from focalcal._native import limit_threads, threads
from focalcal.core.checks import shown
from focalcal.core.numerics import log_softmax, softmax
from focalcal.metrics import ece, multilabel_ece
from focalcal.metrics.proper import binary_brier, binary_nll, of_label, row_brier, row_nll
from focalcal.posthoc.calibrator import Calibrator
from focalcal.posthoc.cross_fit import FOLDS, cross_fitted_probs, group_folds, row_folds
from focalcal.posthoc.recovery import PosteriorRecovery
from focalcal.stats import PairedInterval, bootstrap_ci

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Bool, Int
    from numpy.typing import NDArray

    from focalcal.core.arrays import Labels, PerRow, Scores
    from focalcal.posthoc.calibrator import Calibrator

# From the fewest numbers fitted to the most: of those that cannot be told apart the first is taken.
SIMPLEST_FIRST = (
    "recovery", "temperature", "focal_temperature", "ensemble", "spline", "vector", "platt", "beta", "quadratic",
    "structured", "dirichlet", "matrix", "histogram", "centred_isotonic", "isotonic", "venn_abers",
)  # fmt: skip
# Maps of one probability, and so of a confidence whose other classes are unknown.
OF_ONE_PROBABILITY = ("platt", "histogram", "isotonic", "beta", "quadratic", "centred_isotonic", "venn_abers")
WITH_ZEROS = ("histogram", "isotonic", "centred_isotonic")  # a mean with them is noisier, and only as far from 0
_QUADRATIC = ("matrix", "dirichlet")
_MOST_CLASSES = 50  # of calibrators with K^2 numbers
_PER_CLASS = ("vector", *OF_ONE_PROBABILITY)
_ROWS_PER_CLASS = 10  # that a map of its own for every class needs
Score = Literal["nll", "brier"]
MOST_ROWS = 20_000  # that calibrators are compared on
LEAST_ROWS = 20 * FOLDS
_ONE_THREAD = 1 << 17  # scores at most: on a busy machine threads wait for each other longer than they compute
_RESAMPLES = 1000


def sensible_candidates(
    names: Sequence[str] | None,
    rows: int,
    classes: int,
    *,
    trained_with: tuple[float, float] | None = None,
    top1: bool = False,
) -> tuple[dict[str, Calibrator], dict[str, str]]:
    """Unfitted calibrators by name, and why others are left out; what is named is tried whatever it costs.

    `trained_with` is (gamma, lam) of the loss, for posterior recovery; with `top1` the event is that a prediction is
    right, which calibrators of all classes cannot take.
    """
    from focalcal.posthoc import CALIBRATORS  # the package that has the table has this module, too

    chosen: dict[str, Calibrator] = {}
    left_out: dict[str, str] = {}
    for name in names or CALIBRATORS:
        if name == "recovery" and trained_with is None:
            left_out[name] = "it needs the gamma and lam that the network was trained with"
        elif names is None and name in _QUADRATIC and classes > _MOST_CLASSES:
            left_out[name] = f"it fits {classes}^2 numbers; name it to try it"
        elif names is None and name == "quadratic" and classes > 2:  # one row far out outweighs what it gains
            left_out[name] = "it is for two classes; name it to try it"
        elif names is None and name in _PER_CLASS and rows < _ROWS_PER_CLASS * classes:
            left_out[name] = f"it has a map of its own for each of {classes} classes, and there are {rows} rows"
        else:
            chosen[name] = (
                PosteriorRecovery(*trained_with) if name == "recovery" and trained_with else CALIBRATORS[name]()
            )
    if top1:
        left_out |= {name: "it needs all classes" for name in CALIBRATORS if name not in OF_ONE_PROBABILITY}
        chosen = {name: chosen[name] for name in chosen if name in OF_ONE_PROBABILITY}
    return chosen, left_out


def named_candidates(candidates: Any, rows: int, classes: int) -> tuple[dict[str, Calibrator], dict[str, str]]:
    """What a caller asked for: None for all that make sense, names of CALIBRATORS, or calibrators by own names."""
    from focalcal.posthoc import CALIBRATORS

    if candidates is None:
        return sensible_candidates(None, rows, classes)
    if isinstance(candidates, Mapping):
        wrong = [name for name, each in candidates.items() if not isinstance(each, Calibrator)]
        if wrong or not candidates:
            raise TypeError(
                f"candidates must be calibrators by name, got {shown(candidates)}; {{'T': TemperatureScaling()}}"
            )
        return dict(candidates), {}
    names = [candidates] if isinstance(candidates, str) else candidates
    if not isinstance(names, Iterable) or not (names := list(names)):
        raise TypeError(f"candidates must be names of calibrators, got {shown(candidates)}; leave it out for all")
    for name in names:
        if not isinstance(name, str) or name not in CALIBRATORS:
            raise ValueError(f"candidates must name calibrators, got {shown(name)}; known: {', '.join(CALIBRATORS)}")
    if "recovery" in names:
        raise ValueError(
            "candidates names recovery, which needs the loss's gamma and lam; pass them in a mapping, "
            "{'recovery': PosteriorRecovery(gamma, lam)}"
        )
    return sensible_candidates(names, rows, classes)


@dataclass(frozen=True, eq=False)
class CalibratorCandidate:
    """A calibrator, on rows it was not fitted on, as `calibrate` compares them.

    Attributes:
        name: of the calibrator.
        nll: mean negative log-likelihood, calibrated.
        brier: the Brier score, summed over classes.
        ece: with 15 bins.
        change: of the NLL, calibrated minus raw, paired by row, with a 95 % interval; None where either is infinite.
        brier_change: of the Brier score likewise: where that is what chooses, or if the raw NLL is infinite and the
            calibrated one is not; else None.
        seconds: that the five fits and predictions took.
        row_losses: "nll" and "brier", (n,) each.
        confidence: (n,) the calibrated probability of the class that the raw scores predict.

    >>> from focalcal.posthoc import calibrate
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 3))
    >>> labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    >>> tried = calibrate(3 * logits, labels, candidates=["temperature"]).choice_.tried[0]
    >>> tried.name, tried.change.high < 0
    ('temperature', True)
    """

    name: str
    nll: float
    brier: float
    ece: float
    change: PairedInterval | None
    brier_change: PairedInterval | None
    seconds: float
    row_losses: dict[str, NDArray[np.float64]]
    confidence: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rated:
    """Rows in random order with their labels, and the losses of their scores as they are.

    losses   "nll" and "brier", (n,) each
    top1     the second of two columns is the confidence, the label whether the prediction is right
    weights  how often each row counts; None for once
    units    the group of each row, from 0; None if rows are independent
    """

    scores: Scores
    labels: Int[np.ndarray, "n *l"]
    kind: str
    losses: dict[str, NDArray[np.float64]]
    top1: bool = False
    weights: PerRow | None = None
    units: Labels | None = None

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.labels)

    def raw(self, score: Score) -> float:
        """The mean loss of the scores as they are."""
        return self.mean(self.losses[score])

    def mean(self, values: PerRow) -> float:
        """Over rows, by their weights."""
        return float(values.mean() if self.weights is None else np.average(values, weights=self.weights))

    def change(self, differences: PerRow, level: float = 0.95) -> PairedInterval:
        """The mean of a difference between two losses of every row, and its interval over rows or over groups."""
        values = differences if self.weights is None else differences * (self.weights / self.weights.mean())
        if self.units is not None:
            sums = np.bincount(self.units, values)
            filled = np.bincount(self.units) > 0
            values = sums[filled] * (filled.sum() / len(differences))
        return bootstrap_ci(values, level=level, resamples=_RESAMPLES)

    def part(self, at: Bool[np.ndarray, " n"]) -> Rated:
        """Some of the rows."""
        losses = {score: values[at] for score, values in self.losses.items()}
        weights, units = (None if each is None else each[at] for each in (self.weights, self.units))
        return replace(
            self, scores=self.scores[at], labels=self.labels[at], losses=losses, weights=weights, units=units
        )

    def folds(self) -> list[Int[np.ndarray, " m"]]:
        """Consecutive rows, or whole groups."""
        return row_folds(self.rows) if self.units is None else group_folds(self.units)

    def candidates(
        self, calibrators: Mapping[str, Calibrator], by: Score = "nll"
    ) -> tuple[list[CalibratorCandidate], dict[str, str]]:
        """Each calibrator cross-fitted, best first by the score and then the other; and why some could not be."""
        found, failed = [], {}
        with limit_threads(1 if self.scores.size <= _ONE_THREAD else threads()):
            for name, calibrator in calibrators.items():
                try:
                    found.append(self._candidate(name, calibrator, by))
                except ValueError as error:  # a fold without rows of some class, say
                    failed[name] = str(error).split(";")[0]
        other = "brier" if by == "nll" else "nll"
        # Of scores that are the same to nine digits the first is the first of the table, not the one of rounding.
        return sorted(found, key=lambda each: [float(f"{getattr(each, one):.9g}") for one in (by, other)]), failed

    def _candidate(self, name: str, calibrator: Calibrator, by: Score) -> CalibratorCandidate:
        began = time.perf_counter()
        probs = cross_fitted_probs(
            calibrator, self.scores, self.labels, self.kind, folds=self.folds(), weights=self.weights
        )
        seconds = time.perf_counter() - began
        losses = row_losses(probs, self.labels, top1=self.top1)
        change = brier_change = None
        finite = bool(np.isfinite(losses["nll"]).all())
        if by == "nll" and finite and np.isfinite(self.losses["nll"]).all():
            change = self.change(losses["nll"] - self.losses["nll"])
        elif by == "brier" or finite:
            brier_change = self.change(losses["brier"] - self.losses["brier"])
        means = {score: self.mean(values) for score, values in losses.items()}
        return CalibratorCandidate(
            name, **means, ece=self.ece(probs), change=change, brier_change=brier_change, seconds=seconds,
            row_losses=losses, confidence=of_label(probs, self.scores.argmax(1)),
        )  # fmt: skip

    def ece(self, probs: Scores) -> float:
        """Of such probabilities of these rows."""
        if self.labels.ndim > 1:
            return float(multilabel_ece(probs, self.labels))
        confidence, correct = probs.max(1), probs.argmax(1) == self.labels
        if self.top1:
            confidence, correct = probs[:, 1], self.labels == 1
        return ece(confidence=confidence, correct=correct, sample_weight=self.weights)


def rated_rows(
    scores: Scores, labels: Labels, kind: str, *, weights: PerRow | None = None, units: Labels | None = None
) -> Rated:
    """Rows of one label, their losses in float64; of logits the NLL is that of the logits, finite where p_y is 0."""
    wide = scores.astype(np.float64)
    if kind == "probs":
        losses = row_losses(wide, labels)
    else:
        losses = {"nll": -of_label(log_softmax(wide), labels), "brier": row_brier(softmax(wide), labels)}
    return Rated(wide, labels, kind, losses, weights=weights, units=units)


def row_losses(probs: Scores, labels: Int[np.ndarray, "n *l"], *, top1: bool = False) -> dict[str, NDArray[np.float64]]:
    """-log p of what happened and the Brier score, (n,); the means over several labels per row."""
    if labels.ndim > 1:
        return {"nll": binary_nll(probs, labels).mean(1), "brier": binary_brier(probs, labels).mean(1)}
    brier = binary_brier(probs[:, 1], labels == 1) if top1 else row_brier(probs, labels)
    return {"nll": row_nll(probs, labels), "brier": brier}
