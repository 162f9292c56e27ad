"""A study's numbers as the scripts of its page read them: its views, runs and names; and what each number means."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from focalcal.lab.evidence.comparisons import candidate_of
from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.evidence.labels import origins
from focalcal.lab.evidence.metric_names import HIGHER_IS_BETTER, PERCENT, axis_title, shown_metrics, title, titled
from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.lanes import VERDICTS
from focalcal.lab.report.figures.reliability_views import BINS, epoch_reliabilities
from focalcal.lab.report.figures.scaling import AGAINST, CALIBRATION
from focalcal.lab.report.figures.training import CURVES, SPLITS, thinned
from focalcal.lab.report.figures.view import View

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
MOST_BIN_VALUES = 100_000  # of diagrams epoch by epoch, less than 1 MB
MOST_CLASS_VALUES = 100_000  # of diagrams of single classes
_CLOUD = 250  # points of a known posterior


def page_data(evidence: Evidence, views: Iterable[View] = ()) -> dict[str, Any]:
    """Everything that is drawn, which is `views` with less of what is long.

    "every_epochs" is k where one epoch in k is given, the first and the last among them, so that the page stays small;
    the diagrams of epochs likewise.
    """
    cells = evidence.cells
    every = _every(len(SPLITS) * len(CURVES) * sum(len(run.epochs) for run in evidence.runs), MOST_EPOCH_VALUES)
    every_bins = _every(
        5 * BINS * sum(max(len(run.epochs) for run in runs) for runs in cells.values()), MOST_BIN_VALUES
    )
    shown: dict[str, list[dict[str, Any]]] = {}
    for view in views:
        shown.setdefault(view.kind, []).append(_shortened(view, every))
    of_classes = [view for view in shown.get("reliability", ()) if view["choice"].startswith("class ")]
    if 3 * BINS * sum(len(view["rows"]) for view in of_classes) > MOST_CLASS_VALUES:
        shown["reliability"] = [view for view in shown["reliability"] if view not in of_classes]
    of_epochs = (view.data() for setting in evidence.settings
                 for view in epoch_reliabilities(evidence, setting, every_bins))  # fmt: skip
    if found := list(of_epochs):
        shown["reliability"] = shown.get("reliability", []) + found
    shared, own = origins(evidence.runs)
    return {
        "title": evidence.title,
        "every_epochs": every,
        "settings": list(evidence.settings),
        "fitted_on": evidence.fitted_on,
        "objectives": _objectives(evidence),
        "candidate": candidate_of(evidence),
        "metrics": [_metric(name) for name in shown_metrics(evidence)],
        "axes": {"calibration": CALIBRATION, "against": AGAINST},
        "verdicts": VERDICTS,
        "bins": BINS,
        "terms": TERMS,
        "views": shown,
        "runs": [_run(run) for run in evidence.runs],
        "facts": {"shared": shared, "own": own},
    }


def _shortened(view: View, every: int) -> dict[str, Any]:
    data = view.data()
    if view.kind == "training":
        data["rows"] = [thinned(row, every) for row in view.rows]
    if view.kind == "posterior":
        data["rows"] = [row | {"cloud": _thinned(row["cloud"])} for row in view.rows]
    return data


def _thinned(cloud: dict[str, list[float]]) -> dict[str, list[float]]:
    step = max(1, math.ceil(len(cloud["eta"]) / _CLOUD))
    return {name: values[::step] for name, values in cloud.items()}


def _objectives(evidence: Evidence) -> list[dict[str, Any]]:
    return [
        {
            "key": objective,
            "name": short_name(objective),
            "full": evidence.full_name(objective),
            "place": look.place,
            "marker": look.marker,
            "dash": look.dash,
        }
        for objective, look in evidence.looks.items()
    ]


def _metric(name: str) -> dict[str, Any]:
    return {
        "key": name,
        "title": title(name),
        "named": axis_title(name),
        "percent": name in PERCENT,
        "higher": name in HIGHER_IS_BETTER,
        "meaning": METRICS.get(name, ""),
    }


def _run(run: RunEvidence) -> dict[str, Any]:
    """Every metric, for the file of all of them."""
    scaled = {"before": run.scaled.before, "after": run.optimum.after if run.optimum else {}} if run.scaled else {}
    names = {"key": run.key, "setting": run.setting, "objective": run.objective, "seed": run.seed}
    return {**names, "splits": run.metrics, "scaled": scaled}


def _every(values: int, most: int) -> int:
    """Every how many epochs can be given without more values than a page should hold."""
    return max(1, math.ceil(values / most))
