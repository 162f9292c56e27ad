"""The risk-coverage curve in one line, in the manner of scikit-learn's displays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from focalcal.metrics.reliability import outcomes
from focalcal.metrics.selective import RiskCoverage, risk_coverage
from focalcal.metrics.table import aurc
from focalcal.pages.style import COLOURS, new_axes, plain
from focalcal.pages.tables import Table
from focalcal.predictions.inputs import InputOptions, read_inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_UNSTEADY = 0.05  # the share of rows up to which a few of them decide, which does not set the axis


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay:
    """What share is wrong among the most confident rows, against how many are kept, with Wilson's 95 % interval.

    `ReliabilityDisplay` shows the confidences themselves. After `plot`: `ax_` and `figure_`.

    Args:
        curve: the points; `from_predictions` makes them, or `focalcal.audit(...)` has them as `risk_coverage`.
        aurc: the mean risk over all coverages, shown in the legend if it is known.
        name: what the legend calls it.

    >>> import numpy as np
    >>> p = np.linspace(0.51, 1, 400)
    >>> display = RiskCoverageDisplay.from_predictions(np.c_[1 - p, p], (p > 0.6).astype(int))
    >>> round(display.aurc, 3)  # errors are below 0.6 alone, a fifth of the rows
    0.019
    """

    curve: RiskCoverage
    aurc: float | None = None
    name: str | None = None
    ax_: Axes = field(init=False, repr=False)
    figure_: Any = field(init=False, repr=False)

    def __repr__(self) -> str:
        """What it shows, without the numbers."""
        return f"<RiskCoverageDisplay of {len(self.curve.coverage)} points; .plot() draws it, .frame() has the numbers>"

    @classmethod
    def from_predictions(
        cls,
        probs: Any = None,
        labels: Any = None,
        *,
        logits: Any = None,
        ignore_index: int | None = None,
        name: str | None = None,
        **inputs: Unpack[InputOptions],
    ) -> Self:
        """Arguments as for `focalcal.metrics.aurc`: arrays, tables or `Predictions`."""
        given = read_inputs(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
        if given.weights is not None:
            raise ValueError("a risk-coverage curve takes no weights, got some; leave them out, or draw without them")
        sure, right = outcomes(given, ignore_index=ignore_index)
        return cls(risk_coverage(sure.astype(np.float64), right), aurc.source.of_outcomes(sure, right), name)

    def frame(self) -> Table:
        """One row per point."""
        names = ("coverage", "risk", "low", "high")
        return Table({name: getattr(self.curve, name) for name in names})

    def plot(self, ax: Axes | None = None, **style: Any) -> RiskCoverageDisplay:
        """Draw into `ax`, by default that of a new pyplot figure, and return the display.

        `style` is that of the line, in the words of `Axes.plot`.
        """
        ax = new_axes(4.8, 3.6) if ax is None else ax
        curve = self.curve
        parts = [] if self.name is None else [plain(self.name)]
        parts += [] if self.aurc is None else [f"AURC {100 * self.aurc:.2f} %"]
        before = len(ax.lines)
        colour = COLOURS[4 * before % len(COLOURS)]  # neighbours in that list look alike
        style = {"color": colour, "label": ", ".join(parts) or "risk", **style}
        limit = ax.get_ylim()[1] if before else 0.0
        (line,) = ax.plot(curve.coverage, curve.risk, **style)
        ax.fill_between(curve.coverage, curve.low, curve.high, color=line.get_color(), alpha=0.15, linewidth=0)
        steady = curve.high[curve.coverage >= _UNSTEADY]
        top = max(1.05 * float(steady.max()), limit, 0.01)
        ax.set(xlim=(0, 1), ylim=(0, min(top, 1.02)))
        ax.set(xlabel="coverage: share of rows kept, most confident first", ylabel="risk: share that is wrong")
        ax.legend(frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
