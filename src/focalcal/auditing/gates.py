"""Conditions that a build must meet: `ece < 0.05`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from focalcal.core.checks import one_of, unknown_name

if TYPE_CHECKING:
    from focalcal.metrics import Interval

_COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_GATE = re.compile(r"\s*([A-Za-z_]\w*(?:\[[^\]]+\])?)\s*(>=|<=|>|<)\s*([-+]?\d*\.?\d+(?:[eE][-+]?\d+)?)\s*(%?)\s*\Z")
Judged = Literal["interval", "estimate"]


@dataclass(frozen=True)
class Gate:
    """A metric compared with a bound, for `audit(gates=...)`.

    A share is written 5 % or 0.05; `slope[cat]` is that of the class `cat`.

    Attributes:
        metric: a name of the audit's metrics.
        comparison: of the metric with the bound.
        bound: beyond which the gate fails.

    >>> Gate.parse("ece > 5 %")
    Gate(metric='ece', comparison='>', bound=0.05)
    """

    metric: str
    comparison: str
    bound: float

    @classmethod
    def parse(cls, text: str) -> Gate:
        """From text such as `ece > 0.05`."""
        match = _GATE.match(text)
        if match is None:
            raise ValueError(f"a gate must be a metric, >, >=, < or <=, and a number, got {text!r}; e.g. 'ece > 0.05'")
        metric, comparison, number, percent = match.groups()
        return cls(metric, comparison, float(number) / (100 if percent else 1))

    def check(self, metrics: Collection[str]) -> None:
        """Refuse a gate whose metric is none of these."""
        if self.metric not in metrics:
            raise ValueError(unknown_name("a metric of this audit", self.metric, metrics))

    def holds(self, metrics: Mapping[str, Interval], on: Judged = "interval") -> bool:
        """Whether the comparison is true, beyond chance: of the end of the interval that is nearer to it being false.

        With on="estimate" of the estimate itself. A metric that these rows leave undefined passes nothing: it is true.
        """
        one_of("on", on, ("interval", "estimate"))
        self.check(metrics)
        found = metrics[self.metric]
        end = found.low if self.comparison.startswith(">") else found.high
        value = found.estimate if on == "estimate" else end
        return math.isnan(found.estimate) or bool(_COMPARISONS[self.comparison](value, self.bound))

    def __str__(self) -> str:
        """As it was written."""
        return f"{self.metric} {self.comparison} {self.bound:g}"
