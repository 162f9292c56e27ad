"""Adapters of the metrics of several labels per row, each a question of its own, made from the table of metrics."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from focalcal.core.binning import BinSums, even_bin_index
from focalcal.core.checks import finite, one_of
from focalcal.core.scores import as_tensor
from focalcal.metrics.multilabel_metric import MultilabelMetric, multilabel_elements
from focalcal.metrics.sources import FromBins, FromTotal
from focalcal.metrics.torchmetrics.sums import SumsMetric, adapter_class

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
        self.metric.source.of_outcomes(torch.tensor([0.5]), torch.tensor([True]), **options)  # refuses a wrong option
        self._add_sums("totals", 1)
        self._add_sums("sums", 3, num_labels)
        self._add_sums("bins", 3, num_labels, n_bins)

    def update(self, preds: Any, target: Any) -> None:
        """Add the rows of a batch: scores (N, L) and labels (N, L) of 0 and 1."""
        if self._rows_in(preds, target) == 0:
            return
        logits = None
        if self.scores == "logits":
            logits = as_tensor("logits", preds).double().cpu()
            labels = as_tensor("labels", target).cpu()
            if self.ignore_index is not None and labels.shape == logits.shape:
                logits = logits.masked_fill(labels == self.ignore_index, 0.0)  # they may be anything
            finite("logits", logits)
        p, y, keep = multilabel_elements(preds if logits is None else logits.sigmoid(), target, self.ignore_index)
        p = p.double()
        if logits is None:
            inside = p.clamp(0, 1)
            likelihood = torch.where(y, inside.log(), torch.log1p(-inside))
        else:
            likelihood = F.logsigmoid(torch.where(y, logits, -logits))
        each = torch.stack([((p > 0.5) != y).double(), (p - y.double()).square(), -likelihood])
        self.sums = self.sums + torch.where(keep, each, 0.0).sum(1).to(self.device)
        cell = (even_bin_index(p.flatten(), self.n_bins).view(p.shape) + torch.arange(p.shape[1]) * self.n_bins)[keep]
        added = torch.zeros(3, self.num_labels * self.n_bins, dtype=torch.float64)
        added.index_add_(1, cell, torch.stack([torch.ones_like(p), p, y.double()])[:, keep])
        self.bins = self.bins + added.view(self.bins.shape).to(self.device)
        self.totals = self.totals + keep.sum().to(self.device)

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
            values = torch.as_tensor(source.of(BinSums(*self.bins), **own))
        return values.mean() if self.average == "mean" else values
