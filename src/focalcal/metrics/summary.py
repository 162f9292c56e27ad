"""The usual numbers of a classifier's probabilities, from one pass over them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from focalcal.metrics.ece import binary_adaptive_ece, confidence_gap_of, ece_of, mce_of
from focalcal.metrics.reliability import Reliability, check_level, reliability_of
from focalcal.metrics.scan import even_edges, scan
from focalcal.metrics.sketch import CalibrationSketch
from focalcal.metrics.smooth import binary_smooth_ece


@dataclass(frozen=True, eq=False)
class Summary:
    """Each number as the function of its name gives it; `print` shows them all."""

    rows: int
    n_classes: int
    error: float
    nll: float
    brier: float
    ece: float
    adaptive_ece: float
    classwise_ece: float
    mce: float
    smooth_ece: float
    confidence_gap: float
    reliability: Reliability

    def as_dict(self) -> dict[str, Any]:
        """The numbers without the bins, for a table or a log."""
        return {name: value for name, value in asdict(self).items() if name != "reliability"}

    def __str__(self) -> str:
        """One line a number, and which way the confidences err."""
        named = {field.name: getattr(self, field.name) for field in fields(self)[2:-1]}
        lines = [f"{self.rows:,} rows, {self.n_classes} classes"]
        lines += [f"  {name.replace('_', ' '):<15} {value:+.4f}" if name == "confidence_gap" else
                  f"  {name.replace('_', ' '):<15} {value:7.4f}" for name, value in named.items()]  # fmt: skip
        lean = (
            "overconfident" if self.confidence_gap > 0 else "underconfident" if self.confidence_gap < 0 else "balanced"
        )
        lines[-1] += f"  {lean} on average"
        return "\n".join(lines)


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
    found = scan(
        probs, labels, logits=logits, n_bins=n_bins, ignore_index=ignore_index,
        classes=True, brier=True, nll=True, rows=True,
    )  # fmt: skip
    assert found.classes is not None
    assert found.brier is not None
    assert found.nll is not None
    assert found.confidence is not None
    assert found.correct is not None
    binned_error = float(ece_of(found.bins))
    return Summary(
        rows=found.rows,
        n_classes=len(found.classes.count),
        error=found.wrong / found.rows,
        nll=found.nll / found.rows,
        brier=found.brier / found.rows,
        ece=binned_error,
        adaptive_ece=binary_adaptive_ece(found.confidence, found.correct, n_bins=n_bins),
        classwise_ece=float(ece_of(found.classes).mean()),
        mce=float(mce_of(found.bins)),
        smooth_ece=binary_smooth_ece(found.confidence, found.correct, guess=binned_error),
        confidence_gap=float(confidence_gap_of(found.bins)),
        reliability=reliability_of(found.bins, even_edges(n_bins), level),
    )


def summary_of(sketch: CalibrationSketch, level: float = 0.95) -> Summary:
    """The same from a sketch; AdaECE and smECE within the sketch's bounds."""
    return Summary(
        rows=sketch.rows,
        n_classes=len(sketch.classes.count),
        error=sketch.error(),
        nll=sketch.nll(),
        brier=sketch.brier(),
        ece=sketch.ece(),
        adaptive_ece=sketch.adaptive_ece(len(sketch.bins.count)),
        classwise_ece=sketch.classwise_ece(),
        mce=sketch.mce(),
        smooth_ece=sketch.smooth_ece(),
        confidence_gap=sketch.confidence_gap(),
        reliability=sketch.reliability(level),
    )
