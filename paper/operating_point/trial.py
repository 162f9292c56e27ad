"""What became of the cells of an operating-point study, and how often the rule held."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar

from focalcal.core.numerics import log_softmax
from focalcal.lab.studies.tuning.judgement import scores_as_logits
from focalcal.metrics import nll
from focalcal.posthoc import CalibrationWarning, TemperatureScaling

if TYPE_CHECKING:
    from focalcal.lab.store import Run
    from focalcal.predictions import Predictions

TOLERANCE = 0.1  # of |log T|, within which a network needs no temperature


class Role(StrEnum):
    """Why a cell is in the study."""

    BASELINE = "cross-entropy"
    PREDICTED = "predicted"
    REFINED = "refined"
    HALF = "half of lam"
    TWICE = "twice lam"
    PAPER_SCALE = "paper's scale"
    DEFAULT = "FCL(3, 1)"
    CONSTANT = "FCL(3, 3), matched"


@dataclass(frozen=True)
class Trial:
    """A cell, what was expected of it and what its test rows say.

    baseline      the key of the cross-entropy run whose validation rows made the prediction
    helps         whether the operating point says that FCL is worth training
    matched       whether a lam of this gamma cancels the overfitting; False for controls
    temperature   what the test logits need: by the posterior where it is known, else by the labels; NaN at a bound
    scaled_nll    with the temperature of the validation rows
    validation_temperature  that temperature; NaN at a bound and in records that are older than it
    """

    baseline: str
    seed: int
    role: Role
    gamma: float
    lam: float
    scale: str
    helps: bool
    matched: bool
    key: str
    temperature: float
    ece: float
    nll: float
    scaled_nll: float
    error: float
    validation_temperature: float

    @property
    def miss(self) -> float:
        """|log T|: how far the network is from needing no temperature."""
        return abs(math.log(self.temperature))

    @property
    def scaled_miss(self) -> float:
        """What is left of it once the logits are divided by the temperature of the validation rows."""
        return abs(math.log(self.temperature / self.validation_temperature))

    def record(self) -> dict[str, Any]:
        """Every field, `miss` and `scaled_miss`, as a row of a table."""
        return {**asdict(self), "role": str(self.role), "miss": self.miss, "scaled_miss": self.scaled_miss}


@dataclass(frozen=True)
class TrialVerdict:
    """How often the rule held.

    helped   predicted cells of baselines that FCL is said to help, where a lam matches
    within   those of them with |log T| <= `tolerance`
    kept     baselines that are said to be better left to cross-entropy
    right    those of them that are no farther from T = 1 than FCL(3, 1) is
    """

    helped: int
    within: int
    kept: int
    right: int
    tolerance: float


def verdict(trials: Iterable[Trial], *, tolerance: float = TOLERANCE) -> TrialVerdict:
    """Counts over all trials; a baseline's own numbers are those of its cross-entropy trial."""
    rows = list(trials)
    helped = [trial for trial in rows if trial.role is Role.PREDICTED and trial.helps and trial.matched]
    kept = {trial.baseline: trial.miss for trial in rows if trial.role is Role.BASELINE and not trial.helps}
    defaults = [trial for trial in rows if trial.role is Role.DEFAULT and trial.baseline in kept]
    return TrialVerdict(
        helped=len(helped),
        within=sum(trial.miss <= tolerance for trial in helped),
        kept=len(defaults),
        right=sum(kept[trial.baseline] <= trial.miss for trial in defaults),
        tolerance=tolerance,
    )


def measured_trial(run: Run) -> dict[str, Any]:
    """The fields of a trial that its run knows."""
    test, held_out, metrics = run.predictions("test"), run.predictions("val"), run.metrics("test")
    scale = label_temperature(held_out)
    return {
        "temperature": _needed_temperature(test),
        "ece": metrics["ece"],
        "nll": metrics["nll"],
        "scaled_nll": nll(labels=test.labels, logits=scores_as_logits(test) / scale)
        if math.isfinite(scale)
        else math.nan,
        "error": metrics["error"],
        "validation_temperature": scale,
    }


def _needed_temperature(predictions: Predictions) -> float:
    """The best temperature for labels drawn from the posterior where it is known, else for the labels there are."""
    if predictions.posterior is None:
        return label_temperature(predictions)
    logits, eta = scores_as_logits(predictions), predictions.posterior.astype(np.float64)

    def loss(log_t: float) -> float:
        return -float((eta * log_softmax(logits / math.exp(log_t))).sum())

    return math.exp(minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded", options={"xatol": 1e-8}).x)


def label_temperature(predictions: Predictions) -> float:
    """The best temperature for the labels there are; NaN at a bound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        scaling = TemperatureScaling().fit(scores_as_logits(predictions), predictions.labels)
    return math.nan if scaling.at_bound_ else scaling.temperature_
