"""The effective temperature over lam, and where it cancels a network's overfitting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focalcal.pages.palette import numbered_look
from focalcal.pages.style import GAMMA, GUIDE, LAM, drawing, headed, line_style
from focalcal.pages.tables import Table
from focalcal.theory.temperature import effective_temperature

if TYPE_CHECKING:
    from jaxtyping import Float
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focalcal.posthoc import OperatingPoint


LAMS = (0.0, *(2.0 ** np.arange(-5, 8)).tolist())
_ELEMENTS = 1 << 16  # a curve is no finer than its line


@dataclass(frozen=True, eq=False)
class TemperatureCurves:
    """temperatures[g, l] = T_pop(gammas[g], lams[l]) over the posteriors of `point`; lams begin with 0."""

    point: OperatingPoint
    gammas: Float[np.ndarray, " g"]
    lams: Float[np.ndarray, " l"]
    temperatures: Float[np.ndarray, "g l"]


def temperature_curves(point: OperatingPoint) -> TemperatureCurves:
    """Curves for the gammas of the point's `matches`, over evenly many of its posteriors."""
    stride = -(-point.posteriors.size // _ELEMENTS)
    focus, anchor = np.array([match.gamma for match in point.matches]), np.array(LAMS)
    temperatures = effective_temperature(point.posteriors[::stride], gamma=focus[:, None], lam=anchor)
    return TemperatureCurves(point, focus, anchor, temperatures)


@dataclass(frozen=True, eq=False)
class OperatingPointFigure:
    """One curve per gamma, the line 1 / overfitting with its interval, and the point where they meet."""

    curves: TemperatureCurves

    @property
    def title(self) -> str:
        """What is shown."""
        return f"Effective temperature of Focal Calibration Loss over {LAM}"

    @property
    def note(self) -> str:
        """What to do."""
        return self.curves.point.sentence

    def frame(self) -> Table:
        """One row per gamma and lam."""
        gammas, lams = np.meshgrid(self.curves.gammas, self.curves.lams, indexing="ij")
        columns = {"gamma": gammas, "lam": lams, "effective_temperature": self.curves.temperatures}
        return Table({name: values.ravel() for name, values in columns.items()})

    def plot(self) -> Figure:
        """lam is on a logarithmic axis, with lam = 0 at its left end."""
        with drawing(3.4, width=4.8) as figure:
            axes = figure.subplots()
            places = _places(self.curves.lams)
            for number, (gamma, heights) in enumerate(zip(self.curves.gammas, self.curves.temperatures, strict=True)):
                axes.plot(
                    places, heights, label=f"{GAMMA} = {gamma:g}", markersize=2.5, **line_style(numbered_look(number))
                )
            self._line(axes)
            axes.set_xscale("log", base=2)
            ticks = places[::3]
            axes.set_xticks(ticks, ["0", *(f"{lam:g}" for lam in self.curves.lams[::3][1:])])
            axes.minorticks_off()
            axes.set_xlabel(f"anchor weight {LAM}")
            axes.set_ylabel("effective temperature")
            axes.legend(loc="best")
            headed(figure, self.title, self.note)
        return figure

    def _line(self, axes: Axes) -> None:
        point = self.curves.point
        low, high = point.overfitting_interval
        axes.axhspan(1 / high, 1 / low, color=GUIDE, alpha=0.25, linewidth=0)
        axes.axhline(1 / point.overfitting, color=GUIDE, label="1 / overfitting factor")
        if math.isfinite(point.lam) and point.status == "matched":
            place = max(point.lam, _places(self.curves.lams)[0])
            axes.plot([place], [1 / point.overfitting], "*", color="black", markersize=9, label="operating point")


def _places(lams: np.ndarray) -> np.ndarray:
    """Where each lam is drawn: 0 one octave below the smallest positive one."""
    return np.where(lams > 0, lams, lams[lams > 0].min() / 2)
