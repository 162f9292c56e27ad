"""Metrics of data that come in pieces: a state of fixed size, added up over batches, workers and machines.

What is a function of sums (ECE, MCE, classwise ECE, NLL, Brier score, error, ...) is exact: sums over a whole are the
sums over its parts. AdaECE and smECE come from moments over 8,000 equal cells of confidence, each with a bound on how
far it can be from its exact value; smECE is exact as long as it exceeds about 0.012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from focalcal.core.arrays import Array
from focalcal.core.binning import BinSums, equal_width_edges
from focalcal.core.display import Displayed
from focalcal.metrics.cells import CELLS, adaptive_ece_bound_of, smooth_ece_bound_of
from focalcal.metrics.murphy import Murphy, murphy_of
from focalcal.metrics.reliability import Reliability, check_level, reliability_of
from focalcal.metrics.scan import check_bins, scan_inputs
from focalcal.metrics.smooth import interval_moments
from focalcal.metrics.table import METRICS
from focalcal.predictions.inputs import InputOptions, read_inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float

    from focalcal.metrics.metric import Metric


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationSketch(Displayed):
    """Everything the metrics need of a set of rows, in memory that does not grow with their number.

    Make one for each batch with `CalibrationSketch.of(probs, labels)` and add them. `empty(n_classes)` is the zero.
    Every metric that can be had from it is a method: `sketch.ece()`. Of `confidence` and `correct` alone there are no
    classes, and NLL and Brier score are those of one sigmoid output, as `multilabel_nll` and `multilabel_brier` are.

    Attributes:
        rows: how many.
        wrong: how many are predicted wrongly.
        brier_sum: of the rows' Brier scores.
        nll_sum: of their negative log-likelihoods.
        bins: of the confidence.
        classes: of each class's probability, (K, bins).
        moments: (5, cells), over cells of confidence.

    >>> batches = [([[0.9, 0.1], [0.8, 0.2]], [0, 1]), ([[0.6, 0.4]], [0])]
    >>> first, second = (CalibrationSketch.of(*batch) for batch in batches)
    >>> (first + second).rows, round((first + second).error(), 4)
    (3, 0.3333)
    """

    rows: int
    wrong: float
    brier_sum: float
    nll_sum: float
    bins: BinSums  # (n_bins,)
    classes: BinSums  # (K, n_bins)
    moments: Float[Array, "5 cells"]  # over cells of confidence: sums of 1, f, a, f^2, f a

    @classmethod
    def of(
        cls,
        probs: Any = None,
        labels: Any = None,
        *,
        logits: Any = None,
        n_bins: int = 15,
        ignore_index: int | None = None,
        **inputs: Unpack[InputOptions],
    ) -> CalibrationSketch:
        """The sketch of one batch of probabilities (or `logits`) and labels; a batch may be ignored wholly.

        `inputs` are those of `focalcal.predictions.read_inputs`.
        """
        given = read_inputs(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
        if given.weights is not None:
            raise ValueError(
                "a sketch takes no weights, got some; use the metrics themselves, which take sample_weight="
            )
        sums = scan_inputs(
            given, n_bins=n_bins, ignore_index=ignore_index, allow_none=True,
            classes=True, brier=True, nll=True, rows=True,
        )  # fmt: skip
        assert sums.brier_sum is not None
        assert sums.nll_sum is not None
        classes = BinSums(*np.zeros((3, 0, len(sums.bins.count)))) if sums.classes is None else sums.classes
        moments = interval_moments(*sums.outcomes, CELLS)
        return cls(sums.rows, sums.wrong, sums.brier_sum, sums.nll_sum, sums.bins, classes, moments)

    @classmethod
    def empty(cls, n_classes: int, *, n_bins: int = 15) -> CalibrationSketch:
        """The sketch of no rows, which added to another changes nothing."""
        n_bins = check_bins(n_bins)
        zeros = np.zeros((3, n_classes + 1, n_bins))
        return cls(0, 0.0, 0.0, 0.0, BinSums(*zeros[:, 0]), BinSums(*zeros[:, 1:]), np.zeros((5, CELLS)))

    @property
    def total(self) -> float:
        """How much the rows weigh together: each of them one."""
        return self.rows

    def __add__(self, other: CalibrationSketch) -> CalibrationSketch:
        """The sketch of both sets of rows."""
        if self.classes.count.shape != other.classes.count.shape:
            raise ValueError(
                "sketches must agree in classes and bins to be added, "
                f"got {self.classes.count.shape} and {other.classes.count.shape}"
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

    def frame(self) -> dict[str, list[Any]]:
        """One row: every metric that can be had without options."""
        metrics = [name for name, metric in METRICS.items() if self.has(metric)] if self.rows else []
        return {"rows": [self.rows], "n_classes": [len(self.classes.count)]} | {
            name: [getattr(self, name)()] for name in metrics
        }

    def has(self, metric: Metric) -> bool:
        """Whether it is enough for the metric."""
        return metric.source.holds in (
            ("bins", "classes", "moments") if len(self.classes.count) else ("bins", "moments")
        )

    def murphy(self) -> Murphy:
        """As `focalcal.metrics.murphy` of the confidence, exact."""
        _, _, correct, squares, products = self._nonempty().moments.sum(1).tolist()
        return murphy_of(self.bins, (squares - 2 * products + correct) / self.rows)

    def reliability(self, level: float = 0.95) -> Reliability:
        """As `focalcal.metrics.reliability`, exact."""
        check_level(level)
        return reliability_of(self._nonempty().bins, equal_width_edges(len(self.bins.count)), level)

    def adaptive_ece_bound(self, n_bins: int = 15) -> float:
        """How far `adaptive_ece` can be from its exact value on the same rows."""
        return float(adaptive_ece_bound_of(self._nonempty().moments, n_bins))

    def smooth_ece_bound(self) -> float:
        """How far `smooth_ece` can be from its exact value on the same rows."""
        return float(smooth_ece_bound_of(self._nonempty().moments))

    def _nonempty(self) -> CalibrationSketch:
        if self.rows == 0:
            raise ValueError("the sketch is empty; add at least one batch to it before asking for a metric")
        return self

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., float]:
            """Every metric of the table that it is enough for."""


def _method(metric: Metric) -> Callable[..., float]:
    names = list(metric.source.sketch_options)

    def value(self: CalibrationSketch, *positional: Any, **options: Any) -> float:
        if not self.has(metric):
            raise ValueError(f"{metric.name} needs the probabilities of all classes, got confidence and correct alone")
        return metric.source.of_sketch(self._nonempty(), **dict(zip(names, positional, strict=False)), **options)

    value.__name__, value.__qualname__ = metric.name, f"CalibrationSketch.{metric.name}"
    bound = f"; see `{metric.name}_bound`" if metric.source.holds == "moments" else ", exact"
    value.__doc__ = f"As `focalcal.metrics.{metric.name}`{bound}."
    return value


for _metric in METRICS.values():
    if _metric.source.holds:
        setattr(CalibrationSketch, _metric.name, _method(_metric))
