"""Which metrics an audit has, and their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from focalcal.metrics import METRICS, MULTILABEL_METRICS, bootstrap, multilabel_bootstrap

if TYPE_CHECKING:
    from focalcal.metrics import Interval
    from focalcal.predictions import Predictions

_REPORTED = (
    "error", "accuracy", "nll", "brier", "ece", "adaptive_ece", "smooth_ece", "classwise_ece", "confidence_gap", "aurc",
    "e_aurc", "augrc", "confidence_auroc", "coverage",
)  # fmt: skip


def metric_names(predictions: Predictions, *, top1: bool) -> list[str]:
    """The metrics that an audit of such predictions has."""
    if predictions.multilabel:
        return list(MULTILABEL_METRICS)
    return [name for name in _REPORTED if not top1 or name != "classwise_ece"]


def metric_intervals(predictions: Predictions, *, top1: bool, resamples: int, seed: int) -> dict[str, Interval]:
    """Each metric with its 95 % interval; of top-1 rows NLL and Brier score are those of the prediction being right."""
    names = metric_names(predictions, top1=top1)
    options: dict[str, Any] = {"resamples": resamples, "seed": seed}
    if predictions.multilabel:
        return {name: multilabel_bootstrap(MULTILABEL_METRICS[name], predictions, **options) for name in names}
    given: dict[str, Any] = {"probs": predictions}
    if top1:
        given = {"confidence": predictions.probs[:, 1], "correct": predictions.labels}
        given["sample_weight"] = predictions.weights
    asked = {name: METRICS[name] for name in names}
    intervals: dict[str, Interval] = bootstrap(asked, **given, clusters=predictions.clusters, **options)
    return intervals
