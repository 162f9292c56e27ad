"""The figure of the theory study as a display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from focalcal.reports.figures.theory import theory_figure
from focalcal.reports.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focalcal.theory.study import TheoryStudy


@dataclass(frozen=True, eq=False)
class Distortion:
    """How the minimiser leaves the posterior, and the calibration error that follows, over lam."""

    study: TheoryStudy
    title: str = "Distortion of the population minimiser over λ: exact, first order, and bounds"
    note: str = "No network and no data: the conditional risk is minimised on the simplex."

    def plot(self) -> Figure:
        """Three panels over lam."""
        return theory_figure(self.study)

    def frame(self) -> Table:
        """A row a solve: posterior, gamma, lam and the distortion."""
        return Table(self.study.distortion)
