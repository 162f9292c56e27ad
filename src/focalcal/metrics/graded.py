"""Scores of confidences whose answers are graded between wrong and right."""

from __future__ import annotations

from typing import Any

import numpy as np

from focalcal.core.arrays import as_array
from focalcal.core.binning import BinSums, even_bin_index
from focalcal.core.checks import between_zero_and_one, first_row, in_unit_interval
from focalcal.metrics.binned_errors import ece_of
from focalcal.metrics.ranking import generalised_risk
from focalcal.metrics.scan import check_bins


def graded_scores(confidence: Any, grade: Any, *, clip: float | None = 0.005, n_bins: int = 15) -> dict[str, float]:
    """Scores of confidences whose answers have grades.

    An answer of grade g counts g as right and 1 - g as wrong; of answers that are right or wrong these are the metrics
    of `confidence` and `correct`.

        confidence_gap, ece  mean confidence minus mean grade, in all and over bins of confidence
        brier                mean of g (c - 1)^2 + (1 - g) c^2, at best the mean of g (1 - g)
        nll                  mean of -g log c - (1 - g) log(1 - c), with c moved into [clip, 1 - clip] unless that is
                             None: a model that says 100 % and is wrong has an infinite one
        auroc                the chance that a right answer is more confident than a wrong one; 1/2 without one of them
        augrc                area under the generalised risk-coverage curve

    Args:
        confidence: (n,), in [0, 1].
        grade: (n,), in [0, 1], of which 1 is right.
        clip: how far c is kept from 0 and 1 in the NLL.
        n_bins: how many bins.

    Returns:
        The scores by name.

    >>> scores = graded_scores([0.9, 0.6, 0.8], [1.0, 0.0, 0.5])
    >>> round(scores["brier"], 4), round(scores["confidence_gap"], 4)
    (0.2367, 0.2667)
    """
    c, g = (
        as_array(name, values).astype(np.float64) for name, values in (("confidence", confidence), ("grade", grade))
    )
    if c.ndim != 1 or c.shape != g.shape or not len(c):
        raise ValueError(f"confidence and grade must be (n,), one value per row each, got {c.shape} and {g.shape}")
    for name, values in (("confidence", c), ("grade", g)):
        if (wrong := ~in_unit_interval(values)).any():
            at = first_row(wrong)
            raise ValueError(f"{name} must be from 0 to 1, got {values[at]:g} in row {at}; divide percentages by 100")
    c = c.clip(0, 1)
    n_bins = check_bins(n_bins)
    if clip is not None:
        between_zero_and_one("clip", clip, remedy="0.005 takes 100 % for 99.5 %")
    sure = c if clip is None else c.clip(clip, 1 - clip)
    with np.errstate(divide="ignore"):
        losses = np.where(g > 0, -g * np.log(sure), 0) + np.where(g < 1, -(1 - g) * np.log1p(-sure), 0)
    auroc, bins = _auroc(c, g), even_bin_index(c, n_bins)
    return {
        "confidence_gap": float(c.mean() - g.mean()),
        "ece": float(ece_of(BinSums(*(np.bincount(bins, each, n_bins) for each in (np.ones_like(c), c, g))))),
        "brier": float((g * np.square(1 - c) + (1 - g) * np.square(c)).mean()),
        "nll": float(losses.mean()),
        "auroc": auroc,
        "augrc": float(generalised_risk(auroc, g.mean())),
    }


def _auroc(confidence: Any, grade: Any) -> float:
    """Of right answers weighed by their grades and wrong ones by what they lack."""
    right, wrong = grade.sum(), (1 - grade).sum()
    if not (right and wrong):
        return 0.5
    values, where = np.unique(confidence, return_inverse=True)
    of_right, of_wrong = (np.bincount(where, weights, len(values)) for weights in (grade, 1 - grade))
    below = np.cumsum(of_wrong) - of_wrong
    return float((of_right * (below + of_wrong / 2)).sum() / (right * wrong))
