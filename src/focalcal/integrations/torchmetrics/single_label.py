"""Adapters of the metrics of one label per row, made from the table of metrics."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from focalcal.core.arrays import Array
from focalcal.core.binning import BinSums
from focalcal.integrations.torchmetrics.sums import SumsMetric, adapter_class
from focalcal.metrics.cells import CELLS
from focalcal.metrics.metric import Metric
from focalcal.metrics.scan import Scan, scan_inputs
from focalcal.metrics.sketch import CalibrationSketch
from focalcal.metrics.smooth import interval_moments
from focalcal.metrics.sources import FromProbabilities
from focalcal.metrics.summary import summary_of
from focalcal.predictions.inputs import Inputs, read_inputs


def adapter(metric: Metric) -> type[SumsMetric]:
    """The class that computes the metric over batches and processes."""
    by_rows = _ValuesMetric if isinstance(metric.source, FromProbabilities) else _OutcomesMetric
    base = _SketchMetric if metric.source.holds else by_rows
    docstring = f"`focalcal.metrics.{metric.name}`{base.exactness[metric.source.holds]}."
    return adapter_class(base, metric.adapter, metric, metric, docstring, _holds=(metric.source.holds,))


class _ClassMetric(SumsMetric):
    """`num_classes`: K. `scores`: what update is given, (N, K) or (N, K, d1, ...). `ignore_index`: labels left out."""

    exactness: ClassVar[dict[str, str]] = {"": ""}

    def __init__(
        self, num_classes: int, *, scores: str = "probs", ignore_index: int | None = None, **kwargs: Any
    ) -> None:
        options = self._pop_options(kwargs)
        super().__init__(num_classes, "num_classes", scores, ignore_index, **kwargs)
        self.num_classes, self.options = num_classes, options
        if self.metric is not None:  # a wrong option is refused now, not with the first batch
            classes = max(2, num_classes)
            self.metric(np.full((1, classes), 1 / classes), np.array([0]), **options)
        self._add_states()

    @abstractmethod
    def _add_states(self) -> None:
        """What is summed or kept."""

    def update(self, preds: Any, target: Any) -> None:
        """Add the rows of a batch: scores (N, K) or (N, K, d1, ...) and labels (N, d1, ...)."""
        if self._rows_in(preds, target):
            self._add(preds, target)

    @abstractmethod
    def _add(self, preds: Any, target: Any) -> None:
        """Add the rows of a batch that has some."""

    def _read(self, preds: Any, target: Any) -> Inputs:
        return read_inputs(**{self.scores: preds}, labels=target, ignore_index=self.ignore_index)

    def _scan(self, preds: Any, target: Any, **asked: Any) -> Scan:
        return scan_inputs(self._read(preds, target), ignore_index=self.ignore_index, **asked)


class _SketchMetric(_ClassMetric):
    """The sums of a sketch, those parts that are needed."""

    totals: Tensor  # rows, wrong, Brier, NLL
    bins: Tensor  # (3, n_bins)
    classes: Tensor  # (3, K, n_bins)
    moments: Tensor  # (5, CELLS)
    _holds: ClassVar[tuple[str, ...]]
    exactness: ClassVar[dict[str, str]] = {"bins": "", "classes": "", "moments": " within the bound of the sketch"}

    def __init__(
        self,
        num_classes: int,
        *,
        n_bins: int = 15,
        scores: str = "probs",
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.n_bins = n_bins
        bins = {} if self.metric is None else self.metric.bins_option(n_bins)
        super().__init__(num_classes, scores=scores, ignore_index=ignore_index, **bins, **kwargs)

    def _add_states(self) -> None:
        self._add_sums("totals", 4)
        shapes = {"bins": (3, self.n_bins), "classes": (3, self.num_classes, self.n_bins), "moments": (5, CELLS)}
        for name in self._holds:
            self._add_sums(name, *shapes[name])

    def _add(self, preds: Any, target: Any) -> None:
        sums = self._scan(
            preds, target, n_bins=self.n_bins, brier=True, nll=True,
            classes="classes" in self._holds, rows="moments" in self._holds,
        )  # fmt: skip
        self.totals = self.totals + self._scalar([sums.rows, sums.wrong, sums.brier_sum, sums.nll_sum])
        for name in self._holds:
            setattr(self, name, getattr(self, name) + torch.from_numpy(_PARTS[name](sums)).to(self.device))

    def _sketch(self) -> CalibrationSketch:
        """The sketch of what is held; the other parts are empty."""
        rows, wrong, brier, nll = self.totals.tolist()
        held: dict[str, Any] = {name: getattr(self, name).cpu().numpy() for name in self._holds}
        nothing = np.zeros((3, 0))
        bins, classes = (BinSums(*held.get(name, nothing)) for name in ("bins", "classes"))
        return CalibrationSketch(int(rows), wrong, brier, nll, bins, classes, held.get("moments", nothing))

    def _value(self) -> Any:
        assert self.metric is not None
        source = self.metric.source
        options = {name: value for name, value in self.options.items() if name in source.sketch_options}
        return source.of_sketch(self._sketch(), **options)


def _stack(sums: BinSums | None) -> Array:
    assert sums is not None
    return np.stack(sums.parts)


def _moments(sums: Scan) -> Array:
    return interval_moments(*sums.outcomes, CELLS)


_PARTS: dict[str, Any] = {
    "bins": lambda sums: _stack(sums.bins),
    "classes": lambda sums: _stack(sums.classes),
    "moments": _moments,
}


class CalibrationSummary(_SketchMetric):
    """Every number of `focalcal.metrics.summary` as a dict, from one pass. `sketch()` has the reliability bins too.

    Args:
        num_classes: K, how many columns the scores have.
        n_bins: number of confidence bins.
        scores: what `update` is given, "probs" or "logits".
        ignore_index: rows with this label are left out.
    """

    _holds = ("bins", "classes", "moments")

    def sketch(self) -> CalibrationSketch:
        """The `CalibrationSketch` of the rows that this process has seen."""
        return self._sketch()

    def _value(self) -> dict[str, float]:
        return {name: value for name, value in summary_of(self.sketch()).as_dict().items() if name != "n_classes"}


class _ValuesMetric(_ClassMetric):
    """A mean over rows of what needs the probabilities of all classes."""

    totals: Tensor  # rows, the sum of their values

    def _add_states(self) -> None:
        self._add_sums("totals", 2)
        assert self.metric is not None
        settings = repr((self.metric.name, sorted(self.options.items()))).encode()
        self.add_state("settings", torch.tensor(list(settings)), dist_reduce_fx="max")

    def _add(self, preds: Any, target: Any) -> None:
        assert self.metric is not None
        assert isinstance(self.metric.source, FromProbabilities)
        total, rows = self.metric.source.total(self._read(preds, target), self.ignore_index, self.options)
        self.totals = self.totals + self._scalar([rows, total])

    def _value(self) -> Tensor:
        return self.totals[1] / self.totals[0]


class _OutcomesMetric(_ClassMetric):
    """It needs every confidence: the state grows by 16 bytes per row."""

    confidence: list[Tensor]
    correct: list[Tensor]
    exactness: ClassVar[dict[str, str]] = {"": ". It needs every confidence: the state grows by 16 bytes per row"}

    def _add_states(self) -> None:
        self._dtype = torch.float64  # of what torchmetrics gathers from a process without rows
        for name in ("confidence", "correct"):
            self.add_state(name, [], dist_reduce_fx="cat")

    def _add(self, preds: Any, target: Any) -> None:
        confidence, correct = self._scan(preds, target, n_bins=1, rows=True).outcomes
        self.confidence.append(torch.from_numpy(confidence).double().to(self.device))
        self.correct.append(torch.from_numpy(correct).double().to(self.device))

    def _apply(self, fn: Any, exclude_state: Any = "") -> Any:
        this = super()._apply(fn, exclude_state)
        this._dtype = torch.float64
        return this

    def _refuse_empty(self) -> None:
        if sum(map(torch.numel, self._parts(self.confidence))) == 0:
            raise ValueError(f"{type(self).__name__} has seen no row; call update before compute")

    @staticmethod
    def _parts(state: Any) -> list[Tensor]:
        return [state] if isinstance(state, Tensor) else state  # one tensor once processes are gathered

    def _value(self) -> float:
        assert self.metric is not None
        confidence, correct = (torch.cat(self._parts(state)).cpu().numpy() for state in (self.confidence, self.correct))
        return self.metric.source.of_outcomes(confidence, correct > 0, **self.options)
