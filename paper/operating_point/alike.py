"""How many networks need no temperature, like for like: every count is over the same cross-entropy runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from focalcal.pages.tables import Table
from paper.operating_point.trial import TOLERANCE
from paper.trials import Trials

TOLERANCES = (0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2)
GAMMA = 3.0  # that of the controls, so that nothing but lam and the scale differs between them and the prediction

# what is trained, or done to cross-entropy: the records it is in, the role of its rows, and what is looked at
CURVES = {
    "predicted lam": ("trials", "predicted", "miss"),
    "half of it": ("trials", "half of lam", "miss"),
    "twice": ("trials", "twice lam", "miss"),
    "FCL(3, 3), matched": ("again", "FCL(3, 3), matched", "miss"),
    "FCL(3, 1), paper's scale": ("trials", "FCL(3, 1)", "miss"),
    "cross-entropy": ("trials", "cross-entropy", "miss"),
    "cross-entropy with its T": ("again", "cross-entropy", "scaled_miss"),
}


@dataclass(frozen=True)
class Alike:
    """The cells beside the same cross-entropy runs.

    again       the same cells trained again: older records have no validation temperatures
    everywhere  every run; by default those of which the rule says that FCL helps and that a lam matches at gamma = 3
    """

    trials: Trials
    again: Trials
    everywhere: bool = False

    @cached_property
    def baselines(self) -> set[str]:
        """The keys of the cross-entropy runs."""
        said: dict[str, Any] = {} if self.everywhere else {"helps": True, "matched": True}
        return {row["baseline"] for row in self.trials.where(role="predicted", gamma=GAMMA, **said).rows}

    def misses(self, curve: str) -> list[float]:
        """|log T| of one of `CURVES`, one number per cross-entropy run."""
        return [row[CURVES[curve][2]] for row in self._rows(curve)]

    def _rows(self, curve: str) -> tuple[dict[str, Any], ...]:
        records, role, _ = CURVES[curve]
        gamma: dict[str, Any] = {} if role == "cross-entropy" else {"gamma": GAMMA}
        trials: Trials = getattr(self, records)
        return trials.where(lambda row: row["baseline"] in self.baselines, role=role, **gamma).rows

    def within(self, curve: str, tolerance: float = TOLERANCE) -> str:
        """`15 of 17`."""
        misses = self.misses(curve)
        return f"{sum(miss <= tolerance for miss in misses)} of {len(misses)}"

    def missed(self, curve: str) -> str:
        """The settings in which one is not within the tolerance: `finsen/gp_cnn`."""
        rows, column = self._rows(curve), CURVES[curve][2]
        return ", ".join(dict.fromkeys(row["setting"] for row in rows if row[column] > TOLERANCE))

    def largest(self, curve: str) -> str:
        """The worst of them."""
        return f"{max(self.misses(curve)):.3f}"

    def table(self) -> str:
        """One row per tolerance, one column per curve."""
        columns: dict[str, list[str]] = {"within": [f"{tolerance:g}" for tolerance in TOLERANCES]}
        columns |= {curve: [self.within(curve, tolerance) for tolerance in TOLERANCES] for curve in CURVES}
        return Table(columns).markdown()
