"""What would fix it: every calibrator, fitted on some rows and judged on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from focalcal.auditing.rows import Design, rows_of
from focalcal.pages.numbers import Percent, four
from focalcal.posthoc import CALIBRATORS, Calibrator, MultilabelCalibration
from focalcal.posthoc.calibrator_inputs import bound_of, zeros_message
from focalcal.posthoc.choice import choose, too_sure
from focalcal.posthoc.comparison import LEAST_ROWS, MOST_ROWS, CalibratorCandidate, Rated, sensible_candidates
from focalcal.posthoc.cross_fit import FOLDS, cross_fitted_probs, fitted_quietly

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.predictions import Predictions

_NAMED = 5  # rows in a sentence
_RARE = 0.25  # a class below this share keeps all of its rows where others are sampled


@dataclass(frozen=True, eq=False)
class CalibrationRows:
    """The rows that calibrators are compared on: their places, and the design whose weights restore the whole.

    said  what they are, if they are not all rows
    """

    places: NDArray[np.int64]
    design: Design
    said: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Fixes:
    """Every calibrator that was tried, best first by NLL, then Brier score; `recommended` is None if none is worth it.

    rows        that they were compared on, a sample if there are more
    compared    which rows these are
    raw_ece     of these rows as they are
    after       (rows, K) calibrated probabilities of these rows, by the recommended calibrator fitted on others; None
                without one
    impossible  of these, the ids or numbers of those whose label has probability 0: the raw NLL is infinite
    zeros       how many probabilities of 0 there are, and what calibrators take them for; "" if there are none
    left_out    names of calibrators that were not tried, and why
    calibrator  the recommended one, fitted on all of these rows
    """

    tried: tuple[CalibratorCandidate, ...]
    recommended: str | None
    rows: int
    compared: CalibrationRows
    raw_nll: float
    raw_brier: float
    raw_ece: float
    impossible: tuple[Any, ...]
    zeros: str
    left_out: dict[str, str]
    calibrator: Calibrator | None
    after: NDArray[np.float64] | None = None

    @property
    def chosen(self) -> CalibratorCandidate | None:
        """The recommended one, on rows it was not fitted on."""
        return next((fix for fix in self.tried if fix.name == self.recommended), None)

    @property
    def step(self) -> str:
        """What to apply, with its number if that is all; "" if nothing is worth it."""
        number = self.temperature
        return f"temperature {number:.3g}" if number is not None else (self.recommended or "").replace("_", " ")

    @property
    def temperature(self) -> float | None:
        """That of the recommended calibrator, if it is no more than one."""
        found = getattr(self.calibrator, "temperature_", None) if self.recommended == "temperature" else None
        return None if found is None else float(found)

    @property
    def formula(self) -> str:
        """What the recommended calibrator computes, for those that are a line; else how its file is applied."""
        if self.calibrator is None:
            return ""
        if self.temperature is not None:
            return f"p = softmax(z / {self.temperature!r}), z the logits or the logarithms of the probabilities"
        try:
            return self.calibrator.to_sql("p", kind="probs")
        except (ValueError, AttributeError):
            return "focalcal calibrate calibrator.json new.parquet out.parquet"

    @property
    def sentence(self) -> str:
        """What to do."""
        if self.recommended is None and self.impossible:
            return (
                f"No calibrator is worth it: {self._why_infinite}, and none makes it finite without raising the Brier "
                "score of rows that it was not fitted on."
            )
        if self.recommended is None:
            return "No calibrator is worth it: none is shown to lower the NLL of rows that it was not fitted on."
        chosen = self.chosen
        assert chosen is not None
        if chosen.change is None:
            assert chosen.brier_change is not None
            low, high = chosen.brier_change.low, chosen.brier_change.high
            return (
                f"Use {self.recommended}: {self._why_infinite}; on rows it was not fitted on the calibrated NLL is "
                f"{four(chosen.nll).text}, the Brier score goes from {four(self.raw_brier).text} to "
                f"{four(chosen.brier).text} "
                f"(95 % interval of the change {_between(low, high)}) and the ECE to {Percent(chosen.ece).text}."
            )
        low, high = chosen.change.low, chosen.change.high
        return (
            f"Use {self.recommended}: on rows it was not fitted on it lowers the NLL from {four(self.raw_nll).text} to "
            f"{four(chosen.nll).text} (95 % interval of the change {_between(low, high)}) and the "
            f"ECE to {Percent(chosen.ece).text}{too_sure(chosen.nll, self.rows)}."
        )

    def __repr__(self) -> str:
        """What to do, and how many were tried."""
        return f"<{len(self.tried)} calibrators on {self.rows:,} rows. {self.sentence}>"

    @property
    def _why_infinite(self) -> str:
        names = ", ".join(map(str, self.impossible[:_NAMED]))
        more = ", ..." if len(self.impossible) > _NAMED else ""
        return (
            f"the NLL is infinite, since {len(self.impossible):,} of {self.rows:,} rows give what happened a "
            f"probability of 0 (row {names}{more})"
        )


def calibrator_names(calibrate: Sequence[str] | str | None) -> list[str] | None:
    """The names that `audit` was given, which must be known; None for "auto" and for none."""
    if calibrate is None or calibrate == "auto":
        return None
    names = [calibrate] if isinstance(calibrate, str) else list(calibrate)
    for name in names:
        if name not in CALIBRATORS:
            raise ValueError(f"calibrate must name calibrators, got {name!r}; known: {', '.join(CALIBRATORS)}")
    return names


def compare_fixes(
    predictions: Predictions,
    *,
    names: Sequence[str] | None = None,
    trained_with: tuple[float, float] | None = None,
    top1: bool = False,
    seed: int = 0,
) -> Fixes | None:
    """Cross-fit calibrators in five folds; None where there are fewer than 20 rows for each fold or one class.

    Several labels per row share one calibrator (`MultilabelCalibration`), and a row's loss is the mean of its labels'.
    Of top-1 rows the event is that the prediction is right, and calibrators that need all classes are left out.
    Weights enter fits and scores; the rows of a cluster stay in one fold, and intervals are over clusters.

    `trained_with` is (gamma, lam) of the focal or FCL loss that the network was trained with, for posterior recovery.
    """
    compared = calibration_rows(predictions, seed)
    chosen, design = predictions[compared.places], compared.design
    scores, labels, kind = chosen.scores.astype(np.float64), chosen.labels, chosen.kind
    if len(labels) < LEAST_ROWS or (labels == labels.flat[0]).all():
        return None
    if design.clusters is not None and design.clusters.max() + 1 < 2 * FOLDS:
        return None
    classes = 2 if predictions.multilabel else scores.shape[1]
    candidates, left_out = sensible_candidates(names, labels.size, classes, trained_with=trained_with, top1=top1)
    rows = rows_of(chosen, top1=top1)
    raw = {name: rows.losses[name].reshape(len(labels), -1).mean(1) for name in ("nll", "brier")}
    if predictions.multilabel:
        shared = {name: MultilabelCalibration(calibrator, shared=True) for name, calibrator in candidates.items()}
        candidates = cast("dict[str, Calibrator]", shared)  # fitted and asked in the same way
    rated = Rated(scores, labels, kind, raw, top1=top1, weights=design.weights, units=design.clusters)
    choice = choose(rated, candidates, left_out)
    recommended = choice.chosen if choice.shown else None
    fitted = after = None
    if recommended is not None:
        named = None if predictions.multilabel else predictions.classes
        target = labels if named is None else np.array(named, dtype=object)[labels]
        fitted = fitted_quietly(candidates[recommended], scores, target, kind, design.weights, classes=named)
        after = cross_fitted_probs(
            candidates[recommended], scores, labels, kind, folds=rated.folds(), weights=design.weights
        )
    return Fixes(
        tried=choice.tried,
        recommended=recommended,
        rows=choice.rows,
        compared=compared,
        raw_nll=choice.raw_nll,
        raw_brier=choice.raw_brier,
        raw_ece=rated.ece(chosen.probs.astype(np.float64)),
        impossible=_impossible(predictions, compared.places[np.isinf(raw["nll"])]),
        zeros=_zeros(chosen),
        left_out=choice.left_out,
        calibrator=fitted,
        after=after,
    )


def calibration_rows(predictions: Predictions, seed: int) -> CalibrationRows:
    """All rows in random order, or a sample: uniform, or, of two classes, all of a rare one and some of the other."""
    n = predictions.n
    most = max(1000, MOST_ROWS // predictions.n_classes) if predictions.multilabel else MOST_ROWS  # every entry counts
    order, design = np.random.default_rng(seed).permutation(n), _row_design(predictions)
    if n <= most:
        return CalibrationRows(order, design.part(order))
    if not predictions.multilabel and predictions.n_classes == 2:
        counts = np.bincount(predictions.labels, minlength=2)
        rare = int(counts.argmin())
        kept = min(int(counts[rare]), most // 2)
        if counts[rare] < _RARE * n:
            own, others = (order[predictions.labels[order] == k] for k in (rare, 1 - rare))
            places = np.random.default_rng(seed).permutation(np.concatenate([own[:kept], others[: most - kept]]))
            labels, factor = predictions.labels[places], np.empty(2)
            factor[rare], factor[1 - rare] = len(own) / max(1, kept), len(others) / (most - kept)
            weights = factor[labels] if design.weights is None else factor[labels] * design.weights[places]
            all_of = "all" if kept == counts[rare] else f"{kept:,} of"
            said = (
                f"{all_of} {counts[rare]:,} rows of the rarer class and a uniform sample of {most - kept:,} of the "
                f"{n - counts[rare]:,} others, weighted so that the rate is that of all rows"
            )
            return CalibrationRows(places, Design(weights / weights.mean(), design.part(places).clusters), said)
    return CalibrationRows(order[:most], design.part(order[:most]), f"a uniform sample of {most:,} rows")


def _row_design(predictions: Predictions) -> Design:
    """Of rows, also where each has several labels; weights sum to as many rows as they tell of, which priors face."""
    weights, clusters = predictions.weights, predictions.clusters
    if weights is not None:
        weights = weights / weights.max()
        weights = weights * (weights.sum() / np.square(weights).sum())
    return Design(weights, None if clusters is None else np.unique(clusters, return_inverse=True)[1])


def _impossible(predictions: Predictions, rows: NDArray[np.int64]) -> tuple[Any, ...]:
    names = np.sort(rows) if predictions.ids is None else predictions.ids[np.sort(rows)]
    return tuple(names.tolist())


def _zeros(predictions: Predictions) -> str:
    """What is said of probabilities of 0; of several labels per row every entry is one of two classes."""
    if predictions.kind == "logits":
        return ""
    scores = predictions.scores
    probs = np.stack([1 - scores, scores], -1).reshape(-1, 2) if predictions.multilabel else scores
    return zeros_message(probs, bound_of(probs))


def _between(low: float, high: float) -> str:
    """Of a rare event changes are too small for four decimals."""
    form = "+.4f" if max(abs(low), abs(high)) >= 0.001 else "+.1e"
    return f"{low:{form}} to {high:{form}}"
