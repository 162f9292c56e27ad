"""What validation rows say of a network, as it is and with a temperature that was fitted on other rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from focalcal.core.checks import holds_probabilities
from focalcal.core.numerics import log_softmax
from focalcal.metrics.proper import of_label, row_brier
from focalcal.posthoc.early_stopping import held_out_inverse_temperatures
from focalcal.posthoc.operating_point import LEAST_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from focalcal.predictions import Predictions

Criterion = Literal["nll", "brier"]
CRITERIA: tuple[Criterion, ...] = ("nll", "brier")


@dataclass(frozen=True, eq=False)
class Judgement:
    """Losses (N,) of each row, so that two networks can be compared row by row.

    Args:
        losses: by criterion and by whether probabilities are scaled by a temperature.
        wrong: whether the predicted class is not the label; a temperature does not change it.
        temperature: the best one of all rows, NaN where there is none; or the one that was given.

    >>> from focalcal import Predictions
    >>> rows = Predictions(logits=[[2.0, 0.0], [0.0, 2.0]], labels=[0, 0], split="val")
    >>> judge(rows, temperature=1.0).error
    0.5
    """

    losses: dict[tuple[str, bool], NDArray[np.float64]] = field(repr=False)
    wrong: NDArray[np.bool_] = field(repr=False)
    temperature: float

    def mean(self, criterion: str, *, scaled: bool) -> float:
        """The mean loss; `criterion` may be "error"."""
        return self.error if criterion == "error" else float(self.losses[criterion, scaled].mean())

    def best(self, criterion: str) -> float:
        """The better mean of raw and scaled: a user may do either."""
        return min(self.mean(criterion, scaled=scaled) for scaled in (False, True))

    @cached_property
    def error(self) -> float:
        """The share of rows whose predicted class is wrong."""
        return float(self.wrong.mean())


def check_held_out(held_out: Predictions) -> None:
    """Refuse validation rows that no candidate can be judged by."""
    labels = held_out.labels
    if held_out.kind == "logits" and holds_probabilities(held_out.scores):
        raise ValueError(
            "the network must return logits, got probabilities for every validation row; remove its softmax"
        )
    if len(labels) < LEAST_ROWS:
        raise ValueError(
            f"recipe must hold at least {LEAST_ROWS} validation rows out to judge by, got {len(labels)}; raise "
            "data_options.validation, e.g. to 2000"
        )
    if (labels == labels[0]).all():
        raise ValueError(
            f"validation rows must hold at least two classes, got class {int(labels[0])} only in {len(labels)} rows; "
            "shuffle the rows before some are held out"
        )


def judge(held_out: Predictions, *, temperature: float | None = None) -> Judgement:
    """Losses of held-out rows.

    Scaled losses are cross-fitted: the rows are permuted once, by the same seed for every network of the same data,
    and each of five folds is scaled by the temperature of the other four. Where labels leave no best temperature
    (every one predicted, say) scaling changes nothing.

    Args:
        held_out: logits or probabilities (N, K), with labels.
        temperature: one fitted elsewhere: scaled losses are those at it.

    Returns:
        A `Judgement`, with the losses of each row.

    >>> from focalcal import Predictions
    >>> rows = Predictions(logits=[[2.0, 0.0], [0.0, 2.0]] * 10, labels=[0, 1, 0, 0] * 5, split="val")
    >>> round(judge(rows).mean("nll", scaled=False), 4)
    0.6269
    """
    logits = scores_as_logits(held_out)
    labels = held_out.labels
    if temperature is None:
        inverse, temperature = held_out_inverse_temperatures(logits, labels)
    else:
        inverse = np.full(len(labels), 1 / temperature)
    losses: dict[tuple[str, bool], NDArray[np.float64]] = {}
    for scaled, scores in ((False, logits), (True, logits * inverse[:, None])):
        log_p = log_softmax(scores)
        losses["nll", scaled] = -of_label(log_p, labels)
        losses["brier", scaled] = row_brier(np.exp(log_p), labels)
    return Judgement(losses, logits.argmax(1) != labels, temperature)


def scores_as_logits(predictions: Predictions) -> NDArray[np.float64]:
    """In float64: the logits, or the logarithm of probabilities, of which 0 counts as 1e-300."""
    if predictions.kind == "logits":
        return predictions.logits.astype(np.float64)
    return np.log(np.maximum(predictions.scores.astype(np.float64), 1e-300))
