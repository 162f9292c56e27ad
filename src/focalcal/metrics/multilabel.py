"""The metrics for sigmoid outputs: every label a question of its own, p = P(label = 1) against 0 or 1.

Every function takes probabilities (N, L) and labels (N, L) of 0 and 1. `average="mean"` gives the mean over the
labels, `average=None` an array of L values. Elements whose label is `ignore_index` (unknown, say -1) are left out.
What is binned is p itself, not the confidence max(p, 1 - p), in the bins of the single-label metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core.binning import BinSums, equal_width_edges, even_bin_index, sums_at
from focalcal.core.checks import in_unit_interval, one_of
from focalcal.core.scores import as_tensor
from focalcal.metrics.detection import auroc, binary_aurc
from focalcal.metrics.ece import (
    binary_adaptive_ece,
    confidence_gap_of,
    debiased_ece_of,
    ece_of,
    mce_of,
    rms_ce_of,
)
from focalcal.metrics.proper import Murphy, murphy_of
from focalcal.metrics.reliability import Reliability, check_level, reliability_of
from focalcal.metrics.scan import check_bins
from focalcal.metrics.smooth import binary_smooth_ece

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]
Column = tuple[Tensor, Tensor]  # probabilities (n,) and outcomes (n,) bool of one label


def multilabel_elements(probs: Any, labels: Any, ignore_index: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Checked probabilities, outcomes (bool) and which of them count (bool), each (N, L) on the CPU."""
    scores, target = as_tensor("probs", probs), as_tensor("labels", labels)
    if not scores.is_floating_point():
        raise TypeError(f"probs must be floating point, got {scores.dtype}; convert them, e.g. probs.astype('float32')")
    if scores.dim() != 2 or target.shape != scores.shape:
        raise ValueError(
            f"probs and labels must both be (N, L), got {tuple(scores.shape)} and {tuple(target.shape)}; "
            "for one label add a dimension, probs[:, None]"
        )
    if scores.numel() == 0:
        raise ValueError(f"probs must hold at least one row and one label, got shape {tuple(scores.shape)}")
    keep = torch.ones_like(target, dtype=torch.bool) if ignore_index is None else target != ignore_index
    _refuse("labels", target, keep & (target != 0) & (target != 1), "0 or 1", "or name another value as ignore_index")
    wrong = keep & ~in_unit_interval(scores)
    _refuse("probs", scores, wrong, "probabilities from 0 to 1", "pass sigmoid(logits)")
    if scores.dtype not in (torch.float32, torch.float64):
        scores = scores.float()
    return scores.cpu(), target.cpu() == 1, keep.cpu()


def multilabel_columns(probs: Any, labels: Any, ignore_index: int | None = None) -> list[Column]:
    """The checked probabilities and outcomes of each label."""
    scores, target, keep = multilabel_elements(probs, labels, ignore_index)
    if ignore_index is None:
        return [(scores[:, at].contiguous(), target[:, at].contiguous()) for at in range(scores.shape[1])]
    empty = (~keep.any(0)).nonzero()
    if len(empty):
        raise ValueError(f"labels must leave a row for every label, got only ignore_index in column {int(empty[0])}")
    return [(scores[keep[:, at], at], target[keep[:, at], at]) for at in range(scores.shape[1])]


def _refuse(name: str, values: Tensor, wrong: Tensor, rule: str, remedy: str) -> None:
    if bool(wrong.any()):
        row, column = (int(i) for i in wrong.nonzero()[0])
        raise ValueError(
            f"{name} must be {rule}, got {values[row, column].item():g} in row {row}, column {column}; {remedy}"
        )


def _each(
    metric: Callable[[Tensor, Tensor], float],
    probs: Any,
    labels: Any,
    average: str | None,
    ignore_index: int | None,
) -> Any:
    one_of("average", average, ("mean", None))
    values = np.array([metric(p, y) for p, y in multilabel_columns(probs, labels, ignore_index)])
    return float(values.mean()) if average == "mean" else values


def _sums(p: Tensor, y: Tensor, n_bins: int) -> BinSums:
    return sums_at(even_bin_index(p, n_bins), p, y, n_bins)


