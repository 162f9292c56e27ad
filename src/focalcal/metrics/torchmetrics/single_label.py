"""Adapters of the metrics of one label a row."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from focalcal.core.binning import BinSums
from focalcal.core.checks import finite, on_simplex, one_of, whole_number
from focalcal.core.scores import scores_and_labels
from focalcal.metrics.detection import binary_aurc
from focalcal.metrics.ece import confidence_gap_of, debiased_ece_of, ece_of, mce_of, rms_ce_of
from focalcal.metrics.proper import in_top
from focalcal.metrics.scan import check_bins, scan
from focalcal.metrics.sketch import CELLS, CalibrationSketch, adaptive_ece_of, spread
from focalcal.metrics.smooth import Smoother, interval_moments, smooth_ece_of
from focalcal.metrics.summary import summary_of
from focalcal.metrics.sums import Scan
from focalcal.metrics.torchmetrics.sums import SumsMetric


class _SketchMetric(SumsMetric):
    """`num_classes`: K. `scores`: what update is given, (N, K) or (N, K, d1, ...). `ignore_index`: labels left out."""

    totals: Tensor  # rows, wrong, Brier, NLL
    bins: Tensor  # (3, n_bins)
    classes: Tensor  # (3, K, n_bins)
    moments: Tensor  # (5, CELLS)
    _holds: ClassVar[tuple[str, ...]] = ("bins",)

    def __init__(
        self,
        num_classes: int,
        *,
        scores: str = "probs",
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.n_bins: int = kwargs.pop("n_bins", 15)
        check_bins(self.n_bins)
        super().__init__(num_classes, "num_classes", scores, ignore_index, **kwargs)
        self.num_classes = num_classes
        self._add_sums("totals", 4)
        shapes = {"bins": (3, self.n_bins), "classes": (3, num_classes, self.n_bins), "moments": (5, CELLS)}
        for name in self._holds:
            self._add_sums(name, *shapes[name])

    def update(self, preds: Any, target: Any) -> None:
        """Add the rows of a batch: scores (N, K) or (N, K, d1, ...) and labels (N, d1, ...)."""
        if self._rows_in(preds, target) == 0:
            return
        probs, logits = (preds, None) if self.scores == "probs" else (None, preds)
        found = scan(
            probs, target, logits=logits, n_bins=self.n_bins, ignore_index=self.ignore_index, brier=True, nll=True,
            classes="classes" in self._holds, rows="moments" in self._holds,
        )  # fmt: skip
        self.totals = self.totals + self._scalar([found.rows, found.wrong, found.brier, found.nll])
        for name in self._holds:
            setattr(self, name, getattr(self, name) + _SUMS[name](found).to(self.device))

    def _mean(self, total: int) -> Tensor:
        return self.totals[total] / self.totals[0]


def _stacked(sums: BinSums | None) -> Tensor:
    assert sums is not None
    return torch.stack(sums.parts)


def _moments(found: Scan) -> Tensor:
    assert found.confidence is not None
    assert found.correct is not None
    return interval_moments(found.confidence, found.correct, CELLS)


_SUMS: dict[str, Any] = {
    "bins": lambda found: _stacked(found.bins),
    "classes": lambda found: _stacked(found.classes),
    "moments": _moments,
}


class _Binned(_SketchMetric):
    def __init__(
        self,
        num_classes: int,
        *,
        n_bins: int = 15,
        scores: str = "probs",
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, n_bins=n_bins, scores=scores, ignore_index=ignore_index, **kwargs)


class ECE(_Binned):
    """`focalcal.metrics.ece`."""

    def _value(self) -> Tensor:
        return torch.as_tensor(ece_of(BinSums(*self.bins)))


class MCE(_Binned):
    """`focalcal.metrics.mce`."""

    def _value(self) -> Tensor:
        return torch.as_tensor(mce_of(BinSums(*self.bins)))


class RMSCE(_Binned):
    """`focalcal.metrics.rms_ce`."""

    def _value(self) -> Tensor:
        return torch.as_tensor(rms_ce_of(BinSums(*self.bins)))


class DebiasedECE(_Binned):
    """`focalcal.metrics.debiased_ece`, `norm` "l1" or "l2"."""

    def __init__(self, num_classes: int, *, norm: str = "l1", **kwargs: Any) -> None:
        one_of("norm", norm, ("l1", "l2"))
        super().__init__(num_classes, **kwargs)
        self.norm = norm

    def _value(self) -> Tensor:
        return torch.as_tensor(debiased_ece_of(BinSums(*self.bins), self.norm))


class ClasswiseECE(_Binned):
    """`focalcal.metrics.classwise_ece`."""

    _holds = ("classes",)

    def _value(self) -> Tensor:
        return torch.as_tensor(ece_of(BinSums(*self.classes)).mean())


class AdaptiveECE(_Binned):
    """`focalcal.metrics.adaptive_ece` within the bound of the sketch."""

    _holds = ("moments",)

    def _value(self) -> float:
        return float(adaptive_ece_of(self.moments[None].cpu().numpy(), self.n_bins)[0])


class SmoothECE(_SketchMetric):
    """`focalcal.metrics.smooth_ece`, exact from about 0.012 on, else within the bound of the sketch."""

    _holds = ("moments",)

    def _value(self) -> float:
        moments = self.moments[None].cpu().numpy()
        return float(smooth_ece_of(Smoother(lambda n: spread(moments, n)), 1)[0][0])


class ConfidenceGap(_SketchMetric):
    """`focalcal.metrics.confidence_gap`."""

    higher_is_better = None
    plot_lower_bound = -1.0

    def _value(self) -> Tensor:
        return torch.as_tensor(confidence_gap_of(BinSums(*self.bins)))


class NLL(_SketchMetric):
    """`focalcal.metrics.nll`; from logits it is finite where a probability has underflowed to 0."""

    def _value(self) -> Tensor:
        return self._mean(3)


class Brier(_SketchMetric):
    """`focalcal.metrics.brier`."""

    def _value(self) -> Tensor:
        return self._mean(2)


class Error(_SketchMetric):
    """`focalcal.metrics.error`."""

    def _value(self) -> Tensor:
        return self._mean(1)


class CalibrationSummary(_Binned):
    """Every number of `focalcal.metrics.summary` as a dict, from one pass. `sketch()` has the reliability bins too."""

    _holds = ("bins", "classes", "moments")

    def sketch(self) -> CalibrationSketch:
        """The `CalibrationSketch` of the rows that this process has seen."""
        rows, wrong, brier, nll = self.totals.tolist()
        bins, classes, moments = self.bins.cpu(), self.classes.cpu(), self.moments.cpu()
        return CalibrationSketch(int(rows), wrong, brier, nll, BinSums(*bins), BinSums(*classes), moments)

    def _value(self) -> dict[str, float]:
        return {name: value for name, value in summary_of(self.sketch()).as_dict().items() if name != "n_classes"}


class TopKAccuracy(SumsMetric):
    """`focalcal.metrics.top_k_accuracy`; logits are ranked as they are."""

    higher_is_better = True
    plot_upper_bound = 1.0
    totals: Tensor  # rows, hits

    def __init__(
        self,
        num_classes: int,
        *,
        k: int = 5,
        scores: str = "probs",
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, "num_classes", scores, ignore_index, **kwargs)
        self.k = whole_number("k", k, least=1, most=num_classes, remedy=f"num_classes is {num_classes}")
        self._add_sums("totals", 2)
        self.add_state("depth", torch.tensor(k), dist_reduce_fx="max")

    def update(self, preds: Any, target: Any) -> None:
        """Add the rows of a batch: scores (N, K) or (N, K, d1, ...) and labels (N, d1, ...)."""
        if self._rows_in(preds, target) == 0:
            return
        scores, labels = scores_and_labels(self.scores, preds, target, ignore_index=self.ignore_index)
        flat, index = scores.movedim(1, -1).reshape(-1, self._width), labels.flatten()
        if self.ignore_index is not None:
            flat, index = flat[index != self.ignore_index], index[index != self.ignore_index]
        (finite if self.scores == "logits" else on_simplex)(self.scores, flat)
        self.totals = self.totals + self._scalar([len(index), int(in_top(flat, index, self.k).sum())])

    def _value(self) -> Tensor:
        return self.totals[1] / self.totals[0]


class AURC(SumsMetric):
    """`focalcal.metrics.aurc`. It needs every confidence: the state grows by 16 bytes a row."""

    confidence: list[Tensor]
    wrong: list[Tensor]

    def __init__(
        self,
        num_classes: int,
        *,
        scores: str = "probs",
        ignore_index: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, "num_classes", scores, ignore_index, **kwargs)
        self._dtype = torch.float64  # of what torchmetrics gathers from a process without rows
        for name in ("confidence", "wrong"):
            self.add_state(name, [], dist_reduce_fx="cat")

    def update(self, preds: Any, target: Any) -> None:
        """Add the rows of a batch: scores (N, K) or (N, K, d1, ...) and labels (N, d1, ...)."""
        if self._rows_in(preds, target) == 0:
            return
        probs, logits = (preds, None) if self.scores == "probs" else (None, preds)
        found = scan(probs, target, logits=logits, n_bins=1, ignore_index=self.ignore_index, rows=True)
        assert found.confidence is not None
        assert found.correct is not None
        self.confidence.append(found.confidence.double().to(self.device))
        self.wrong.append((~found.correct).double().to(self.device))

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
        confidence, wrong = (torch.cat(self._parts(state)).cpu().numpy() for state in (self.confidence, self.wrong))
        return binary_aurc(confidence, wrong > 0)
