"""What would fix it: every calibrator, fitted on some rows and judged on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from focalcal._native import limit_threads, threads
from focalcal.auditing.rows import rows_of
from focalcal.metrics import ece, multilabel_ece
from focalcal.metrics.proper import binary_brier, binary_nll, row_brier, row_nll
from focalcal.posthoc import CALIBRATORS, Calibrator, MultilabelCalibration, PosteriorRecovery
from focalcal.posthoc.clipping import bound_of, zeros_message
from focalcal.posthoc.cross_fit import FOLDS, cross_fitted_probs, fitted_quietly
from focalcal.stats import PairedInterval, bootstrap_ci

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.predictions import Predictions

MOST_ROWS = 20_000  # that calibrators are compared on
_MOST_CLASSES = 50  # of calibrators with K^2 numbers
_QUADRATIC = ("matrix", "dirichlet")
_ROWS_PER_FOLD = 20
_NAMED = 5  # rows in a sentence
_ONE_THREAD = 1 << 17  # scores at most: on a busy machine threads wait for each other longer than they compute
# Maps of one probability, and so of a confidence whose other classes are unknown.
_OF_ONE_PROBABILITY = ("platt", "histogram", "isotonic", "beta")
# From the fewest numbers fitted to the most: of those that cannot be told apart the first is recommended.
_SIMPLEST_FIRST = ("temperature", "focal_temperature", "ensemble", "spline", "vector", "platt", "beta")


@dataclass(frozen=True, eq=False)
class Fix:
    """A calibrator, on rows it was not fitted on.

    change        of the NLL, calibrated minus raw, paired by row, with a 95 % interval; None where either is infinite
    brier_change  of the Brier score likewise, if the raw NLL is infinite and the calibrated one is not; else None
    """

    name: str
    nll: float
    brier: float
    ece: float
    change: PairedInterval | None
    brier_change: PairedInterval | None
    row_losses: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fixes:
    """Every calibrator that was tried, best first by NLL, then Brier score; `recommended` is None if none is worth it.

    rows        that they were compared on, a uniform sample if there are more
    impossible  of these, the ids or numbers of those whose label has probability 0: the raw NLL is infinite
    zeros       how many probabilities of 0 there are, and what calibrators take them for; "" if there are none
    left_out    names of calibrators that were not tried, and why
    calibrator  the recommended one, fitted on all of these rows
    """

    tried: tuple[Fix, ...]
    recommended: str | None
    rows: int
    raw_nll: float
    raw_brier: float
    impossible: tuple[Any, ...]
    zeros: str
    left_out: dict[str, str]
    calibrator: Calibrator | None

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
        chosen = next(fix for fix in self.tried if fix.name == self.recommended)
        if chosen.change is None:
            assert chosen.brier_change is not None
            low, high = chosen.brier_change.low, chosen.brier_change.high
            return (
                f"Use {self.recommended}: {self._why_infinite}; on rows it was not fitted on the calibrated NLL is "
                f"{chosen.nll:.4f}, the Brier score goes from {self.raw_brier:.4f} to {chosen.brier:.4f} "
                f"(95 % interval of the change {low:+.4f} to {high:+.4f}) and the ECE to {100 * chosen.ece:.1f} %."
            )
        return (
            f"Use {self.recommended}: on rows it was not fitted on it lowers the NLL from {self.raw_nll:.4f} to "
            f"{chosen.nll:.4f} (95 % interval of the change {chosen.change.low:+.4f} to {chosen.change.high:+.4f}) and "
            f"the ECE to {100 * chosen.ece:.1f} %."
        )

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

    `trained_with` is (gamma, lam) of the focal or FCL loss that the network was trained with, for posterior recovery.
    """
    most = max(1000, MOST_ROWS // predictions.n_classes) if predictions.multilabel else MOST_ROWS  # every entry counts
    order = np.random.default_rng(seed).permutation(predictions.n)[:most]
    chosen = predictions[order]
    scores, labels, kind = chosen.scores.astype(np.float64), chosen.labels, chosen.kind
    if len(labels) < FOLDS * _ROWS_PER_FOLD or (labels == labels.flat[0]).all():
        return None
    candidates, left_out = _candidates(names, 2 if predictions.multilabel else scores.shape[1], trained_with)
    if top1:
        left_out |= {name: "it needs all classes" for name in CALIBRATORS if name not in _OF_ONE_PROBABILITY}
        candidates = {name: candidates[name] for name in candidates if name in _OF_ONE_PROBABILITY}
    losses = rows_of(chosen, top1=top1).losses
    raw = {name: losses[name].reshape(len(labels), -1).mean(1) for name in ("nll", "brier")}
    if predictions.multilabel:
        shared = {name: MultilabelCalibration(calibrator, shared=True) for name, calibrator in candidates.items()}
        candidates = cast("dict[str, Calibrator]", shared)  # fitted and asked in the same way
    fixes = []
    with limit_threads(1 if scores.size <= _ONE_THREAD else threads()):
        for name, calibrator in candidates.items():
            try:
                fixes.append(_cross_fit(name, calibrator, scores, labels, kind, raw, top1))
            except ValueError as error:  # a fold without rows of some class, say
                left_out[name] = str(error).split(";")[0]
    fixes.sort(key=lambda fix: (fix.nll, fix.brier))
    recommended = _recommend(fixes)
    fitted = None
    if recommended is not None and (predictions.classes is None or predictions.multilabel):
        fitted = fitted_quietly(candidates[recommended], scores, labels, kind)
    elif recommended is not None:
        names_of = np.array(predictions.classes, dtype=object)
        fitted = fitted_quietly(candidates[recommended], scores, names_of[labels], kind, classes=predictions.classes)
    return Fixes(
        tried=tuple(fixes),
        recommended=recommended,
        rows=len(labels),
        raw_nll=float(raw["nll"].mean()),
        raw_brier=float(raw["brier"].mean()),
        impossible=_impossible(predictions, order[np.isinf(raw["nll"])]),
        zeros=_zeros(chosen),
        left_out=left_out,
        calibrator=fitted,
    )


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


def _candidates(
    names: Sequence[str] | None, classes: int, trained_with: tuple[float, float] | None
) -> tuple[dict[str, Calibrator], dict[str, str]]:
    left_out: dict[str, str] = {}
    chosen: dict[str, Calibrator] = {}
    for name in names or CALIBRATORS:
        if name == "recovery":
            if trained_with is None:
                left_out[name] = "it needs the gamma and lam that the network was trained with"
                continue
            chosen[name] = PosteriorRecovery(*trained_with)
        elif names is None and name in _QUADRATIC and classes > _MOST_CLASSES:
            left_out[name] = f"it fits {classes}^2 numbers; name it to try it"
        else:
            chosen[name] = CALIBRATORS[name]()
    return chosen, left_out


def _cross_fit(
    name: str,
    calibrator: Calibrator,
    scores: NDArray[np.float64],
    labels: NDArray[Any],
    kind: str,
    raw: dict[str, NDArray[np.float64]],
    top1: bool,
) -> Fix:
    probs = cross_fitted_probs(calibrator, scores, labels, kind)
    losses, brier = _row_losses(probs, labels, top1=top1)
    change = brier_change = None
    if np.isfinite(losses).all() and np.isfinite(raw["nll"]).all():
        change = bootstrap_ci(losses - raw["nll"], resamples=1000)
    elif np.isfinite(losses).all():
        brier_change = bootstrap_ci(brier - raw["brier"], resamples=1000)
    if top1:
        error = ece(confidence=probs[:, 1], correct=labels)
    else:
        error = float(np.mean((ece if labels.ndim == 1 else multilabel_ece)(probs, labels)))
    return Fix(name, float(losses.mean()), float(brier.mean()), error, change, brier_change, losses)


def _row_losses(
    probs: NDArray[np.float64], labels: NDArray[Any], *, top1: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """-log p of what happened and the Brier score, (n,); the means over several labels per row."""
    if labels.ndim == 1:
        return row_nll(probs, labels), binary_brier(probs[:, 1], labels == 1) if top1 else row_brier(probs, labels)
    return binary_nll(probs, labels).mean(1), binary_brier(probs, labels).mean(1)


def _recommend(fixes: Sequence[Fix]) -> str | None:
    """The simplest calibrator that cannot be told from the best, if the best lowers the NLL beyond doubt.

    From infinite to finite is lower, unless the Brier score, which knows no infinity, is higher beyond doubt.
    """
    helpful = [
        fix
        for fix in fixes
        if (fix.change is not None and fix.change.high < 0)
        or (fix.brier_change is not None and fix.brier_change.low <= 0)
    ]
    if not helpful:
        return None
    best = helpful[0]
    alike = {
        fix.name
        for fix in helpful
        if fix is best or bootstrap_ci(fix.row_losses - best.row_losses, resamples=1000).low <= 0
    }
    return next((name for name in _SIMPLEST_FIRST if name in alike), best.name)