def _nll(p: Tensor, y: Tensor) -> float:
    p = p.double().clamp(0, 1)
    return -float(torch.where(y, p.log(), torch.log1p(-p)).mean())


def _brier(p: Tensor, y: Tensor) -> float:
    return float((p.double() - y.double()).square().mean())


def _error(p: Tensor, y: Tensor) -> float:
    return float(((p > 0.5) != y).double().mean())


def multilabel_ece(
    probs: Any, labels: Any, *, n_bins: int = 15, average: str | None = "mean", ignore_index: int | None = None
) -> Any:
    """`ece` of p against the label."""
    check_bins(n_bins)
    return _each(lambda p, y: float(ece_of(_sums(p, y, n_bins))), probs, labels, average, ignore_index)


def multilabel_mce(
    probs: Any, labels: Any, *, n_bins: int = 15, average: str | None = "mean", ignore_index: int | None = None
) -> Any:
    """`mce` of p against the label."""
    check_bins(n_bins)
    return _each(lambda p, y: float(mce_of(_sums(p, y, n_bins))), probs, labels, average, ignore_index)


def multilabel_rms_ce(
    probs: Any, labels: Any, *, n_bins: int = 15, average: str | None = "mean", ignore_index: int | None = None
) -> Any:
    """`rms_ce` of p against the label."""
    check_bins(n_bins)
    return _each(lambda p, y: float(rms_ce_of(_sums(p, y, n_bins))), probs, labels, average, ignore_index)


def multilabel_debiased_ece(
    probs: Any,
    labels: Any,
    *,
    n_bins: int = 15,
    norm: str = "l1",
    average: str | None = "mean",
    ignore_index: int | None = None,
) -> Any:
    """`debiased_ece` of p against the label."""
    check_bins(n_bins)
    one_of("norm", norm, ("l1", "l2"))
    return _each(lambda p, y: float(debiased_ece_of(_sums(p, y, n_bins), norm)), probs, labels, average, ignore_index)


def multilabel_adaptive_ece(
    probs: Any, labels: Any, *, n_bins: int = 15, average: str | None = "mean", ignore_index: int | None = None
) -> Any:
    """`adaptive_ece` of p against the label."""
    check_bins(n_bins)
    return _each(lambda p, y: binary_adaptive_ece(p, y, n_bins=n_bins), probs, labels, average, ignore_index)


def multilabel_smooth_ece(
    probs: Any,
    labels: Any,
    *,
    convention: str = "whole",
    average: str | None = "mean",
    ignore_index: int | None = None,
) -> Any:
    """`smooth_ece` of p against the label."""
    one_of("convention", convention, ("whole", "relplot"))
    return _each(lambda p, y: binary_smooth_ece(p, y, convention=convention), probs, labels, average, ignore_index)


def multilabel_confidence_gap(
    probs: Any, labels: Any, *, average: str | None = "mean", ignore_index: int | None = None
) -> Any:
    """Mean p minus how often the label is 1."""
    return _each(lambda p, y: float(confidence_gap_of(_sums(p, y, 1))), probs, labels, average, ignore_index)


def multilabel_nll(probs: Any, labels: Any, *, average: str | None = "mean", ignore_index: int | None = None) -> Any:
    """Mean of -log p or -log(1 - p), inf where that is 0."""
    return _each(_nll, probs, labels, average, ignore_index)


def multilabel_brier(probs: Any, labels: Any, *, average: str | None = "mean", ignore_index: int | None = None) -> Any:
    """Mean of (p - y)^2, one coordinate, between 0 and 1: half of the two-class Brier score that the losses use."""
    return _each(_brier, probs, labels, average, ignore_index)


def multilabel_error(probs: Any, labels: Any, *, average: str | None = "mean", ignore_index: int | None = None) -> Any:
    """The share of rows with p > 1/2 where the label is 0, or p <= 1/2 where it is 1."""
    return _each(_error, probs, labels, average, ignore_index)


