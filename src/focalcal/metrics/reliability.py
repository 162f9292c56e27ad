"""What a reliability diagram shows, as numbers: per bin how sure, how often right, and how well that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from scipy.special import ndtri

from focalcal.core.arrays import Array
from focalcal.core.binning import BinSums, equal_mass_edges
from focalcal.core.checks import one_of, shown, whole_number
from focalcal.core.display import Displayed, shortened
from focalcal.core.numerics import at_least_float32
from focalcal.metrics.binned_errors import sums_between
from focalcal.metrics.row_weights import counted_probs, kept_weights
from focalcal.metrics.scan import check_bins, even_edges, scan_inputs
from focalcal.predictions.inputs import InputOptions, Inputs, read_inputs


@dataclass(frozen=True, eq=False, repr=False)
class Reliability(Displayed):
    """One entry for each bin (lower, upper]: (bins,) float64 arrays; NaN where a bin is empty.

    Attributes:
        lower: the bins' lower edges, exclusive.
        upper: their upper ones.
        count: rows in each.
        confidence: their mean.
        accuracy: the share of right ones.
        low, high: its Wilson interval; [0, 1] of an empty bin.
        level: of the interval.

    >>> reliability([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]], [0, 1, 0], n_bins=2).count
    array([0., 3.])
    """

    lower: Array
    upper: Array
    count: Array
    confidence: Array
    accuracy: Array
    low: Array
    high: Array
    level: float

    @property
    def gap(self) -> Array:
        """Mean confidence minus accuracy: positive is overconfident."""
        return self.confidence - self.accuracy

    @property
    def surprising(self) -> Array:
        """True where the mean confidence lies outside the interval of the accuracy."""
        return (self.count > 0) & ((self.confidence < self.low) | (self.confidence > self.high))

    @property
    def chance(self) -> tuple[Array, Array]:
        """Between which accuracies a calibrated model's lies at `level`: c +- z sqrt(c (1 - c) / n), inside [0, 1].

        The other side of Wilson's interval: the accuracy leaves this band where the confidence leaves that one. Rows
        count as if each had the mean confidence c, which makes the band a little wide. NaN where a bin is empty.
        """
        centre = np.clip(self.confidence, 0, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            half = float(ndtri(0.5 + self.level / 2)) * np.sqrt(centre * (1 - centre) / self.count)
        return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)

    @property
    def ece(self) -> float:
        """Mean over rows of the gap of their bin, without its sign."""
        filled = self.count > 0
        return float(np.average(np.abs(self.gap[filled]), weights=self.count[filled]))

    def frame(self) -> dict[str, list[Any]]:
        """One row per bin, empty ones too."""
        columns = {
            "lower": self.lower, "upper": self.upper, "rows": np.rint(self.count).astype(np.int64),
            "confidence": self.confidence, "accuracy": self.accuracy, "low": self.low, "high": self.high,
            "surprising": self.surprising,
        }  # fmt: skip
        return {name: values.tolist() for name, values in columns.items()}

    def __str__(self) -> str:
        """A table, one line per bin that is not empty."""
        lines = [f"{'bin':>14} {'rows':>9} {'confidence':>11} {'accuracy':>9}   {self.level:.0%} interval"]
        occupied = np.flatnonzero(self.count)
        for at in shortened(len(occupied)):
            if at is None:
                lines.append(f"{'...':>14}")
                continue
            b = occupied[at]
            mark = " *" if self.surprising[b] else ""
            lines.append(
                f"({self.lower[b]:.3f}, {self.upper[b]:.3f}] {self.count[b]:9.0f} {self.confidence[b]:11.4f} "
                f"{self.accuracy[b]:9.4f}   {self.low[b]:.4f} - {self.high[b]:.4f}{mark}"
            )
        return "\n".join(lines)


def reliability(
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    n_bins: int = 15,
    binning: str = "equal_width",
    class_index: int | None = None,
    level: float = 0.95,
    ignore_index: int | None = None,
    **inputs: Unpack[InputOptions],
) -> Reliability:
    """Confidence against accuracy, bin by bin; with `class_index`, p_k of that class against how often it is right.

    Args:
        probs: (N, K), or in any other form of `focalcal.predictions.read_inputs`, `Predictions` among them.
        labels: (N,), class indices or names.
        logits: in place of probs.
        n_bins: how many bins.
        binning: "equal_width" (edges k / n_bins) or "equal_mass" (the edges of `adaptive_ece`).
        class_index: the class whose probability is looked at, None for the confidence.
        level: of the intervals.
        ignore_index: rows with this label are left out.
        inputs: those of `focalcal.predictions.read_inputs`.

    Returns:
        The bins.

    >>> bins = reliability([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]], [0, 1, 0], n_bins=2)
    >>> bins.count, bins.confidence.round(2), bins.accuracy.round(2)
    (array([0., 3.]), array([nan, 0.8]), array([ nan, 0.67]))
    """
    n_bins = check_bins(n_bins)
    check_level(level)
    one_of("binning", binning, ("equal_width", "equal_mass"))
    even = binning == "equal_width"
    given = read_inputs(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
    if even and class_index is None:
        bins = scan_inputs(given, n_bins=n_bins, ignore_index=ignore_index).bins
        return reliability_of(bins, even_edges(n_bins), level)
    confidence, correct, weights = weighed_outcomes(given, class_index=class_index, ignore_index=ignore_index)
    edges = even_edges(n_bins) if even else equal_mass_edges(confidence, n_bins, weights)
    return reliability_of(sums_between(confidence, correct, edges, weights), edges, level)


def outcomes(given: Inputs, *, class_index: int | None = None, ignore_index: int | None = None) -> tuple[Array, Array]:
    """Per row how sure the prediction is and whether it is right; or p_k of a class and whether that is the label."""
    return weighed_outcomes(given, class_index=class_index, ignore_index=ignore_index)[:2]


def weighed_outcomes(
    given: Inputs, *, class_index: int | None = None, ignore_index: int | None = None
) -> tuple[Array, Array, Array | None]:
    """The same with the weights of the rows, None where they are all alike."""
    sums = scan_inputs(given, ignore_index=ignore_index, rows=class_index is None)
    if class_index is None:
        return *sums.outcomes, sums.weights
    weights = None if given.weights is None else kept_weights(given, ignore_index)
    return *_class_outcomes(given, class_index, ignore_index), weights


def _class_outcomes(given: Inputs, class_index: int, ignore_index: int | None) -> tuple[Array, Array]:
    """p_k and whether it is the label, of the rows that count."""
    if given.kind == "outcomes":
        raise ValueError("class_index needs the probabilities of all classes, got confidence and correct; pass probs")
    whole_number("class_index", class_index, least=0, most=given.scores.shape[1] - 1, remedy="name a column of probs")
    probs, labels = counted_probs(given, ignore_index)
    return at_least_float32(probs[:, class_index]), labels == class_index


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if isinstance(level, bool) or not isinstance(level, (int, float, np.floating)) or not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {shown(level)}; 0.95 is the usual choice")


def reliability_of(bins: BinSums, edges: Array, level: float = 0.95) -> Reliability:
    """From the sums over bins and their edges."""
    count, confidence, correct = bins.parts
    with np.errstate(invalid="ignore"):
        mean, accuracy = confidence / count, correct / count
    low, high = wilson(correct, count, level)
    return Reliability(edges[:-1], edges[1:], count, mean, accuracy, low, high, level)


def wilson(successes: Array, trials: Array, level: float = 0.95) -> tuple[Array, Array]:
    """The score interval of a proportion, [0, 1] without trials. Wilson (1927)."""
    z = float(ndtri(0.5 + level / 2))
    trials = np.asarray(trials, dtype=float)
    n = np.where(trials > 0, trials, 1)
    share = np.asarray(successes, dtype=float) / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At 0 and n successes the ends are exactly 0 and 1, which rounding must not miss.
    low = np.where(successes > 0, np.maximum(centre - half, 0.0), 0.0)
    high = np.where(successes < trials, np.minimum(centre + half, 1.0), 1.0)
    return np.where(trials > 0, low, 0.0), np.where(trials > 0, high, 1.0)
