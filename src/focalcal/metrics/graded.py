"""Scores of confidences whose answers are graded between wrong and right."""

from __future__ import annotations

from typing import Any

import numpy as np

from focalcal.core.arrays import as_array
from focalcal.core.checks import between_zero_and_one, first_row, in_unit_interval
from focalcal.metrics.table import augrc, brier, confidence_auroc, confidence_gap, ece, nll


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
    if clip is not None:
        between_zero_and_one("clip", clip, remedy="0.005 takes 100 % for 99.5 %")
    sure = c if clip is None else c.clip(clip, 1 - clip)
    # Each answer is right with its grade as weight, and wrong with what it lacks.
    correct, weights = np.repeat([True, False], len(c)), np.append(g, 1 - g)
    rows: dict[str, Any] = {"correct": correct, "sample_weight": weights}
    twice = np.tile(c, 2)
    return {
        "confidence_gap": confidence_gap(confidence=twice, **rows),
        "ece": ece(confidence=twice, n_bins=n_bins, **rows),
        "brier": brier(confidence=twice, **rows),
        "nll": nll(confidence=np.tile(sure, 2), **rows),
        "auroc": confidence_auroc(confidence=twice, **rows),
        "augrc": augrc(confidence=twice, **rows),
    }