def multilabel_auroc(probs: Any, labels: Any, *, average: str | None = "mean", ignore_index: int | None = None) -> Any:
    """`auroc` of p for the label; every label must occur both as 0 and as 1."""
    for at, (_, y) in enumerate(multilabel_columns(probs, labels, ignore_index)):
        if bool((y == y[0]).all()):
            raise ValueError(
                f"labels must hold both outcomes in every column, got only {int(y[0])} in column {at}; "
                "AUROC compares the two, so leave the column out"
            )
    return _each(auroc, probs, labels, average, ignore_index)


def multilabel_aurc(probs: Any, labels: Any, *, average: str | None = "mean", ignore_index: int | None = None) -> Any:
    """`aurc` of the decision p > 1/2, taken in the order of max(p, 1 - p)."""

    def aurc(p: Tensor, y: Tensor) -> float:
        return binary_aurc(torch.maximum(p.double(), 1 - p.double()).numpy(), ((p > 0.5) != y).numpy())

    return _each(aurc, probs, labels, average, ignore_index)


def multilabel_murphy(probs: Any, labels: Any, *, n_bins: int = 15, ignore_index: int | None = None) -> list[Murphy]:
    """The Murphy decomposition of each label's Brier score."""
    check_bins(n_bins)
    columns = multilabel_columns(probs, labels, ignore_index)
    return [murphy_of(_sums(p, y, n_bins), _brier(p, y)) for p, y in columns]


def multilabel_reliability(
    probs: Any, labels: Any, *, n_bins: int = 15, level: float = 0.95, ignore_index: int | None = None
) -> list[Reliability]:
    """p against how often the label is 1, for each label."""
    check_bins(n_bins)
    check_level(level)
    columns = multilabel_columns(probs, labels, ignore_index)
    return [reliability_of(_sums(p, y, n_bins), equal_width_edges(n_bins), level) for p, y in columns]


@dataclass(frozen=True, eq=False)
class MultilabelSummary:
    """Arrays of one value a label; `mean` has their means."""

    rows: Array
    positives: Array
    error: Array
    nll: Array
    brier: Array
    ece: Array
    adaptive_ece: Array
    mce: Array
    smooth_ece: Array
    confidence_gap: Array
    reliability: list[Reliability]

    @property
    def mean(self) -> dict[str, float]:
        """The mean over the labels of every metric."""
        names = ("error", "nll", "brier", "ece", "adaptive_ece", "mce", "smooth_ece", "confidence_gap")
        return {name: float(getattr(self, name).mean()) for name in names}

    def __str__(self) -> str:
        """One line a label, and the mean."""
        names = list(self.mean)
        lines = [" label     rows positives " + " ".join(f"{name:>14}" for name in names)]
        for at in range(len(self.rows)):
            values = " ".join(f"{getattr(self, name)[at]:14.4f}" for name in names)
            lines.append(f"{at:6d} {self.rows[at]:8d} {self.positives[at]:9d} {values}")
        lines.append(f"{'mean':>6} {'':8} {'':9} " + " ".join(f"{value:14.4f}" for value in self.mean.values()))
        return "\n".join(lines)


def multilabel_summary(
    probs: Any, labels: Any, *, n_bins: int = 15, level: float = 0.95, ignore_index: int | None = None
) -> MultilabelSummary:
    """`summary`, label by label."""
    check_bins(n_bins)
    check_level(level)
    columns = multilabel_columns(probs, labels, ignore_index)
    sums = [_sums(p, y, n_bins) for p, y in columns]

    def each(metric: Callable[[Tensor, Tensor], float]) -> Array:
        return np.array([metric(p, y) for p, y in columns])

    def binned(of: Callable[[BinSums], Array]) -> Array:
        return np.array([float(of(bins)) for bins in sums])

    return MultilabelSummary(
        rows=np.array([len(y) for _, y in columns]),
        positives=np.array([int(y.sum()) for _, y in columns]),
        error=each(_error),
        nll=each(_nll),
        brier=each(_brier),
        ece=binned(ece_of),
        adaptive_ece=each(lambda p, y: binary_adaptive_ece(p, y, n_bins=n_bins)),
        mce=binned(mce_of),
        smooth_ece=each(binary_smooth_ece),
        confidence_gap=binned(confidence_gap_of),
        reliability=[reliability_of(bins, equal_width_edges(n_bins), level) for bins in sums],
    )
