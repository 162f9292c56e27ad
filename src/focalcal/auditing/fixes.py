"""What would fix it: every calibrator, fitted on some rows and judged on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from focalcal.auditing.rows import rows_of
from focalcal.posthoc import CALIBRATORS, Calibrator, MultilabelCalibration
from focalcal.posthoc.candidates import sensible_candidates
from focalcal.posthoc.choice import choose
from focalcal.posthoc.clipping import bound_of, zeros_message
from focalcal.posthoc.comparison import LEAST_ROWS, MOST_ROWS, Candidate, Rated
from focalcal.posthoc.cross_fit import fitted_quietly

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.predictions import Predictions

_NAMED = 5  # rows in a sentence


@dataclass(frozen=True, eq=False, repr=False)
class Fixes:
    """Every calibrator that was tried, best first by NLL, then Brier score; `recommended` is None if none is worth it.

    rows        that they were compared on, a uniform sample if there are more
    impossible  of these, the ids or numbers of those whose label has probability 0: the raw NLL is infinite
    zeros       how many probabilities of 0 there are, and what calibrators take them for; "" if there are none
    left_out    names of calibrators that were not tried, and why
    calibrator  the recommended one, fitted on all of these rows
    """

    tried: tuple[Candidate, ...]
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

    `trained_with` is (gamma, lam) of the focal or FCL loss that the network was trained with, for posterior recovery.
    """
    most = max(1000, MOST_ROWS // predictions.n_classes) if predictions.multilabel else MOST_ROWS  # every entry counts
    order = np.random.default_rng(seed).permutation(predictions.n)[:most]
    chosen = predictions[order]
    scores, labels, kind = chosen.scores.astype(np.float64), chosen.labels, chosen.kind
    if len(labels) < LEAST_ROWS or (labels == labels.flat[0]).all():
        return None
    classes = 2 if predictions.multilabel else scores.shape[1]
    candidates, left_out = sensible_candidates(names, labels.size, classes, trained_with=trained_with, top1=top1)
    losses = rows_of(chosen, top1=top1).losses
    raw = {name: losses[name].reshape(len(labels), -1).mean(1) for name in ("nll", "brier")}
    if predictions.multilabel:
        shared = {name: MultilabelCalibration(calibrator, shared=True) for name, calibrator in candidates.items()}
        candidates = cast("dict[str, Calibrator]", shared)  # fitted and asked in the same way
    choice = choose(Rated(scores, labels, kind, raw, top1=top1), candidates, left_out)
    recommended = choice.chosen if choice.shown else None
    fitted = None
    if recommended is not None:
        named = None if predictions.multilabel else predictions.classes
        target = labels if named is None else np.array(named, dtype=object)[labels]
        fitted = fitted_quietly(candidates[recommended], scores, target, kind, classes=named)
    return Fixes(
        tried=choice.tried,
        recommended=recommended,
        rows=choice.rows,
        raw_nll=choice.raw_nll,
        raw_brier=choice.raw_brier,
        impossible=_impossible(predictions, order[np.isinf(raw["nll"])]),
        zeros=_zeros(chosen),
        left_out=choice.left_out,
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
