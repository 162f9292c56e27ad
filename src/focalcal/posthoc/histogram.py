"""Histogram binning, one class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from focalcal.core.binning import bin_index, equal_mass_edges, equal_width_edges
from focalcal.core.checks import one_of, whole_number
from focalcal.core.numerics import softmax
from focalcal.posthoc.one_vs_rest import OneVsRestCalibrator, below, by_class
from focalcal.posthoc.storage import Decoder, curves, rising_curves

if TYPE_CHECKING:
    from focalcal.core.arrays import Labels, PerRow, Scores

STRATEGIES = ("equal_width", "equal_mass")


def _table(rows_of: Decoder) -> Decoder:
    """The curves that `rows_of` reads, as one array: all classes have as many numbers."""

    def table(name: str, value: Any, classes: int) -> Any:
        rows = rows_of(name, value, classes)
        if len({len(row) for row in rows}) > 1:
            raise ValueError(f"{name} must have as many numbers in every class")
        return np.stack(rows)

    return table


class HistogramBinning(OneVsRestCalibrator):
    """The share of class k among the fitted rows whose p_k fell into the same bin, normalised; p = softmax(logits).

    Zadrozny and Elkan (2001). Bins are (lo, hi], the first closed; `strategy` "equal_width" has edges i / bins,
    "equal_mass" as many rows in each bin, separately for each class. A bin that no row fell into predicts its
    middle. Classes may tie within a row, so the predicted class can change.

    Attributes: `edges_` (K, bins + 1), `values_` (K, bins), `classes_`, `n_features_in_`.

    Args:
        bins: how many.
        strategy: "equal_width" or "equal_mass".

    >>> import numpy as np
    >>> p, y = np.array([0.1, 0.3, 0.6, 0.8]), np.array([0, 0, 0, 1])
    >>> HistogramBinning(bins=2).fit(probs=p, labels=y).predict_proba(probs=p)[:, 1]
    array([0. , 0. , 0.5, 0.5])
    """

    _state: ClassVar[dict[str, Decoder]] = {"edges_": _table(rising_curves), "values_": _table(curves)}

    def __init__(self, bins: int = 15, *, strategy: str = "equal_width") -> None:
        self.bins = bins
        self.strategy = strategy

    def _check_params(self) -> None:
        bins = int(self.bins) if isinstance(self.bins, float) and self.bins % 1 == 0 else self.bins
        whole_number("bins", bins, least=1, most=1_000_000, remedy="15 is usual")
        one_of("strategy", self.strategy, STRATEGIES)

    def _check_state(self) -> None:
        if self.edges_.shape[1] != self.bins + 1 or self.values_.shape[1] != self.bins:
            raise ValueError(f"edges_ and values_ must have {self.bins + 1} and {self.bins} numbers in every class")

    def _fit(self, logits: Scores, labels: Labels, weights: PerRow) -> None:
        probs, bins = softmax(logits.astype(np.float64)), int(self.bins)
        all_edges, all_values = [], []
        for k in range(probs.shape[1]):
            p = np.ascontiguousarray(probs[:, k])
            edges = equal_width_edges(bins) if self.strategy == "equal_width" else equal_mass_edges(p, bins, weights)
            place = bin_index(p, edges)
            total = np.bincount(place, weights, minlength=bins)
            right = np.bincount(place, weights * (labels == k), minlength=bins)
            all_edges.append(edges)
            all_values.append(np.where(total > 0, right / np.where(total > 0, total, 1), (edges[1:] + edges[:-1]) / 2))
        self.edges_, self.values_ = np.stack(all_edges), np.stack(all_values)

    def _arrays(self) -> dict[str, Any]:
        return {"inner_edges": self.edges_[:, 1:-1], "values": self.values_}

    def _class_probs(self, logits: Any, **learnt: Any) -> Any:
        return by_class(learnt["values"], below(learnt["inner_edges"], softmax(logits)))  # bins are (lo, hi]
