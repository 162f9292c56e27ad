"""The table of metrics. Functions, summaries, intervals, sketches, adapters and the names in reports follow from it.

A new metric needs its formula in a file of its own, an entry here and a test.
"""

from __future__ import annotations

import math

from focalcal.core.named_table import NamedTable
from focalcal.metrics.binned_errors import (
    accuracy_of,
    binary_adaptive_ece,
    classwise_ece_of,
    confidence_gap_of,
    debiased_ece_of,
    ece_of,
    mce_of,
    rms_ce_of,
)
from focalcal.metrics.bootstrap_statistics import AdaptiveCells, SmoothNodes
from focalcal.metrics.cells import adaptive_ece_from_cells, smooth_ece_from_cells
from focalcal.metrics.event_metrics import (
    FromEvent,
    citl_of,
    e50_of,
    e90_of,
    emax_of,
    ici_of,
    intercept_of,
    observed_rate_of,
    oe_of,
    predicted_rate_of,
    slope_of,
)
from focalcal.metrics.metric import Metric, MultilabelMetric
from focalcal.metrics.proper import in_top
from focalcal.metrics.ranking import FromRanks, augrc_of, aurc_of, auroc_of, confidence_auroc_of, coverage_of, e_aurc_of
from focalcal.metrics.smooth import binary_smooth_ece
from focalcal.metrics.sources import FromBins, FromClasses, FromOutcomes, FromProbabilities, FromTotal

error = Metric(
    "error",
    "Error",
    FromTotal("wrong"),
    "The share of rows, between 0 and 1, whose most probable class (the first of equal ones) is not the label.",
    proportion=True,
    in_summary=True,
    adapter="Error",
)
nll = Metric(
    "nll",
    "NLL",
    FromTotal("nll_sum"),
    "Mean negative log-likelihood in nats, -log p_y. From probabilities, p_y = 0 gives inf, never a clipped number; "
    "from `logits` it is finite wherever they are. Of `confidence` and `correct` it is that of being right.",
    unit="nats",
    limits=(0.0, math.inf),
    in_summary=True,
    adapter="NLL",
)
brier = Metric(
    "brier",
    "Brier score",
    FromTotal("brier_sum"),
    "Mean over rows of sum_k (p_k - 1[k = y])^2, between 0 and 2. Brier (1950); the sum is over all classes. Of "
    "`confidence` c and `correct` a it is the mean of (c - a)^2, between 0 and 1: half of what the two classes right "
    "and wrong would give.",
    unit="score",
    limits=(0.0, 2.0),
    in_summary=True,
    adapter="Brier",
)
ece = Metric("ece", "ECE", FromBins(ece_of), by_chance=True, in_summary=True, adapter="ECE")
adaptive_ece = Metric(
    "adaptive_ece",
    "AdaECE",
    FromOutcomes(binary_adaptive_ece, cells=adaptive_ece_from_cells, statistic=AdaptiveCells),
    by_chance=True,
    in_summary=True,
    adapter="AdaptiveECE",
)
classwise_ece = Metric(
    "classwise_ece",
    "Classwise ECE",
    FromClasses(classwise_ece_of),
    by_chance=True,
    in_summary=True,
    adapter="ClasswiseECE",
)
mce = Metric("mce", "MCE", FromBins(mce_of), by_chance=True, in_summary=True, adapter="MCE")
rms_ce = Metric("rms_ce", "RMSCE", FromBins(rms_ce_of), by_chance=True, adapter="RMSCE")
debiased_ece = Metric("debiased_ece", "Debiased ECE", FromBins(debiased_ece_of), by_chance=True, adapter="DebiasedECE")
smooth_ece = Metric(
    "smooth_ece",
    "smECE",
    FromOutcomes(binary_smooth_ece, cells=smooth_ece_from_cells, statistic=SmoothNodes),
    by_chance=True,
    in_summary=True,
    adapter="SmoothECE",
)
confidence_gap = Metric(
    "confidence_gap",
    "Confidence gap",
    FromBins(confidence_gap_of, binned=False),
    limits=(-1.0, 1.0),
    better=None,
    in_summary=True,
    adapter="ConfidenceGap",
)
top_k_accuracy = Metric(
    "top_k_accuracy",
    "Top-k accuracy",
    FromProbabilities(in_top),
    "The share of rows whose label is among the k most probable classes; of equal ones the first come first.\n\n"
    "`k` is 5 unless told, or all classes where there are fewer.",
    better="higher",
    proportion=True,
    adapter="TopKAccuracy",
)
accuracy = Metric(
    "accuracy", "Accuracy", FromBins(accuracy_of, binned=False), better="higher", proportion=True, adapter="Accuracy"
)
aurc = Metric("aurc", "AURC", FromRanks(aurc_of), adapter="AURC")
e_aurc = Metric("e_aurc", "E-AURC", FromRanks(e_aurc_of), adapter="ExcessAURC")
augrc = Metric("augrc", "AUGRC", FromRanks(augrc_of), limits=(0.0, 0.5), adapter="AUGRC")
confidence_auroc = Metric(
    "confidence_auroc",
    "AUROC of the confidence",
    FromRanks(confidence_auroc_of),
    unit="score",
    better="higher",
    adapter="ConfidenceAUROC",
)
coverage = Metric("coverage", "Coverage at 95 % accuracy", FromRanks(coverage_of), better="higher", adapter="Coverage")

