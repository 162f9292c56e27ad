"""The usual numbers of a classifier's probabilities, from one pass over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from focalcal.core.display import Displayed
from focalcal.metrics.reliability import Reliability, check_level, reliability_of
from focalcal.metrics.scan import check_bins, even_edges, scan_inputs
from focalcal.metrics.table import METRICS
from focalcal.predictions.inputs import InputOptions, read_inputs

if TYPE_CHECKING:
    from focalcal.metrics.sketch import CalibrationSketch

SUMMARY = {name: metric for name, metric in METRICS.items() if metric.in_summary}


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Displayed):
    """`values`: each metric as the function of its name gives it, and an attribute too (`found.ece`).

    Attributes:
        rows: how many.
        n_classes: K, None where only confidences were given.
        values: each metric by name.
        reliability: the bins.
        classes: the names of the classes if labels were names.

    >>> found = summary([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]], [0, 1, 0])
    >>> found.rows, found.n_classes, round(found.brier, 4)
    (3, 2, 0.54)
    """

    rows: int
    n_classes: int | None
    values: dict[str, float]
    reliability: Reliability
    classes: tuple[Any, ...] | None = None

    def __getattr__(self, name: str) -> float:
        """The metric of that name."""
        return value_in_summary(self, name)

    def as_dict(self) -> dict[str, Any]:
        """The numbers without the bins, for a table or a log."""
        known = {} if self.n_classes is None else {"n_classes": self.n_classes}
        return {"rows": self.rows, **known, **self.values}

    def __iter__(self) -> Iterator[str]:
        """The names of the metrics."""
        return iter(self.values)

    def keys(self) -> Iterable[str]:
        """The names of the metrics, so that `dict(found)` is what loggers of metrics take."""
        return self.values.keys()

    def items(self) -> Iterable[tuple[str, float]]:
        """The metrics by name."""
        return self.values.items()

    def __getitem__(self, name: str) -> float:
        """The metric of that name."""
        return self.values[name]

    def frame(self) -> dict[str, list[Any]]:
        """One row per metric."""
        return {"metric": list(self.values), "value": list(self.values.values())}

    def __str__(self) -> str:
        """One line per number, and which way the confidences err."""
        lines = [f"{self.rows:,} rows" + ("" if self.n_classes is None else f", {self.n_classes} classes")]
        if self.classes is not None:
            shown = ", ".join(map(str, self.classes[:10])) + (", ..." if len(self.classes) > 10 else "")
            lines[0] += f": {shown}"
        for name, value in self.values.items():
            number = f"{value:+.4f}" if METRICS[name].limits[0] < 0 else f"{value:7.4f}"
            lines.append(f"  {name.replace('_', ' '):<15} {number}")
            if name == "confidence_gap":
                lean = "overconfident" if value > 0 else "underconfident" if value < 0 else "balanced"
                lines[-1] += f"  {lean} on average"
        return "\n".join(lines)


def value_in_summary(of: Any, name: str) -> Any:
    """The metric of a summary as its attribute."""
    values = of.__dict__.get("values", {})  # not there yet while it is unpickled
    if name in values:
        return values[name]
    raise AttributeError(f"{type(of).__name__} has no attribute {name!r}; its metrics are {', '.join(values)}")


def summary(
    probs: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    n_bins: int = 15,
    level: float = 0.95,
    ignore_index: int | None = None,
    **inputs: Unpack[InputOptions],
) -> Summary:
    """Error, NLL, Brier score, calibration errors and reliability bins of probabilities, or of `logits`, and labels.

    Of `confidence` and `correct` alone there are those metrics that need no more.

    Args:
        probs: (N, K), or in any other form of `focalcal.predictions.read_inputs`, `Predictions` among them.
        labels: (N,), class indices or names.
        logits: in place of probs.
        n_bins: how many bins.
        level: of the reliability bins' intervals.
        ignore_index: rows with this label are left out.
        inputs: those of `focalcal.predictions.read_inputs`.

    Returns:
        The metrics by name, and the bins.

    >>> found = summary([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]], [0, 1, 0])
    >>> round(found.ece, 4), round(found.error, 4)
    (0.4333, 0.3333)
    """
    check_level(level)
    n_bins = check_bins(n_bins)
    given = read_inputs(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
    every = given.kind != "outcomes"
    sums = scan_inputs(given, n_bins=n_bins, ignore_index=ignore_index, classes=True, brier=True, nll=True, rows=True)
    values = {
        name: metric.source.of_scan(sums, **metric.bins_option(n_bins))
        for name, metric in SUMMARY.items()
        if every or not metric.source.needs_classes
    }
    n_classes = None if sums.classes is None else len(sums.classes.count)
    bins = reliability_of(sums.bins, even_edges(n_bins), level)
    return Summary(sums.rows, n_classes, values, bins, given.classes)


def summary_of(sketch: CalibrationSketch, level: float = 0.95) -> Summary:
    """The same from a sketch; AdaECE and smECE within the sketch's bounds."""
    n_bins = len(sketch.bins.count)
    values = {}
    for name, metric in SUMMARY.items():
        if not sketch.has(metric):
            continue
        options = {"n_bins": n_bins} if "n_bins" in metric.source.sketch_options else {}
        values[name] = metric.source.of_sketch(sketch, **options)
    return Summary(sketch.rows, len(sketch.classes.count) or None, values, sketch.reliability(level))
