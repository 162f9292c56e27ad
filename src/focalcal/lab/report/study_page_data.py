"""A study's numbers as the scripts of its page read them, by setting and objective; and what each number means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from focalcal.lab.evidence.comparisons import Family
from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.labels import origins
from focalcal.lab.evidence.metric_names import HIGHER_IS_BETTER, PERCENT, SINGLE_LABEL, title, titled
from focalcal.lab.evidence.surface import Surface
from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.surface import surface_note, surface_title
from focalcal.lab.report.study_page_cells import CURVES, SPLITS, cell_data
from focalcal.lab.report.study_tables.flags import flag_marks
from focalcal.stats import Comparison

METRICS = {
    "error": "Error: the share of test rows whose most probable class is not the label.",
    "ece": "Expected calibration error: the gap between confidence and accuracy in 15 bins of equal width, averaged "
    "over the rows. Never 0 on finite data: chance alone opens gaps.",
    "adaptive_ece": "Adaptive ECE: as ECE, in 15 bins that hold equally many rows.",
    "classwise_ece": "Classwise ECE: as ECE, of the probability of each class, averaged over the classes.",
    "smooth_ece": "Smooth ECE: the gap between confidence and accuracy, smoothed by a kernel instead of binned.",
    "mce": "Maximum calibration error: the largest gap of a bin, however few its rows.",
    "nll": "Negative log-likelihood: the mean of -log of the label's probability, in nats. A proper score.",
    "brier": "Brier score: the mean squared distance of the probabilities from the one-hot label. A proper score.",
    "auroc": "Area under the ROC curve: how often a positive scores above a negative. More is better.",
    "confidence_gap": "Mean confidence minus accuracy: above 0 is overconfident, below 0 underconfident.",
    "posterior_distance": "Mean total variation between the probabilities and the true posterior, which is known here.",
    "confidence_distance": "Mean distance of the confidence from the true probability of the predicted class.",
    "posterior_ece": "Calibration error against the true posterior instead of labels.",
}
TERMS = {
    "seed": "One training run: weights, order and augmentation drawn anew, the examples the same.",
    "interval": "95 % bootstrap interval over test rows, its ends averaged over the seeds: how far the number would "
    "move with other test examples. It is no test of a difference.",
    "chance": "What a perfectly calibrated model with these confidences shows by chance on as many rows, on average.",
    "pooled": "The rows of all seeds are put into the same bins. Gaps of opposite sign then cancel, so that the "
    "pooled ECE is lower than the mean of the seeds' ECE.",
    "temperature": "T divides the logits; it minimises the NLL of rows that are not measured. T > 1: overconfident.",
    "holm": "p after Holm's correction over the metrics of one setting and baseline.",
    "d_z": "Cohen's d_z: the mean difference over the standard deviation of the differences.",
}
MEANINGS = {  # by what stands above a column
    **{heading: text for name, text in METRICS.items() for heading in (title(name), titled(name))},
    **{f"{titled(name)} {when}": text for name, text in METRICS.items() for when in ("before", "after")},
    "T": TERMS["temperature"],
    "d_z": TERMS["d_z"],
    "p (Holm)": TERMS["holm"],
    "seeds": TERMS["seed"],
}
MOST_EPOCH_VALUES = 200_000  # about 2 MB
MOST_BIN_VALUES = 150_000  # of diagrams epoch by epoch, about 1 MB
MOST_CLASS_VALUES = 100_000  # of diagrams of single classes
_CHOICES = (*SINGLE_LABEL, "mce", "auroc", "posterior_distance")  # of the metric switch, where they were measured


def page_data(evidence: Evidence, families: Sequence[Family] = (), surfaces: Sequence[Surface] = ()) -> dict[str, Any]:
    """Everything that is drawn. A cell names its setting and objective by their place in the lists.

    "every_epochs" is k where one epoch in k is given, the first and the last among them, so that the page stays small;
    "every_bins" likewise for the diagrams of epochs.
    """
    cells = evidence.cells
    every = _every(len(SPLITS) * len(CURVES) * sum(len(run.epochs) for run in evidence.runs), MOST_EPOCH_VALUES)
    every_bins = _every(45 * sum(max(len(run.epochs) for run in runs) for runs in cells.values()), MOST_BIN_VALUES)
    details = [runs[0].details for runs in cells.values()]
    classes = 45 * sum(len(each.classes) for each in details if each is not None) <= MOST_CLASS_VALUES
    settings, objectives = list(evidence.settings), list(evidence.objectives)
    (shared, own), marks = origins(evidence.runs), flag_marks(evidence)
    return {
        "title": evidence.title,
        "every_epochs": every,
        "settings": settings,
        "fitted_on": evidence.fitted_on,
        "objectives": _objectives(evidence),
        "candidate": objectives.index(families[0].candidate) if families else None,
        "metrics": _metrics(evidence),
        "terms": TERMS,
        "cells": [
            {
                "setting": settings.index(setting),
                "objective": objectives.index(objective),
                "mark": marks.get((setting, objective)),
                **cell_data(runs, every, every_bins, classes=classes),
            }
            for (setting, objective), runs in cells.items()
        ],
        "comparisons": [
            _comparison(evidence, family, comparison) for family in families for comparison in family.comparisons
        ],
        "surfaces": [_surface(grid) for grid in surfaces],
        "facts": {"shared": shared, "own": own},
    }


def _objectives(evidence: Evidence) -> list[dict[str, Any]]:
    drawn = evidence.looks
    return [
        {
            "key": objective,
            "name": short_name(objective),
            "full": evidence.full_name(objective),
            "place": drawn[objective].place,
            "marker": drawn[objective].marker,
            "dash": drawn[objective].dash,
        }
        for objective in evidence.objectives
    ]


def _metrics(evidence: Evidence) -> list[dict[str, Any]]:
    """What the switch offers, of the test split."""
    measured = {name for run in evidence.runs for name in run.metrics.get("test", {})}
    return [
        {
            "key": name,
            "title": title(name),
            "percent": name in PERCENT,
            "higher": name in HIGHER_IS_BETTER,
            "meaning": METRICS.get(name, ""),
        }
        for name in _CHOICES
        if name in measured
    ]


def _comparison(evidence: Evidence, family: Family, comparison: Comparison) -> dict[str, Any]:
    values = evidence.values(family.setting, comparison.metric)
    ours, theirs = values[family.candidate], values[family.baseline]
    return {
        "setting": evidence.settings.index(family.setting),
        "candidate": evidence.objectives.index(family.candidate),
        "baseline": evidence.objectives.index(family.baseline),
        "metric": comparison.metric,
        "seeds": comparison.seeds,
        "differences": [ours[seed] - theirs[seed] for seed in comparison.seeds],
        "mean": comparison.test.mean,
        "low": comparison.interval.low,
        "high": comparison.interval.high,
        "effect": comparison.effect,
        "p": comparison.test.p_value,
        "p_holm": comparison.p_adjusted,
        "verdict": comparison.verdict if comparison.reachable else "cannot show",
    }


def _surface(grid: Surface) -> dict[str, Any]:
    return {
        "setting": grid.setting,
        "metric": grid.metric,
        "label": title(grid.metric),
        "unit": grid.unit,
        "title": surface_title(grid),
        "note": surface_note(grid, missing="Grey"),
        "gammas": grid.gammas,
        "lams": grid.lams,
        "values": grid.values,
        "seeds": grid.seeds,
        "minimum": grid.minimum,
        "operating_point": grid.operating_point,
        "curve": grid.curve_places(),
    }


def _every(values: int, most: int) -> int:
    """Every how many epochs can be given without more values than a page should hold."""
    return max(1, math.ceil(values / most))
