"""Histogram binning, one class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from focalcal.core.arrays import one_of
from focalcal.core.binning import bin_index, bin_sums, equal_mass_edges, equal_width_edges
from focalcal.posthoc.arguments import positive_count
from focalcal.posthoc.one_vs_rest import OneVsRestCalibrator
from focalcal.posthoc.storage import Decoder, curves, rising_curves

if TYPE_CHECKING:
    from jaxtyping import Float, Int

STRATEGIES = ("equal_width", "equal_mass")


class HistogramBinning(OneVsRestCalibrator):
    """The share of class k among the fitted rows whose p_k fell into the same bin, normalised; p = softmax(logits).

    Zadrozny and Elkan (2001). Bins are (lo, hi], the first closed; `strategy` "equal_width" has edges i / bins,
    "equal_mass" as many rows in each bin, separately for each class. A bin that no row fell into predicts its
    middle. Classes may tie within a row, so the predicted class can change.

    Attributes: `edges_`, K arrays (bins + 1,); `values_`, K arrays (bins,); `classes_`, `n_features_in_`.
    """

    _state: ClassVar[dict[str, Decoder]] = {"edges_": rising_curves, "values_": curves}
    edges_: list[Any]
    values_: list[Any]

    def __init__(self, bins: int = 15, *, strategy: str = "equal_width") -> None:
        self.bins = bins
        self.strategy = strategy

    def _check_params(self) -> None:
        positive_count("bins", self.bins)
        one_of("strategy", self.strategy, STRATEGIES)

    def _check_state(self) -> None:
        if any(len(e) != self.bins + 1 for e in self.edges_) or any(len(v) != self.bins for v in self.values_):
            raise ValueError(f"edges_ and values_ must have {self.bins + 1} and {self.bins} numbers in every class")

    def _fit(self, logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> None:
        probs, index = logits.double().softmax(1).cpu(), labels.cpu()
        self.edges_, self.values_ = [], []
        for k in range(probs.shape[1]):
            p = probs[:, k].contiguous()
            edges = equal_width_edges(self.bins) if self.strategy == "equal_width" else equal_mass_edges(p, self.bins)
            sums = bin_sums(p, index == k, edges)
            share = torch.where(sums.count > 0, sums.correct / sums.count.clamp(min=1), (edges[1:] + edges[:-1]) / 2)
            self.edges_.append(edges.numpy())
            self.values_.append(share.numpy())

    def _class_probs(self, logits: Float[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        probs = logits.softmax(1)
        edges = torch.as_tensor(np.stack(self.edges_)).to(logits)
        values = torch.as_tensor(np.stack(self.values_)).to(logits)
        columns = [values[k][bin_index(probs[:, k].contiguous(), edges[k])] for k in range(probs.shape[1])]
        return torch.stack(columns, 1)
