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


def risk_coverage(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], weights: NDArray[np.float64] | None = None
) -> RiskCoverage:
    """At most 200 points, each the end of a run of equal confidences."""
    _, kept, wrong, scale = _running(confidence, correct, weights)
    chosen = np.unique(np.linspace(0, len(kept) - 1, min(_POINTS, len(kept))).round().astype(int))
    low, high = wilson(scale * wrong[chosen], scale * kept[chosen])
    return RiskCoverage(kept[chosen] / kept[-1], wrong[chosen] / kept[chosen], low, high)


def thresholds(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], weights: NDArray[np.float64] | None = None
) -> list[Threshold]:
    """For accuracies of 90, 95 and 99 %: the threshold that keeps most rows."""
    least, kept, wrong, scale = _running(confidence, correct, weights)
    found = []
    for wanted in ACCURACIES:
        enough = np.flatnonzero(1 - wrong / kept >= wanted)
        if not len(enough):
            found.append(Threshold(wanted, None))
            continue
        rows, mistakes = kept[enough[-1]], wrong[enough[-1]]
        low, _ = wilson(np.array(scale * (rows - mistakes)), np.array(scale * rows))
        at = float(least[enough[-1]])
        found.append(Threshold(wanted, at, float(rows / kept[-1]), float(1 - mistakes / rows), float(low)))
    return found


def _running(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Each distinct confidence from the top, what rows at least as confident weigh, and the wrong ones among them.

    Last what turns weights into Kish's effective number of rows.
    """
    if weights is not None:
        some = weights > 0
        confidence, correct, weights = confidence[some], correct[some], weights[some]
    order = np.argsort(-confidence, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(confidence[order]) != 0, True))
    own = np.ones(len(order)) if weights is None else weights[order]
    kept, wrong = own.cumsum()[ends], (own * ~correct[order]).cumsum()[ends]
    return confidence[order][ends], kept, wrong, float(own.sum() / (own**2).sum())
