"""What a metric is computed from: sums over bins, sums over classes, a sum over rows, or every row.

A source has the formula `of` and knows where its ingredients are: in a pass over an array, in a sketch, in resamples. A
formula's options are its parameters with defaults, which it checks itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from focalcal.core.arrays import Array
from focalcal.core.numerics import at_least_float32
from focalcal.metrics.bootstrap_statistics import Binned, Classwise, Draw, MeanOfRows
from focalcal.metrics.cells import spread
from focalcal.metrics.scan import Scan, no_rows, scan_inputs, scan_of_outcomes, weighed_pieces
from focalcal.predictions.inputs import read_inputs

if TYPE_CHECKING:
    from focalcal.metrics.sketch import CalibrationSketch
    from focalcal.predictions import Inputs

    Statistic = Callable[[Draw], Array]
    Rows = Callable[[], tuple[Array, Array]]  # probabilities (rows, K) and labels (rows,), without the ignored ones

N_BINS = 15


class Source:
    """Methods take those options that are not left at their defaults."""

    asks: Mapping[str, bool] = MappingProxyType({})  # what a pass over an array is asked for besides the bins
    binned = False  # whether the number of the pass's bins matters
    holds = ""  # the part of a sketch that it needs: bins, classes or moments; "" if a sketch is not enough
    read = staticmethod(read_inputs)  # makes scores and labels of what the caller has

    def __init__(self, of: Callable[..., Any]) -> None:
        self.of = of

    @cached_property
    def options(self) -> dict[str, Any]:
        """Name -> default."""
        return {**({"n_bins": N_BINS} if self.binned else {}), **defaults(self.of)}

    @cached_property
    def sketch_options(self) -> dict[str, Any]:
        """Those that are still open when all there is is a sketch."""
        return defaults(self.of)

    @property
    def needs_classes(self) -> bool:
        """Whether the confidence of each prediction, and whether it is right, are not enough."""
        return not self.asks.keys() <= {"rows", "brier", "nll"}

    def measure(self, given: Inputs, ignore_index: int | None, options: dict[str, Any]) -> float:
        """The metric of scores and labels."""
        n_bins = options.get("n_bins", N_BINS) if self.binned else 1
        return self.of_scan(scan_inputs(given, n_bins=n_bins, ignore_index=ignore_index, **self.asks), **options)

    def of_scan(self, sums: Scan | CalibrationSketch, **options: Any) -> float:
        """The metric of the rows of a pass with as many bins as the options say."""
        raise NotImplementedError(f"{type(self).__name__} needs more than a pass keeps")

    def of_sketch(self, sketch: CalibrationSketch, **options: Any) -> float:
        """The metric of the rows of a sketch."""
        return self.of_scan(sketch, **options)

    def resample(self, sums: Scan, rows: Rows, **options: Any) -> Statistic | None:
        """The metric of many resamples at once; None if these options allow no such way."""
        raise NotImplementedError(f"{type(self).__name__} needs the rows of an event")

    def of_outcomes(self, confidence: Array, correct: Array, **options: Any) -> float:
        """The metric of confidences (n,) and outcomes (n,) bool: those of one sigmoid output, for instance."""
        return self.of_scan(scan_of_outcomes(confidence, correct, options.get("n_bins", N_BINS)), **options)

    def resample_outcomes(self, confidence: Array, correct: Array, **options: Any) -> Statistic | None:
        """The same of many resamples at once."""
        pair = confidence, correct
        return self.resample(scan_of_outcomes(*pair, options.get("n_bins", N_BINS)), lambda: pair, **options)


class FromBins(Source):
    """`of(bins, **options)` of sums over bins of confidence, (..., bins); `binned` if it matters how many there are."""

    holds = "bins"

    def __init__(self, of: Callable[..., Array], *, binned: bool = True) -> None:
        super().__init__(of)
        self.binned = binned

    def of_scan(self, sums: Scan | CalibrationSketch, *, n_bins: int = N_BINS, **options: Any) -> float:
        """From the sums over bins."""
        return float(self.of(sums.bins, **options))

    def resample(self, sums: Scan, rows: Rows, *, n_bins: int = N_BINS, **options: Any) -> Statistic:
        """From sums over bins."""
        confidence, correct = (each.astype(np.float64) for each in sums.outcomes)
        return Binned(confidence, correct, n_bins if self.binned else 1, partial(self.of, **options))


class FromClasses(Source):
    """`of(residual, rows)` of the sums of p_k - 1[label = k] over each class and bin of p_k, (..., K, bins)."""

    asks = MappingProxyType({"classes": True})
    binned = True
    holds = "classes"

    def of_scan(self, sums: Scan | CalibrationSketch, **options: Any) -> float:
        """From the sums over classes and bins."""
        assert sums.classes is not None
        _, confidence, correct = sums.classes.parts
        return float(self.of(confidence - correct, sums.total))

    def resample(self, sums: Scan, rows: Rows, *, n_bins: int = N_BINS, **options: Any) -> Statistic:
        """From sums over classes and bins."""
        return Classwise(*rows(), n_bins, self.of)


class FromTotal(Source):
    """The mean over rows of what a pass adds up, its field `total`."""

    holds = "bins"  # whatever a sketch holds, it has the totals; so adapters share one state with those from bins

    def __init__(self, total: Literal["wrong", "brier_sum", "nll_sum"]) -> None:
        super().__init__(self.of_scan)
        self.total = total
        self.asks = {} if total == "wrong" else {total.removesuffix("_sum"): True}

    def of_scan(self, sums: Scan | CalibrationSketch, **options: Any) -> float:
        """The total by the number of rows."""
        return float(getattr(sums, self.total)) / sums.total

    def resample(self, sums: Scan, rows: Rows, **options: Any) -> Statistic:
        """Means of the rows' values."""
        own = {"wrong": sums.correct, "brier_sum": sums.row_brier, "nll_sum": sums.row_nll}[self.total]
        assert own is not None
        return MeanOfRows((~own if self.total == "wrong" else own).astype(np.float64))


