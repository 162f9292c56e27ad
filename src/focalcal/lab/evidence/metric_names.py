"""What the metrics are called above a column, how they are shown, and which way is better.

Apart from `numbers`, which tables need where torch is not loaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from focalcal.metrics.table import AUROC, METRICS
from focalcal.pages.numbers import Mean, Rounded

if TYPE_CHECKING:
    from focalcal.lab.evidence.evidence import Evidence

SINGLE_LABEL = ("error", "ece", "adaptive_ece", "classwise_ece", "smooth_ece", "nll", "brier")
_KNOWN = {**METRICS, "auroc": AUROC}
PERCENT = frozenset(name for name, metric in _KNOWN.items() if metric.unit == "share")  # shown times 100, as papers do
HIGHER_IS_BETTER = frozenset(name for name, metric in _KNOWN.items() if metric.better == "higher")
UNDIRECTED = frozenset({"confidence", "rows", "n_classes", "n_labels", "auroc_labels", "positives"}).union(
    name for name, metric in _KNOWN.items() if metric.better is None
)
TITLES = {name: metric.title for name, metric in _KNOWN.items()} | {
    "posterior_distance": "Distance from the posterior",
    "confidence_distance": "Distance of the confidence",
    "posterior_ece": "ECE against the posterior",
}
MEANINGS = {"confidence_gap": "mean confidence minus accuracy: above 0 is overconfident, below 0 underconfident"}


def title(metric: str) -> str:
    """`ECE` for `ece`; a name that is not known as it is."""
    return TITLES.get(metric, metric)


def in_sentence(metric: str) -> str:
    """`ECE`, `error`: as it stands within a sentence."""
    return metric if metric == "error" else title(metric)


def titled(metric: str) -> str:
    """With the unit it is shown in: `ECE %`."""
    return f"{title(metric)} %" if metric in PERCENT else title(metric)


def axis_title(metric: str) -> str:
    """On an axis, and in the title of a chart: `ECE in points`."""
    return f"{title(metric)} in points" if metric in PERCENT else title(metric)


def shown_text(metric: str, value: float, *, unit: bool = True, sign: bool = False) -> str:
    """`1.23 %`; with `sign` a difference, without `unit` the number alone."""
    number = Rounded(as_shown(metric, value), f"{'+' * sign}.{2 if metric in PERCENT else 4}f").text
    return number + " %" * (unit and metric in PERCENT)


def shown_metrics(evidence: Evidence) -> list[str]:
    """What charts and the page's switch offer: those of them that were measured on the test split."""
    measured = {name for run in evidence.runs for name in run.metrics.get("test", {})}
    return [name for name in (*SINGLE_LABEL, "mce", "auroc", "posterior_distance") if name in measured]


def as_shown(metric: str, value: float) -> float:
    """As it is shown: times 100 where the unit is percent."""
    return 100 * value if metric in PERCENT else value


def mean_shown(metric: str, values: Iterable[float]) -> Mean | None:
    """In the unit it is shown in; None without any. NaN was not measured and is left out; infinity was, and is kept."""
    there = [as_shown(metric, value) for value in values if not math.isnan(value)]
    return Mean(there, decimals=2 if metric in PERCENT else 4) if there else None
