"""Temperature scaling of one stored run, before and after on identical examples."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal, get_args

from focalcal.core.checks import one_of
from focalcal.metrics.reliability import Reliability, reliability
from focalcal.posthoc.calibrator import CalibrationWarning
from focalcal.posthoc.split_half import REPORTED, split_half
from focalcal.posthoc.temperature import TemperatureScaling, at_bound
from focalcal.predictions import Predictions

FittedOn = Literal["halves", "validation"]
NEAR_ONE = (0.9, 1.1)


@dataclass(frozen=True, eq=False)
class Scaled:
    """`before` and `after` are metrics of the same rows, none of which the temperature was fitted on.

    fitted_on "halves": T from one half of the test rows, metrics of the other half, so not comparable with those of the
    whole test set. "validation": T from the validation rows, metrics of all test rows.
    """

    temperature: float
    fitted_on: FittedOn
    before: dict[str, float]
    after: dict[str, float]
    reliability_before: Reliability
    reliability_after: Reliability

    @property
    def at_bound(self) -> bool:
        """Whether no T is best, as when every label was predicted right, and a bound was taken: it enters no mean."""
        return at_bound(self.temperature)


@dataclass(frozen=True)
class EvidenceNote:
    """What a run lacks or warns of, in a sentence. Of an "unreadable" file an `EvidenceGap` tells, too."""

    kind: Literal["no predictions", "unreadable", "no temperature", "warned"]
    text: str


def scaled(
    test: Predictions, validation: Predictions | None, *, fitted_on: FittedOn, seed: int
) -> tuple[Scaled | None, list[EvidenceNote]]:
    """The scaling, or None, and notes: why there is none, or what was odd about it.

    With "halves" the rows are divided by `seed`, so that runs of one seed are measured on the same rows.
    """
    one_of("temperature", fitted_on, get_args(FittedOn))
    if test.multilabel:
        return _unscaled("the labels are several yes-or-no questions, not classes")
    if test.kind != "logits":
        return _unscaled("probabilities were stored without their logits")
    if fitted_on == "validation" and (validation is None or validation.kind != "logits"):
        return _unscaled("there are no logits of a validation split to fit it on")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        try:
            effect = _effect(test, None if fitted_on == "halves" else validation, seed)
        except ValueError as error:
            return _unscaled(str(error))
    warned = [warning for warning in caught if issubclass(warning.category, CalibrationWarning)]
    return effect, [EvidenceNote("warned", str(warning.message)) for warning in warned]


def _unscaled(why: str) -> tuple[None, list[EvidenceNote]]:
    return None, [EvidenceNote("no temperature", f"no temperature: {why}")]


def _effect(test: Predictions, validation: Predictions | None, seed: int) -> Scaled:
    """Fitted on the validation rows, or without them on half of the test rows."""
    if validation is None:
        split = split_half(test.logits, test.labels, TemperatureScaling(), seed=seed)
        scaling, rows, measured = split.calibrator, test[split.evaluation_rows], [split.before, split.after]
    else:
        scaling, rows, measured = TemperatureScaling().fit(validation.logits, validation.labels), test, []
    states = rows.probs, scaling.predict_proba(rows.logits)
    before, after = measured or [
        {name: float(metric(probs, rows.labels)) for name, metric in REPORTED.items()} for probs in states
    ]
    return Scaled(
        temperature=scaling.temperature_,
        fitted_on="halves" if validation is None else "validation",
        before=before,
        after=after,
        reliability_before=reliability(states[0], rows.labels),
        reliability_after=reliability(states[1], rows.labels),
    )