class FromOutcomes(Source):
    """`of(confidence, correct, **options)` of every row's confidence (n,) and whether it is right (n,) bool.

    And the same for many sets of rows at once: `cells(moments, **options)`, of moments over cells of confidence, which
    will do for a sketch, and `statistic(confidence, correct, **options)`, a function of resamples.
    """

    asks = MappingProxyType({"rows": True})
    holds = "moments"

    def __init__(
        self, of: Callable[..., float], *, cells: Callable[..., Array], statistic: Callable[..., Statistic]
    ) -> None:
        super().__init__(of)
        self.cells, self.statistic = cells, statistic

    @cached_property
    def sketch_options(self) -> dict[str, Any]:
        """Those of the function of cells."""
        return defaults(self.cells)

    def of_scan(self, sums: Scan | CalibrationSketch, **options: Any) -> float:
        """From the rows."""
        assert isinstance(sums, Scan)
        return float(self.of(*sums.outcomes, weights=sums.weights, **options))

    def of_sketch(self, sketch: CalibrationSketch, **options: Any) -> float:
        """From the cells."""
        moments = sketch.moments[None]
        return float(self.cells(lambda cells: spread(moments, cells), **options)[0])

    def resample(self, sums: Scan, rows: Rows, **options: Any) -> Statistic | None:
        """From cells or nodes."""
        if not options.keys() <= self.sketch_options.keys():
            return None
        confidence, correct = (each.astype(np.float64) for each in sums.outcomes)
        return self.statistic(confidence, correct, **options)


class FromProbabilities(Source):
    """The mean over rows of `of(scores, labels, **options)`, (n,), which needs the order of all classes' scores."""

    needs_classes = True

    def measure(self, given: Inputs, ignore_index: int | None, options: dict[str, Any]) -> float:
        """The mean over the rows."""
        total, rows = self.total(given, ignore_index, options)
        if rows == 0:
            raise no_rows(ignore_index)
        return total / rows

    def total(self, given: Inputs, ignore_index: int | None, options: dict[str, Any]) -> tuple[float, float]:
        """The sum over the rows, piece by piece, and what these weigh; a pass over them checks them."""
        rows = scan_inputs(given, n_bins=1, ignore_index=ignore_index, allow_none=True).total
        pieces = weighed_pieces(given, ignore_index)
        return sum(float(own @ self.of(at_least_float32(part), y, **options)) for part, y, own in pieces), rows

    def resample(self, sums: Scan, rows: Rows, **options: Any) -> Statistic:
        """Means of the rows' values."""
        return MeanOfRows(self.of(*rows(), **options).astype(np.float64))


def defaults(formula: Callable[..., Any]) -> dict[str, Any]:
    """The options of a formula: its parameters that have a default."""
    parameters = inspect.signature(formula).parameters.values()
    optional = {each.name: each.default for each in parameters if each.default is not each.empty}
    return {name: value for name, value in optional.items() if name != "weights"}
