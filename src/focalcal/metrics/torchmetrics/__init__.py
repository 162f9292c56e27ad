"""The metrics as `torchmetrics.Metric`: for training loops, `MetricCollection`, and several processes.

Needs the extra: pip install 'focalcal[torchmetrics]'. A metric is told what it will be given, `scores="probs"` or
`"logits"`, and how many classes; nothing is guessed from values. Its state are the sums of a `CalibrationSketch`,
float64 whatever dtype the module is moved to, of a size that does not grow with the rows; they are added over batches
and over processes. So every value is that of the function of the same name on all rows together, AdaECE and smECE
within the sketch's bounds. Two exceptions: `AURC` needs all confidences and keeps them, and there is no AUROC here,
since torchmetrics has one. A batch without a row (all of them `ignore_index`) adds nothing.

In a `MetricCollection` the metrics over confidence bins, NLL, Brier score and error share one state and one pass,
AdaECE and smECE another.
"""

from focalcal.metrics.torchmetrics.multi_label import (
    MultilabelBrier,
    MultilabelConfidenceGap,
    MultilabelDebiasedECE,
    MultilabelECE,
    MultilabelError,
    MultilabelMCE,
    MultilabelNLL,
    MultilabelRMSCE,
)
from focalcal.metrics.torchmetrics.single_label import (
    AURC,
    ECE,
    MCE,
    NLL,
    RMSCE,
    AdaptiveECE,
    Brier,
    CalibrationSummary,
    ClasswiseECE,
    ConfidenceGap,
    DebiasedECE,
    Error,
    SmoothECE,
    TopKAccuracy,
)

__all__ = [
    "AURC",
    "ECE",
    "MCE",
    "NLL",
    "RMSCE",
    "AdaptiveECE",
    "Brier",
    "CalibrationSummary",
    "ClasswiseECE",
    "ConfidenceGap",
    "DebiasedECE",
    "Error",
    "MultilabelBrier",
    "MultilabelConfidenceGap",
    "MultilabelDebiasedECE",
    "MultilabelECE",
    "MultilabelError",
    "MultilabelMCE",
    "MultilabelNLL",
    "MultilabelRMSCE",
    "SmoothECE",
    "TopKAccuracy",
]
