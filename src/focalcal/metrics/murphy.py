"""The Murphy decomposition: what of a Brier score recalibration could remove, and what it could not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from focalcal.core.binning import BinSums, per_bin
from focalcal.core.checks import one_of
from focalcal.core.display import Displayed
from focalcal.metrics.proper import binary_brier
from focalcal.metrics.scan import scan_inputs
from focalcal.predictions.inputs import InputOptions, read_inputs


@dataclass(frozen=True, repr=False)
class Murphy(Displayed):
    """brier = calibration + refinement + within_bins, and refinement = uncertainty - resolution.

    calibration is what a map of the score alone could gain; refinement is what it could not. within_bins is what
    binning hides: the spread of the scores inside a bin, less twice its covariance with the outcomes. It vanishes
    when all scores in a bin are equal.

    Attributes:
        brier: the score.
        calibration: what a map of the score alone could gain.
        refinement: what it could not.
        resolution: what the bins tell apart.
        uncertainty: the score of the base rate.
        within_bins: what binning hides.

    >>> murphy([[0.75, 0.25]] * 4, [0, 0, 1, 1])
    Murphy
      brier        0.3125
      calibration  0.0625
      refinement   0.2500
      resolution   0.0000
      uncertainty  0.2500
      within bins  0.0000
    """

    brier: float
    calibration: float
    refinement: float
    resolution: float
    uncertainty: float
    within_bins: float


def murphy(
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    n_bins: int = 15,
    of: str = "confidence",
    ignore_index: int | None = None,
    **inputs: Unpack[InputOptions],
) -> Murphy:
    """The Murphy decomposition of the Brier score over bins.

    of = "confidence": the score is the confidence and the outcome whether the prediction is right, the score whose
    calibration the paper bounds. of = "classes": every class's probability against whether it is the label, summed over
    the classes, so that `brier` is the multiclass Brier score.

    Murphy (1973); the within-bin terms from Stephenson, Coelho & Jolliffe (2008).

    Args:
        probs: (N, K), or in any other form of `focalcal.predictions.read_inputs`, `Predictions` among them.
        labels: (N,), class indices or names.
        logits: in place of probs.
        n_bins: how many bins.
        of: "confidence" or "classes".
        ignore_index: rows with this label are left out.
        inputs: those of `focalcal.predictions.read_inputs`.

    Returns:
        The score and its parts.

    >>> parts = murphy([[0.75, 0.25]] * 4, [0, 0, 1, 1])
    >>> parts.brier, parts.calibration, parts.refinement
    (0.3125, 0.0625, 0.25)
    """
    one_of("of", of, ("confidence", "classes"))
    classwise = of == "classes"
    given = read_inputs(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
    if classwise and given.kind == "outcomes":
        raise ValueError('of="classes" needs the probabilities of all classes, got confidence and correct; pass probs')
    asked = {"brier": classwise, "classes": classwise, "rows": not classwise}
    sums = scan_inputs(given, n_bins=n_bins, ignore_index=ignore_index, **asked)
    if classwise:
        assert sums.brier_sum is not None
        assert sums.classes is not None
        return murphy_of(sums.classes, sums.brier_sum / sums.total)
    brier = binary_brier(*sums.outcomes)
    return murphy_of(sums.bins, float(np.average(brier, weights=sums.weights)))


def murphy_of(bins: BinSums, brier: float) -> Murphy:
    """From the sums over (..., bins), added up over the leading dimensions, and the score itself."""
    count, _, correct = bins.parts
    weight = count / count.sum(-1, keepdims=True)
    accuracy = per_bin(correct, count)
    base = correct.sum(-1, keepdims=True) / count.sum(-1, keepdims=True)
    calibration = float((weight * bins.gap**2).sum())
    resolution = float((weight * (accuracy - base) ** 2).sum())
    uncertainty = float((base * (1 - base)).sum())
    refinement = float((weight * accuracy * (1 - accuracy)).sum())
    return Murphy(brier, calibration, refinement, resolution, uncertainty, brier - calibration - refinement)
