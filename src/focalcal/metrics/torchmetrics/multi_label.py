"""Adapters of the metrics of several labels a row, each a question of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from focalcal.core.binning import BinSums, even_bin_index
from focalcal.core.checks import finite, one_of
from focalcal.core.scores import as_tensor
from focalcal.metrics.ece import confidence_gap_of, debiased_ece_of, ece_of, mce_of, rms_ce_of
from focalcal.metrics.multilabel import multilabel_elements
from focalcal.metrics.scan import check_bins
from focalcal.metrics.torchmetrics.sums import SumsMetric


class _MultilabelMetric(SumsMetric):
    """`num_labels`: L. `scores`: what update is given, (N, L). `average`: "mean", or None for one value a label."""

    totals: Tensor  # rows
    sums: Tensor  # (3, L): wrong, Brier, NLL
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
        check_bins(n_bins)
        one_of("average", average, ("mean", None))
        super().__init__(num_labels, "num_labels", scores, ignore_index, **kwargs)
        self.num_labels, self.n_bins, self.average = num_labels, n_bins, average
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

    def _value(self) -> Tensor:
        values = self._each()
        return values.mean() if self.average == "mean" else values

    def _mean(self, total: int) -> Tensor:
        return self.sums[total] / self.bins[0].sum(-1)

    @abstractmethod
    def _each(self) -> Tensor:
        """One value a label."""


class MultilabelECE(_MultilabelMetric):
    """`focalcal.metrics.multilabel_ece`."""

    def _each(self) -> Tensor:
        return torch.as_tensor(ece_of(BinSums(*self.bins)))


class MultilabelMCE(_MultilabelMetric):
    """`focalcal.metrics.multilabel_mce`."""

    def _each(self) -> Tensor:
        return torch.as_tensor(mce_of(BinSums(*self.bins)))


class MultilabelRMSCE(_MultilabelMetric):
    """`focalcal.metrics.multilabel_rms_ce`."""

    def _each(self) -> Tensor:
        return torch.as_tensor(rms_ce_of(BinSums(*self.bins)))


class MultilabelDebiasedECE(_MultilabelMetric):
    """`focalcal.metrics.multilabel_debiased_ece`, `norm` "l1" or "l2"."""

    def __init__(self, num_labels: int, *, norm: str = "l1", **kwargs: Any) -> None:
        one_of("norm", norm, ("l1", "l2"))
        super().__init__(num_labels, **kwargs)
        self.norm = norm

    def _each(self) -> Tensor:
        return torch.as_tensor(debiased_ece_of(BinSums(*self.bins), self.norm))


class MultilabelConfidenceGap(_MultilabelMetric):
    """`focalcal.metrics.multilabel_confidence_gap`."""

    higher_is_better = None
    plot_lower_bound = -1.0

    def _each(self) -> Tensor:
        return torch.as_tensor(confidence_gap_of(BinSums(*self.bins)))


class MultilabelNLL(_MultilabelMetric):
    """`focalcal.metrics.multilabel_nll`; from logits it is finite where a probability has underflowed."""

    def _each(self) -> Tensor:
        return self._mean(2)


class MultilabelBrier(_MultilabelMetric):
    """`focalcal.metrics.multilabel_brier`."""

    def _each(self) -> Tensor:
        return self._mean(1)


class MultilabelError(_MultilabelMetric):
    """`focalcal.metrics.multilabel_error`."""

    def _each(self) -> Tensor:
        return self._mean(0)
