"""Adapters of the metrics of several labels per row, each a question of its own, made from the table of metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core.arrays import as_array
from focalcal.core.binning import BinSums, even_bin_index
from focalcal.core.checks import finite, one_of
from focalcal.core.numerics import log_sigmoid, sigmoid
from focalcal.integrations.torchmetrics.sums import SumsMetric, adapter_class
from focalcal.metrics.metric import MultilabelMetric, multilabel_elements
from focalcal.metrics.proper import binary_brier, binary_error, binary_nll
from focalcal.metrics.sources import FromBins, FromTotal

_TOTALS = ("wrong", "brier_sum", "nll_sum")


def multilabel_adapter(entry: MultilabelMetric) -> type[SumsMetric]:
    """The class that computes the metric over batches and processes."""
    name = f"Multilabel{entry.metric.adapter}"
    docstring = f"`focalcal.metrics.multilabel_{entry.metric.name}`."
    return adapter_class(_MultilabelMetric, name, entry.metric, entry, docstring)


class _MultilabelMetric(SumsMetric):
    """`num_labels`: L. `scores`: what update is given, (N, L). `average`: "mean", or None for one value per label."""

    totals: Tensor  # rows
    sums: Tensor  # (3, L): as in _TOTALS
    bins: Tensor  # (3, L, n_bins)

    def __init__(
        self,
        num_labels: int,
        *,
        n_bins: int = 15,
        average: str | None = "mean",
        scores: str = "probs",
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        one_of("average", average, ("mean", None))
        assert self.metric is not None
        kwargs |= self.metric.bins_option(n_bins)
        options = self._pop_options(kwargs)
        super().__init__(num_labels, "num_labels", scores, ignore_index, **kwargs)
        self.num_labels, self.n_bins, self.average, self.options = num_labels, n_bins, average, options
        self.metric.source.of_outcomes(np.array([0.5]), np.array([True]), **options)  # refuses a wrong option
        self._add_sums("totals", 1)
        self._add_sums("sums", 3, num_labels)
        self._add_sums("bins", 3, num_labels, n_bins)

    def update(self, preds: Any, target: Any) -> None:
        """Add the rows of a batch: scores (N, L) and labels (N, L) of 0 and 1."""
        if self._rows_in(preds, target) == 0:
            return
        logits = None
        if self.scores == "logits":
            logits, labels = as_array("logits", preds).astype(np.float64), as_array("labels", target)
            if self.ignore_index is not None and labels.shape == logits.shape:
                logits[labels == self.ignore_index] = 0.0  # they may be anything
            finite("logits", logits)
        p, y, keep = multilabel_elements(preds if logits is None else sigmoid(logits), target, self.ignore_index)
        nll = binary_nll(p, y) if logits is None else -log_sigmoid(np.where(y, logits, -logits))
        each = np.where(keep, np.stack([binary_error(p, y), binary_brier(p, y), nll]), 0.0).sum(1)
        cell = (even_bin_index(p, self.n_bins) + np.arange(p.shape[1]) * self.n_bins)[keep]
        cells = self.num_labels * self.n_bins
        added = np.stack([np.bincount(cell, values, cells) for values in (None, p[keep], y[keep])])
        self.sums = self.sums + torch.from_numpy(each).to(self.device)
        self.bins = self.bins + torch.from_numpy(added).view(self.bins.shape).to(self.device)
        self.totals = self.totals + int(keep.sum())

    def _refuse_empty(self) -> None:
        super()._refuse_empty()
        empty = (self.bins[0].sum(-1) == 0).nonzero()
        if len(empty):
            raise ValueError(f"{type(self).__name__} has seen no row of label {int(empty[0])}; give it one, or drop it")

    def _value(self) -> Any:
        assert self.metric is not None
        source = self.metric.source
        if isinstance(source, FromTotal):
            values = self.sums[_TOTALS.index(source.total)] / self.bins[0].sum(-1)
        else:
            assert isinstance(source, FromBins)
            own = {name: value for name, value in self.options.items() if name in source.sketch_options}
            values = torch.as_tensor(source.of(BinSums(*self.bins.cpu().numpy()), **own))
        return values.mean() if self.average == "mean" else values
