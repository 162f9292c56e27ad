"""How far probabilities can be trusted: calibration errors, proper scores, error bars, and sketches that add up."""

from collections.abc import Callable
from typing import Any

from focalcal.core.binning import BinSums
from focalcal.metrics.bootstrap import Interval, bootstrap
from focalcal.metrics.detection import aurc, auroc
from focalcal.metrics.ece import (
    adaptive_ece,
    classwise_ece,
    confidence_gap,
    debiased_ece,
    ece,
    mce,
    rms_ce,
)
from focalcal.metrics.multilabel import (
    MultilabelSummary,
    multilabel_adaptive_ece,
    multilabel_aurc,
    multilabel_auroc,
    multilabel_brier,
    multilabel_confidence_gap,
    multilabel_debiased_ece,
    multilabel_ece,
    multilabel_error,
    multilabel_mce,
    multilabel_murphy,
    multilabel_nll,
    multilabel_reliability,
    multilabel_rms_ce,
    multilabel_smooth_ece,
    multilabel_summary,
)
from focalcal.metrics.multilabel_intervals import multilabel_bootstrap
from focalcal.metrics.proper import Murphy, brier, error, murphy, nll, top_k_accuracy
from focalcal.metrics.reliability import Reliability, reliability
from focalcal.metrics.sketch import CalibrationSketch
from focalcal.metrics.smooth import smooth_ece
from focalcal.metrics.summary import Summary, summary

METRICS: dict[str, Callable[..., float]] = {
    "ece": ece,
    "adaptive_ece": adaptive_ece,
    "classwise_ece": classwise_ece,
    "mce": mce,
    "rms_ce": rms_ce,
    "debiased_ece": debiased_ece,
    "smooth_ece": smooth_ece,
    "confidence_gap": confidence_gap,
    "nll": nll,
    "brier": brier,
    "error": error,
    "top_k_accuracy": top_k_accuracy,
    "aurc": aurc,
}
"""Every metric of (probs, labels) that is one number."""

MULTILABEL_METRICS: dict[str, Callable[..., Any]] = {
    "ece": multilabel_ece,
    "adaptive_ece": multilabel_adaptive_ece,
    "mce": multilabel_mce,
    "rms_ce": multilabel_rms_ce,
    "debiased_ece": multilabel_debiased_ece,
    "smooth_ece": multilabel_smooth_ece,
    "confidence_gap": multilabel_confidence_gap,
    "nll": multilabel_nll,
    "brier": multilabel_brier,
    "error": multilabel_error,
    "auroc": multilabel_auroc,
    "aurc": multilabel_aurc,
}
"""Every metric of sigmoid outputs that is one number a label."""

__all__ = [
    "METRICS",
    "MULTILABEL_METRICS",
    "BinSums",
    "CalibrationSketch",
    "Interval",
    "MultilabelSummary",
    "Murphy",
    "Reliability",
    "Summary",
    "adaptive_ece",
    "aurc",
    "auroc",
    "bootstrap",
    "brier",
    "classwise_ece",
    "confidence_gap",
    "debiased_ece",
    "ece",
    "error",
    "mce",
    "multilabel_adaptive_ece",
    "multilabel_aurc",
    "multilabel_auroc",
    "multilabel_bootstrap",
    "multilabel_brier",
    "multilabel_confidence_gap",
    "multilabel_debiased_ece",
    "multilabel_ece",
    "multilabel_error",
    "multilabel_mce",
    "multilabel_murphy",
    "multilabel_nll",
    "multilabel_reliability",
    "multilabel_rms_ce",
    "multilabel_smooth_ece",
    "multilabel_summary",
    "murphy",
    "nll",
    "reliability",
    "rms_ce",
    "smooth_ece",
    "summary",
    "top_k_accuracy",
]
