"""What a threshold on the confidence buys, and the most confident mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.metrics.reliability import wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray

ACCURACIES = (0.9, 0.95, 0.99)
_POINTS = 200


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Of the most confident share `coverage` of rows, the share `risk` that is wrong, with Wilson's interval."""

    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True)
class Threshold:
    """The least confidence from which on predictions are right often enough; None where no threshold reaches that.

    `coverage` is the share of rows at or above it, `accuracy` how often these are right, `low` Wilson's lower end.
    """

    wanted: float
    confidence: float | None
    coverage: float = 0.0
    accuracy: float = float("nan")
    low: float = float("nan")


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction: its row, or id if there are any, what was said and what was true; None where unknown."""

    row: Any
    confidence: float
    predicted: str | None = None
    label: str | None = None


def risk_coverage(confidence: NDArray[np.float64], correct: NDArray[np.bool_]) -> RiskCoverage:
    """At most 200 points, each the end of a run of equal confidences."""
    ends, wrong = _running(confidence, correct)
    chosen = np.unique(np.linspace(0, len(ends) - 1, min(_POINTS, len(ends))).round().astype(int))
    rows = ends[chosen].astype(np.float64)
    low, high = wilson(wrong[chosen], rows)
    return RiskCoverage(rows / len(confidence), wrong[chosen] / rows, low, high)


def thresholds(confidence: NDArray[np.float64], correct: NDArray[np.bool_]) -> list[Threshold]:
    """For accuracies of 90, 95 and 99 %: the threshold that keeps most rows."""
    ends, wrong = _running(confidence, correct)
    ordered = np.sort(confidence)[::-1]
    found = []
    for wanted in ACCURACIES:
        enough = np.flatnonzero(1 - wrong / ends >= wanted)
        if not len(enough):
            found.append(Threshold(wanted, None))
            continue
        rows, mistakes = ends[enough[-1]], wrong[enough[-1]]
        low, _ = wilson(np.array(rows - mistakes, dtype=np.float64), np.array(rows, dtype=np.float64))
        at = float(ordered[rows - 1])
        found.append(Threshold(wanted, at, rows / len(ordered), float(1 - mistakes / rows), float(low)))
    return found


def _running(confidence: NDArray[np.float64], correct: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """How many rows are at least as confident as each distinct confidence, from the top, and how many are wrong."""
    order = np.argsort(-confidence, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(confidence[order]) != 0, True)) + 1
    return ends, np.cumsum(~correct[order])[ends - 1].astype(np.float64)
