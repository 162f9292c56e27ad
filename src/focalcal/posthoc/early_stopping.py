"""Which epoch to keep: the one whose validation NLL is lowest after its best temperature, as it is, or by its error.

Calibration and refinement are at their best at different epochs (Berta et al., 2025, "Rethinking early stopping:
refine, then calibrate", arXiv 2501.19195). A temperature is cheap to fit afterwards, and worse features are not made
better by it: so stop where the loss that no temperature removes is lowest.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.arrays import scores_and_labels
from focalcal.core.checks import finite, one_of, whole_number
from focalcal.core.numerics import log_softmax
from focalcal.posthoc.calibrator_inputs import refuse_probabilities
from focalcal.posthoc.cross_fit import cross_fit
from focalcal.posthoc.temperature import TemperatureScaling, TemperatureStatus, optimal_inverse_temperature

if TYPE_CHECKING:
    from jaxtyping import Bool

    from focalcal.core.arrays import Labels, PerRow, Scores

RULES = ("refined_nll", "nll", "error")
# One fitted number flatters the NLL of its own rows by about 1 / (2 N) nats, which is 1e-4 here: far below what tells
# two epochs apart, so that five more fits are not worth their time.
CROSS_FITTED_BELOW = 5_000
_ROUNDING = 1e-8  # nats: logits times a constant have the same refined NLL, but for this


@dataclass(frozen=True)
class EpochScores:
    """What validation rows say of a network after an epoch.

    Attributes:
        nll: mean negative log-likelihood as it is.
        error: share of rows whose largest logit is not the label's.
        refined_nll: mean NLL after the temperature; below 5,000 rows each of five folds is scaled by that of the
            others.
        temperature: the best one of all rows; NaN where there is none, as where every row is predicted: then 1 is used.

    >>> import numpy as np
    >>> epoch_scores(np.array([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0], [0.0, 2.0]]), np.array([0, 1, 0, 0])).error
    0.25
    """

    nll: float
    error: float
    refined_nll: float
    temperature: float


def epoch_scores(logits: Any, labels: Any) -> EpochScores:
    """The scores of a network on rows that the network was not trained on.

    Args:
        logits: (N, K).
        labels: (N,), class indices.

    Returns:
        NLL and error, and the NLL that a temperature leaves.

    >>> import numpy as np
    >>> logits = 4 * np.eye(2)[[0, 0, 0, 0, 1, 1, 1, 1]]  # sure, and wrong in one row of four
    >>> scores = epoch_scores(logits, np.array([0, 0, 0, 1, 1, 1, 1, 0]))
    >>> round(scores.nll, 3), scores.error, round(scores.temperature, 3)
    (1.018, 0.25, 3.641)
    """
    return _scores_of(*_read(logits, labels))


def _read(logits: Any, labels: Any) -> tuple[Scores, Labels]:
    logits, labels = scores_and_labels("logits", logits, labels)
    if logits.ndim != 2:
        raise ValueError(f"logits must be (N, K), got shape {logits.shape}; one row per example with one label")
    finite("logits", logits)
    return logits.astype(np.float64), labels


def _scores_of(logits: Scores, labels: Labels) -> EpochScores:
    inverse, temperature = held_out_inverse_temperatures(logits, labels, cross_fitted=len(labels) < CROSS_FITTED_BELOW)
    rows = np.arange(len(labels))
    nll, refined = (-float(log_softmax(scores)[rows, labels].mean()) for scores in (logits, logits * inverse[:, None]))
    return EpochScores(nll, float((logits.argmax(1) != labels).mean()), refined, temperature)


def held_out_inverse_temperatures(logits: Scores, labels: Labels, *, cross_fitted: bool = True) -> tuple[PerRow, float]:
    """1 / T for every row, of five folds that of the other four, and the best T of all rows.

    The rows are permuted once, by the same seed for every network of the same data. Where labels leave no best
    temperature, 1 stands for it in the rows and NaN is returned.
    """
    best = optimal_inverse_temperature(logits, labels)
    known = best.status is TemperatureStatus.CONVERGED
    inverse = np.full(len(labels), best.inverse_temperature if known else 1.0)
    if cross_fitted:
        for fold, of_others in cross_fit(len(labels), partial(_of_rows, logits, labels), seed=0):
            inverse[fold] = of_others
    return inverse, 1 / best.inverse_temperature if known else math.nan


def _of_rows(logits: Scores, labels: Labels, rows: Bool[np.ndarray, " n"]) -> float:
    if not rows.any():  # of a single row
        return 1.0
    best = optimal_inverse_temperature(logits[rows], labels[rows])
    return best.inverse_temperature if best.status is TemperatureStatus.CONVERGED else 1.0


def is_better(scores: EpochScores, best: EpochScores, by: str) -> bool:
    """Whether an epoch is to be kept in the place of an earlier one."""
    return bool(getattr(scores, by) < getattr(best, by) - _ROUNDING)


class EarlyStopping:
    """Keeps the weights of the best epoch, and the temperature that goes with them.

        stopping = EarlyStopping(by="refined_nll", patience=10)
        for epoch in range(100):
            train(network)
            stopping.update(val_logits, val_labels, network)
            if stopping.finished:
                break
        stopping.restore(network)
        probs = stopping.calibrator.predict_proba(test_logits)

    Attributes: `history`, the `EpochScores` of every epoch; `best_epoch`, from 1, None before the first; `best`, its
    scores; `calibrator`, a `TemperatureScaling` with its temperature (1 where the rows leave no best one).

    Give rows that are used for nothing else. The calibrator is fitted on them too, which costs nothing: it is one
    number. For the Trainer of transformers and for Lightning give the object to the calibration callback
    (docs/guide/frameworks.md); `keep` in a recipe of the laboratory does the same.

    Args:
        by: what is lowest at the best epoch: "refined_nll", the validation NLL after its best temperature (below 5,000
            rows cross-fitted); "nll", as it is; "error". Of equal epochs the first is kept.
        patience: how many epochs without a new best one are waited for; None: the training is never ended.

    >>> import numpy as np
    >>> stopping, labels = EarlyStopping(patience=1), np.array([0, 0, 0, 1, 1, 1, 1, 0])
    >>> logits = 2 * np.eye(2)[[0, 0, 0, 0, 1, 1, 1, 1]]
    >>> [stopping.update(scale * logits, labels) for scale in (1.0, 2.0, 4.0)]  # the same order, ever surer
    [True, False, False]
    >>> stopping.best_epoch, stopping.finished
    (1, True)
    """

    def __init__(self, by: str = "refined_nll", *, patience: int | None = None) -> None:
        one_of("by", by, RULES)
        self.by = by
        if patience is not None:
            patience = whole_number("patience", patience, least=1, remedy="10 is usual, None never ends")
        self.patience = patience
        self.history: list[EpochScores] = []
        self.best_epoch: int | None = None
        self._weights: dict[str, Any] | None = None
        self._calibrator: TemperatureScaling | None = None

    def update(self, logits: Any, labels: Any, model: Any = None) -> bool:
        """Judge the next epoch by validation logits (N, K) and class indices (N,); whether it is the best so far.

        The state of `model`, of which `state_dict` and `load_state_dict` are called, is copied if it is.
        """
        logits, labels = _read(logits, labels)
        refuse_probabilities(logits)
        scores = _scores_of(logits, labels)
        self.history.append(scores)
        if self.best_epoch is not None and not is_better(scores, self.best, self.by):
            return False
        self.best_epoch = len(self.history)
        self._weights = None if model is None else copy.deepcopy(model.state_dict())
        temperature = 1.0 if math.isnan(scores.temperature) else scores.temperature
        self._calibrator = TemperatureScaling(temperature=temperature).fit(logits, labels)
        return True

    @property
    def best(self) -> EpochScores:
        """The scores of the best epoch."""
        return self.history[self._reached() - 1]

    @property
    def finished(self) -> bool:
        """Whether `patience` epochs have passed since the best one."""
        waited = len(self.history) - (self.best_epoch or 0)
        return self.patience is not None and waited >= self.patience

    @property
    def calibrator(self) -> TemperatureScaling:
        """Of the best epoch."""
        self._reached()
        assert self._calibrator is not None
        return self._calibrator

    def restore(self, model: Any) -> None:
        """Load the weights of the best epoch into `model`."""
        if self._reached() and self._weights is None:
            raise ValueError("update must be given the model whose weights are to be kept, got None; pass it each time")
        model.load_state_dict(self._weights)

    def _reached(self) -> int:
        if self.best_epoch is None:
            raise ValueError("update must be called first, got no epoch; call it after each with the validation rows")
        return self.best_epoch