predicted_rate = Metric("predicted_rate", "Predicted rate", FromEvent(predicted_rate_of), better=None)
observed_rate = Metric("observed_rate", "Observed rate", FromEvent(observed_rate_of), better=None)
oe = Metric("oe", "O/E", FromEvent(oe_of), unit="score", limits=(0.0, math.inf), better=None)
slope = Metric(
    "slope", "Calibration slope", FromEvent(slope_of), unit="score", limits=(-math.inf, math.inf), better=None
)
intercept = Metric(
    "intercept",
    "Calibration intercept",
    FromEvent(intercept_of),
    unit="score",
    limits=(-math.inf, math.inf),
    better=None,
)
citl = Metric(
    "citl", "Calibration in the large", FromEvent(citl_of), unit="score", limits=(-math.inf, math.inf), better=None
)
ici = Metric("ici", "ICI", FromEvent(ici_of), by_chance=True)
e50 = Metric("e50", "E50", FromEvent(e50_of), by_chance=True)
e90 = Metric("e90", "E90", FromEvent(e90_of), by_chance=True)
emax = Metric("emax", "Emax", FromEvent(emax_of), by_chance=True)

METRICS: dict[str, Metric] = NamedTable(
    "a metric", {entry.name: entry for entry in list(globals().values()) if isinstance(entry, Metric)}
)
"""Every metric of (probs, labels) that is one number."""

AUROC = Metric("auroc", "AUROC", FromRanks(auroc_of), unit="score", better="higher")
"""Of one sigmoid output and its labels; `auroc` itself takes scores and positives."""

multilabel_error = MultilabelMetric(
    error, "The share of rows with p > 1/2 where the label is 0, or p <= 1/2 where it is 1.", decision=True
)
multilabel_nll = MultilabelMetric(nll, "Mean of -log p or -log(1 - p), inf where that is 0.")
multilabel_brier = MultilabelMetric(
    brier,
    "Mean of (p - y)^2, one coordinate, between 0 and 1: half of the two-class Brier score that the losses use.",
    own_limits=(0.0, 1.0),
)
multilabel_ece = MultilabelMetric(ece)
multilabel_adaptive_ece = MultilabelMetric(adaptive_ece)
multilabel_mce = MultilabelMetric(mce)
multilabel_rms_ce = MultilabelMetric(rms_ce)
multilabel_debiased_ece = MultilabelMetric(debiased_ece)
multilabel_smooth_ece = MultilabelMetric(smooth_ece)
multilabel_confidence_gap = MultilabelMetric(confidence_gap, "Mean p minus how often the label is 1.")
multilabel_auroc = MultilabelMetric(
    AUROC, "`auroc` of p for the label; every label must occur both as 0 and as 1.", both_outcomes=True
)
multilabel_aurc = MultilabelMetric(
    aurc, "`aurc` of the decision p > 1/2, taken in the order of max(p, 1 - p).", decision=True
)

MULTILABEL_METRICS: dict[str, MultilabelMetric] = {
    entry.metric.name: entry for entry in list(globals().values()) if isinstance(entry, MultilabelMetric)
}
"""Every metric of sigmoid outputs that is one number per label."""

__all__ = [
    "METRICS",
    "MULTILABEL_METRICS",
    "accuracy",
    "adaptive_ece",
    "augrc",
    "aurc",
    "brier",
    "citl",
    "classwise_ece",
    "confidence_auroc",
    "confidence_gap",
    "coverage",
    "debiased_ece",
    "e50",
    "e90",
    "e_aurc",
    "ece",
    "emax",
    "error",
    "ici",
    "intercept",
    "mce",
    "multilabel_adaptive_ece",
    "multilabel_aurc",
    "multilabel_auroc",
    "multilabel_brier",
    "multilabel_confidence_gap",
    "multilabel_debiased_ece",
    "multilabel_ece",
    "multilabel_error",
    "multilabel_mce",
    "multilabel_nll",
    "multilabel_rms_ce",
    "multilabel_smooth_ece",
    "nll",
    "observed_rate",
    "oe",
    "predicted_rate",
    "rms_ce",
    "slope",
    "smooth_ece",
    "top_k_accuracy",
]
