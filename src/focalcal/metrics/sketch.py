"""Metrics of data that come in pieces: a state of fixed size, added up over batches, workers and machines.

ECE, MCE, classwise ECE, NLL, Brier score, error and confidence gap are exact: sums over a whole are the sums over
its parts. AdaECE and smECE come from moments over 8,000 equal cells of confidence, each with a bound on how far
it can be from its exact value; smECE is exact as long as it exceeds about 0.012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from focalcal.core.binning import BinSums, equal_width_edges
from focalcal.core.checks import one_of
from focalcal.metrics.ece import confidence_gap_of, debiased_ece_of, ece_of, mce_of, rms_ce_of
from focalcal.metrics.proper import Murphy, murphy_of
from focalcal.metrics.reliability import Reliability, check_level, reliability_of
from focalcal.metrics.scan import check_bins, scan
from focalcal.metrics.smooth import STEPS, Smoother, interval_moments, intervals_for, sensitivity, smooth_ece_of

if TYPE_CHECKING:
    from jaxtyping import Float

Array = np.ndarray[Any, Any]
CELLS = 8000  # a multiple of the 1,000 node intervals of smECE


@dataclass(frozen=True, eq=False)
class CalibrationSketch:
    """Everything the metrics need of a set of rows, in memory that does not grow with their number.

    Make one for each batch with `CalibrationSketch.of(probs, labels)` and add them. `empty(n_classes)` is the zero.
    """

    rows: int
    wrong: float
    brier_sum: float
    nll_sum: float
    bins: BinSums  # (n_bins,)
    classes: BinSums  # (K, n_bins)
    moments: Float[Tensor, "5 cells"]  # over cells of confidence: sums of 1, f, a, f^2, f a

    @classmethod
    def of(
        cls,
        probs: Any = None,
        labels: Any = None,
        *,
        logits: Any = None,
        n_bins: int = 15,
        ignore_index: int | None = None,
    ) -> CalibrationSketch:
        """The sketch of one batch of probabilities (or `logits`) and labels; a batch may be ignored wholly."""
        found = scan(
            probs, labels, logits=logits, n_bins=n_bins, ignore_index=ignore_index,
            classes=True, brier=True, nll=True, rows=True, allow_none=True,
        )  # fmt: skip
        assert found.brier is not None
        assert found.nll is not None
        assert found.classes is not None
        assert found.confidence is not None
        assert found.correct is not None
        moments = interval_moments(found.confidence, found.correct, CELLS)
        return cls(found.rows, found.wrong, found.brier, found.nll, found.bins, found.classes, moments)

    @classmethod
    def empty(cls, n_classes: int, *, n_bins: int = 15) -> CalibrationSketch:
        """The sketch of no rows, which added to another changes nothing."""
        check_bins(n_bins)
        zeros = torch.zeros(3, n_classes + 1, n_bins, dtype=torch.float64)
        return cls(
            0, 0.0, 0.0, 0.0, BinSums(*zeros[:, 0]), BinSums(*zeros[:, 1:]), torch.zeros(5, CELLS, dtype=torch.float64)
        )

    def __add__(self, other: CalibrationSketch) -> CalibrationSketch:
        """The sketch of both sets of rows."""
        if self.classes.count.shape != other.classes.count.shape:
            raise ValueError(
                "sketches must agree in classes and bins to be added, "
                f"got {tuple(self.classes.count.shape)} and {tuple(other.classes.count.shape)}"
            )
        return CalibrationSketch(
            self.rows + other.rows,
            self.wrong + other.wrong,
            self.brier_sum + other.brier_sum,
            self.nll_sum + other.nll_sum,
            self.bins + other.bins,
            self.classes + other.classes,
            self.moments + other.moments,
        )

    def __radd__(self, other: int) -> CalibrationSketch:
        """Itself, so that `sum` of sketches can begin at 0."""
        if other != 0:
            return NotImplemented
        return self

    def ece(self) -> float:
        """As `focalcal.metrics.ece`, exact."""
        return float(ece_of(self._nonempty().bins))

    def mce(self) -> float:
        """As `focalcal.metrics.mce`, exact."""
        return float(mce_of(self._nonempty().bins))

    def rms_ce(self) -> float:
        """As `focalcal.metrics.rms_ce`, exact."""
        return float(rms_ce_of(self._nonempty().bins))

    def debiased_ece(self, norm: str = "l1") -> float:
        """As `focalcal.metrics.debiased_ece`, exact."""
        one_of("norm", norm, ("l1", "l2"))
        return float(debiased_ece_of(self._nonempty().bins, norm))

    def classwise_ece(self) -> float:
        """As `focalcal.metrics.classwise_ece`, exact."""
        return float(ece_of(self._nonempty().classes).mean())

    def confidence_gap(self) -> float:
        """As `focalcal.metrics.confidence_gap`, exact."""
        return float(confidence_gap_of(self._nonempty().bins))

    def nll(self) -> float:
        """As `focalcal.metrics.nll`, exact."""
        return self._nonempty().nll_sum / self.rows

    def brier(self) -> float:
        """As `focalcal.metrics.brier`, exact."""
        return self._nonempty().brier_sum / self.rows

    def error(self) -> float:
        """As `focalcal.metrics.error`, exact."""
        return self._nonempty().wrong / self.rows

    def murphy(self) -> Murphy:
        """As `focalcal.metrics.murphy` of the confidence, exact."""
        _, _, correct, squares, products = self._nonempty().moments.sum(1).tolist()
        return murphy_of(self.bins, (squares - 2 * products + correct) / self.rows)

    def reliability(self, level: float = 0.95) -> Reliability:
        """As `focalcal.metrics.reliability`, exact."""
        check_level(level)
        return reliability_of(self._nonempty().bins, equal_width_edges(len(self.bins.count)), level)

    def adaptive_ece(self, n_bins: int = 15) -> float:
        """As `focalcal.metrics.adaptive_ece`, with every cell kept whole; see `adaptive_ece_bound`."""
        return float(adaptive_ece_of(self._nonempty().moments[None].numpy(), n_bins)[0])

    def adaptive_ece_bound(self, n_bins: int = 15) -> float:
        """How far `adaptive_ece` can be from its exact value on the same rows."""
        return float(adaptive_ece_bound_of(self._nonempty().moments.numpy(), n_bins))

    def smooth_ece(self) -> float:
        """As `focalcal.metrics.smooth_ece`; see `smooth_ece_bound`."""
        moments = self._nonempty().moments[None].numpy()
        return float(smooth_ece_of(Smoother(lambda n: spread(moments, n)), 1)[0][0])

    def smooth_ece_bound(self) -> float:
        """How far `smooth_ece` can be from its exact value on the same rows."""
        return float(smooth_ece_bound_of(self._nonempty().moments.numpy()))

    def _nonempty(self) -> CalibrationSketch:
        if self.rows == 0:
            raise ValueError("the sketch is empty; add at least one batch to it before asking for a metric")
        return self


# ---- from moments over cells, (sets, 5, CELLS) ----


def _splits(count: Array, n_bins: int) -> tuple[Array, Array]:
    """For each inner edge of equal mass the cell that holds its order statistic, and that of the next one."""
    cumulative = torch.from_numpy(np.ascontiguousarray(count)).cumsum(-1)
    total = cumulative[..., -1:]
    rank = torch.arange(1, n_bins, dtype=torch.float64) * total / n_bins
    below = rank.floor().clamp(max=total - 1)
    after = (below + 1).clamp(max=total - 1)
    cells = torch.searchsorted(cumulative, torch.cat([below, after], -1), right=True).numpy()
    return cells[..., : n_bins - 1], cells[..., n_bins - 1 :]


def adaptive_ece_of(moments: Array, n_bins: int = 15) -> Array:
    """AdaECE (sets,) with the members of a cell kept together: all on the near side of an edge inside it."""
    check_bins(n_bins)
    count, residual = moments[:, 0], moments[:, 1] - moments[:, 2]
    cumulative = residual.cumsum(-1)
    at_edge = np.take_along_axis(cumulative, _splits(count, n_bins)[0], -1)
    whole = cumulative[:, -1:]
    sums = np.diff(np.concatenate([np.zeros_like(whole), at_edge, whole], -1))
    error: Array = np.abs(sums).sum(-1) / count.sum(-1)
    return error


def adaptive_ece_bound_of(moments: Array, n_bins: int = 15) -> float:
    """How far `adaptive_ece_of` can be off, derived in docs/math/sketch.md.

    An edge inside a cell may put part of it on the wrong side. Whatever part that is, its residuals add up to no
    more than those of the cell's wrong rows or of its right rows, and two bins change by that; with several edges in
    one cell the bins between them hold both kinds.
    """
    count, f, correct, _, products = moments
    cell, following = (part[0] for part in _splits(count[None], n_bins))
    inside, times = np.unique(cell[cell == following], return_counts=True)
    wrong, right = (f - products)[inside], (correct - products)[inside]
    larger = np.maximum(wrong, right)
    return float(np.where(times > 1, wrong + right + larger, 2 * larger).sum() / count.sum())


def spread(moments: Array, intervals: int) -> Array:
    """Moments over another number of intervals: exactly if cells nest in them, else with a cell's right rows and its
    wrong rows each at their mean.
    """
    sets = len(moments)
    if CELLS % intervals == 0:
        nested: Array = moments.reshape(sets, 5, intervals, -1).sum(-1)
        return nested
    count, f, correct, _, products = np.moveaxis(moments, 1, 0)
    result = np.zeros((sets, 5, intervals))
    for mass, total, outcome in ((correct, products, 1.0), (count - correct, f - products, 0.0)):
        occupied = np.flatnonzero(mass.any(0))
        m, t = mass[:, occupied], total[:, occupied]
        mean = np.divide(t, m, out=np.zeros_like(t), where=m > 0)
        index = np.clip(np.ceil(mean * intervals).astype(int) - 1, 0, intervals - 1)
        flat = (np.arange(sets)[:, None] * intervals + index).ravel()
        for row, value in enumerate((m, t, outcome * m, t * mean, outcome * t)):
            added = np.bincount(flat, value.ravel(), minlength=sets * intervals)
            result[:, row] += added.reshape(sets, intervals)
    return result


def smooth_ece_bound_of(moments: Array) -> float:
    """How far `smooth_ece_of` can be off after `spread`, derived in docs/math/sketch.md.

    At a width whose nodes do not align with the cells, rows at their cell's mean change the error by at most
    h / 4 (kink (E|f - a| + h) + count_kink error) + h^2 / 4 slope, with cells of width h and the `sensitivity` of the
    width. Where that could change which width is chosen, the errors at all widths that might be count too.
    """
    count = moments[0].sum()
    smoother, first = Smoother(lambda n: spread(moments[None], n)), np.array([0])
    value, width = (float(part[0]) for part in smooth_ece_of(smoother, 1))
    residual = float((moments[1] - moments[4]).sum() + (moments[2] - moments[4]).sum()) / count
    h = 1 / CELLS

    def slack(s: float) -> float:
        if CELLS % intervals_for(s) == 0:
            return 1e-10  # rounding
        slope, kink, count_kink = sensitivity(s)
        moved = h / 4 * (kink * (residual + h) + count_kink * errors[round(s * STEPS)]) + h * h / 4 * slope
        return float(moved) + 1e-10

    chosen = round(width * STEPS)
    nearby = range(max(1, chosen - 16), min(STEPS, chosen + 16) + 1)
    errors = {step: float(smoother.error(step / STEPS, first)[0]) for step in nearby}

    def may_be_enough(step: int) -> bool:
        return step > 1 and step / STEPS >= errors[step] - slack(step / STEPS)

    def may_be_too_narrow(step: int) -> bool:
        return step <= 1 or step not in errors or step / STEPS < errors[step] + slack(step / STEPS)

    possible = [step for step in nearby if may_be_enough(step) and may_be_too_narrow(step - 1)]
    return max(abs(errors[step] - value) + slack(step / STEPS) for step in {*possible, chosen})
