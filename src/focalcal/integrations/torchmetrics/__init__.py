"""The metrics as `torchmetrics.Metric`: for training loops, `MetricCollection`, and several processes.

Needs the package torchmetrics. A metric is told what it will be given, `scores="probs"` or
`"logits"`, and how many classes; nothing is guessed from values. Its state are the sums of a `CalibrationSketch`,
float64 whatever dtype the module is moved to, of a size that does not grow with the rows; they are added over batches
and over processes. So every value is that of the function of the same name on all rows together, AdaECE and smECE
within the sketch's bounds. Exceptions: `AURC`, `ExcessAURC`, `AUGRC`, `ConfidenceAUROC` and `Coverage` need all
confidences and keep them, and there is no AUROC of other scores here, since torchmetrics has one. A batch without
a row (all of them `ignore_index`) adds nothing.

In a `MetricCollection` the metrics over confidence bins, NLL, Brier score and error share one state and one pass,
AdaECE and smECE another. The classes follow from the table of metrics: `ECE(num_classes, n_bins=15)` for `ece`,
`MultilabelECE(num_labels)` for `multilabel_ece`, with the options of the function.
"""

from typing import TYPE_CHECKING, Any

from focalcal.integrations.torchmetrics.multi_label import multilabel_adapter
from focalcal.integrations.torchmetrics.single_label import CalibrationSummary, adapter
from focalcal.metrics.table import METRICS, MULTILABEL_METRICS

ADAPTERS: dict[str, Any] = {"CalibrationSummary": CalibrationSummary}
ADAPTERS |= {metric.adapter: adapter(metric) for metric in METRICS.values() if metric.adapter}
ADAPTERS |= {
    f"Multilabel{entry.metric.adapter}": multilabel_adapter(entry)
    for entry in MULTILABEL_METRICS.values()
    if entry.metric.source.holds == "bins"
}
globals().update(ADAPTERS)
__all__ = list(ADAPTERS)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Every adapter."""
