"""The usual numbers of a classifier's probabilities, from one pass over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from focalcal.metrics.reliability import Reliability, check_level, reliability_of
from focalcal.metrics.scan import even_edges, scan
from focalcal.metrics.table import METRICS

if TYPE_CHECKING:
    from focalcal.metrics.sketch import CalibrationSketch

SUMMARY = {name: metric for name, metric in METRICS.items() if metric.in_summary}


@dataclass(frozen=True, eq=False)
class Summary:
    """`values`: each metric as the function of its name gives it, and an attribute too (`found.ece`)."""

    rows: int
    n_classes: int
    values: dict[str, float]
    reliability: Reliability

    def __getattr__(self, name: str) -> float:
        """The metric of that name."""
        value: float = value_in_summary(self, name)
        return value

    def as_dict(self) -> dict[str, Any]:
        """The numbers without the bins, for a table or a log."""
        return {"rows": self.rows, "n_classes": self.n_classes, **self.values}

    def __str__(self) -> str:
        """One line per number, and which way the confidences err."""
        lines = [f"{self.rows:,} rows, {self.n_classes} classes"]
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
) -> Summary:
    """Error, NLL, Brier score, calibration errors and reliability bins of probabilities, or of `logits`.

    `level` is that of the reliability bins' intervals.
    """
    check_level(level)
    sums = scan(
        probs, labels, logits=logits, n_bins=n_bins, ignore_index=ignore_index,
        classes=True, brier=True, nll=True, rows=True,
    )  # fmt: skip
    assert sums.classes is not None
    values = {name: metric.source.of_scan(sums, **metric.bins_option(n_bins)) for name, metric in SUMMARY.items()}
    return Summary(sums.rows, len(sums.classes.count), values, reliability_of(sums.bins, even_edges(n_bins), level))


def summary_of(sketch: CalibrationSketch, level: float = 0.95) -> Summary:
    """The same from a sketch; AdaECE and smECE within the sketch's bounds."""
    n_bins = len(sketch.bins.count)
    values = {}
    for name, metric in SUMMARY.items():
        options = {"n_bins": n_bins} if "n_bins" in metric.source.sketch_options else {}
        values[name] = metric.source.of_sketch(sketch, **options)
    return Summary(sketch.rows, len(sketch.classes.count), values, sketch.reliability(level))
