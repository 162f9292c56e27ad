"""A reliability diagram in one line, in the manner of scikit-learn's displays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy as np

from focalcal.core.checks import one_of
from focalcal.metrics.corp import Corp, corp
from focalcal.metrics.reliability import Reliability, reliability, weighed_outcomes
from focalcal.metrics.smooth import SmoothReliability, smooth_reliability
from focalcal.pages.style import COLOURS, GUIDE, new_axes, plain
from focalcal.pages.tables import Table
from focalcal.predictions.inputs import InputOptions, read_inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS: dict[str, Any] = {"marker": "o", "markersize": 3, "linewidth": 0.9, "elinewidth": 0.9, "capsize": 1.5}
_BAND: dict[str, Any] = {"color": GUIDE, "alpha": 0.22, "linewidth": 0, "zorder": 0, "label": "what chance allows"}


@dataclass(eq=False, repr=False)
class ReliabilityDisplay:
    """Accuracy against confidence: `from_predictions` or `from_reliability` make one, `plot` draws it.

    Points are bins, at their mean confidence and accuracy, with the Wilson interval. The grey band is where a
    calibrated model's accuracy would lie by chance, the thin line the smooth curve whose distance from the diagonal is
    smECE. Below are the rows of each bin, hatched where they are fewer than `least`: such a bin has no point.

    With `method="corp"` the curve is isotonic regression, the band where a calibrated model's curve would lie
    (`focalcal.metrics.corp`), and the bins are those of the bars below alone.

    After `plot`: `ax_`, `rows_ax_` (that of the bars) and `figure_`.

    Args:
        reliability: the bins.
        smooth: the curve; none where there are no rows to smooth.
        name: what the legend calls it.
        of: the class whose probability is shown, None for the confidence of the prediction.
        least: rows that a bin must have to be shown; where it is None, 1 % of all (of one class, of the rows that have
            its label), but at least 5 and at most 100.
        corp: the isotonic curve, in the place of points and of the smooth one.

    >>> import numpy as np
    >>> p = np.linspace(0.51, 1, 400)
    >>> display = ReliabilityDisplay.from_predictions(np.c_[1 - p, p], np.ones(400, int))  # always right
    >>> float(np.nanmin(display.reliability.accuracy))
    1.0
    """

    reliability: Reliability
    smooth: SmoothReliability | None = None
    name: str | None = None
    of: str | None = None
    least: int = 1
    corp: Corp | None = None
    ax_: Axes = field(init=False, repr=False)
    rows_ax_: Axes = field(init=False, repr=False)
    figure_: Any = field(init=False, repr=False)

    def __repr__(self) -> str:
        """What it shows, without the numbers."""
        bins = np.count_nonzero(self.reliability.count)
        return f"<ReliabilityDisplay of {bins} bins with rows; .plot() draws it, .frame() has the numbers>"

    @classmethod
    def from_predictions(
        cls,
        probs: Any = None,
        labels: Any = None,
        *,
        logits: Any = None,
        n_bins: int = 15,
        binning: str = "equal_width",
        class_index: int | None = None,
        level: float = 0.95,
        ignore_index: int | None = None,
        name: str | None = None,
        least: int | None = None,
        method: Literal["bins", "corp"] = "bins",
        **inputs: Unpack[InputOptions],
    ) -> Self:
        """Arguments as for `focalcal.metrics.reliability`: arrays, tables or `Predictions`; `method` as said above."""
        one_of("method", method, ("bins", "corp"))
        given = read_inputs(probs, labels, logits=logits, ignore_index=ignore_index, **inputs)
        sure, right, weights = weighed_outcomes(given, class_index=class_index, ignore_index=ignore_index)
        rows: dict[str, Any] = {"confidence": sure, "correct": right, "sample_weight": weights}
        bins = reliability(**rows, n_bins=n_bins, binning=binning, level=level)
        of = None if class_index is None else str(given.classes[class_index] if given.classes else class_index)
        if method == "corp":
            isotonic = corp(**rows, level=level)
            return cls(bins, name=name, of=of, least=0, corp=isotonic)
        if least is None:
            least = sparse_limit(len(right) if class_index is None else int(right.sum()))
        return cls(bins, smooth_reliability(sure, right, weights), name=name, of=of, least=least)

    @classmethod
    def from_reliability(cls, reliability: Reliability, *, name: str | None = None, least: int | None = None) -> Self:
        """Of bins that are there already, without the smooth curve, which needs the rows."""
        return cls(reliability, name=name, least=sparse_limit(reliability.count.sum()) if least is None else least)

    @property
    def rows(self) -> int:
        """Of all bins."""
        return int(self.reliability.count.sum())

    @property
    def shown(self) -> np.ndarray:
        """True for the bins that are not too sparse to estimate an accuracy."""
        shown: np.ndarray = self.reliability.count >= self.least
        return shown

    @property
    def hidden(self) -> int:
        """Rows in bins that are not shown."""
        return int(self.reliability.count[~self.shown].sum())

    def frame(self) -> Table:
        """One row per bin that is not empty, hidden ones included; or per step of the isotonic curve."""
        if self.corp is not None:
            return Table(self.corp.frame())
        bins, filled = self.reliability, self.reliability.count > 0
        names = ("lower", "upper", "count", "confidence", "accuracy", "low", "high")
        columns = {name: getattr(bins, name) for name in names} | {"shown": self.shown}
        columns["count"] = np.rint(bins.count).astype(int)
        return Table({name: values[filled] for name, values in columns.items()})

    def plot(
        self, ax: Axes | None = None, *, rows_ax: Axes | None = None, chance: bool = True, **style: Any
    ) -> ReliabilityDisplay:
        """Draw into `ax`, by default that of a new pyplot figure, and return the display.

        rows_ax  where the bars are drawn; by default the lower quarter of `ax`, which becomes smaller. To draw a second
                 display over a first: `second.plot(first.ax_, rows_ax=first.rows_ax_, chance=False, color="C1")`
        chance   whether the band is drawn
        style    of the points and their line, in the words of `Axes.errorbar`
        """
        ax = new_axes(4.4, 5.0) if ax is None else ax
        rows_ax = _lower_part(ax) if rows_ax is None else rows_ax
        style = {"color": COLOURS[0], "linestyle": "", **style}
        summary = f"ECE {100 * self.reliability.ece:.2f} %"
        if self.corp is not None:
            parts = self.corp.brier
            summary = f"MSC {parts.msc:.4f}, DSC {parts.dsc:.4f}, UNC {parts.unc:.4f}"
        label = summary if self.name is None else f"{plain(self.name)} ({summary})"
        self.draw_diagram(ax, {"label": label, **style}, chance=chance)
        over = bool(rows_ax.patches)
        most = max(float(self.reliability.count.max()), rows_ax.dataLim.y1 if over else 0.0)
        self.draw_rows(rows_ax, style["color"], faint=over)
        scale_rows(rows_ax, most)
        what = "confidence" if self.of is None else f"probability of class {plain(self.of)}"
        ax.set_ylabel("accuracy" if self.of is None else f"share of class {plain(self.of)}")
        hidden = f"\nhidden: {self.hidden} of {self.rows}" if self.hidden else ""
        rows_ax.set(xlabel=what + hidden, ylabel="rows")
        ax.legend(loc="upper left", frameon=False, fontsize="small")
        self.ax_, self.rows_ax_, self.figure_ = ax, rows_ax, ax.figure
        return self

    def draw_diagram(self, axes: Axes, style: dict[str, Any], *, chance: bool) -> None:
        """The diagonal, the band, the curve, and the points of the bins that are shown."""
        if not any(line.get_label() == "_diagonal" for line in axes.lines):
            axes.plot([0, 1], [0, 1], color=GUIDE, linewidth=0.8, linestyle="--", zorder=0, label="_diagonal")
        axes.set(xlim=(0, 1.02), ylim=(0, 1.02))
        axes.tick_params(labelbottom=False)
        if self.corp is not None:
            _draw_isotonic(axes, self.corp, style, chance=chance)
            return
        bins, at = self.reliability, self.shown
        if chance:
            steps = np.stack([bins.lower, bins.upper, bins.upper], 1)[at].ravel()
            low, high = (np.stack([end, end, np.full_like(end, np.nan)], 1)[at].ravel() for end in bins.chance)
            axes.fill_between(steps, low, high, **_BAND)
        if self.smooth is not None:
            curve = self.smooth
            inside = (curve.confidence >= bins.lower[at].min(initial=1)) & (
                curve.confidence <= bins.upper[at].max(initial=0)
            )
            known = np.where(inside & (curve.rows >= self.least), curve.accuracy, np.nan)
            label = f"smooth, width {curve.bandwidth:.2g}"
            axes.plot(curve.confidence, known, color=style["color"], linewidth=1.1, alpha=0.6, label=label)
        reach = np.abs(np.stack([bins.low[at], bins.high[at]]) - bins.accuracy[at])
        axes.errorbar(bins.confidence[at], bins.accuracy[at], yerr=reach, **(_POINTS | style))

    def draw_rows(self, axes: Axes, color: str, *, faint: bool = False, place: int = 0, number: int = 1) -> None:
        """How many rows each bin has, hatched if it is not shown; as the bar `place` of `number` side by side."""
        bins = self.reliability
        width = (bins.upper - bins.lower) / number
        look: dict[str, Any]
        for shown in (True, False):
            at = (self.shown == shown) & (bins.count > 0)
            look = (
                {"facecolor": color, "alpha": 0.45 if faint else 1.0}
                if shown
                else {"facecolor": "white", "hatch": "/" * 6}
            )
            left = (bins.lower + place * width)[at]
            axes.bar(left, bins.count[at], width[at], align="edge", edgecolor=color, linewidth=0.5, **look)


def _draw_isotonic(axes: Axes, isotonic: Corp, style: dict[str, Any], *, chance: bool) -> None:
    """The curve, thick where it is flat, since there are its rows."""
    if chance:
        axes.fill_between(isotonic.points, isotonic.low, isotonic.high, **_BAND)
    ends = np.stack([isotonic.lower, isotonic.upper], 1).ravel()
    line = {"linewidth": 1.1, **style, "linestyle": style.get("linestyle") or "-"}
    axes.plot(ends, np.repeat(isotonic.accuracy, 2), **line)
    axes.hlines(isotonic.accuracy, isotonic.lower, isotonic.upper, color=line["color"], linewidth=2.2)


def scale_rows(axes: Axes, most: float) -> None:
    """A logarithmic axis up to `most` rows, with a few powers of ten on it."""
    axes.set_yscale("log")
    axes.set_ylim(0.6, 1.6 * most)
    axes.minorticks_off()
    powers = 10 ** np.arange(0, int(math.log10(max(most, 1))) + 1)
    ticks = powers[:: max(1, len(powers) // 3)]
    axes.set_yticks(ticks, map(str, ticks))


def sparse_limit(rows: float) -> int:
    """1 % of the rows, between 5 and 100.

    >>> sparse_limit(360), sparse_limit(10_000), sparse_limit(50_000)
    (5, 100, 100)
    """
    return min(100, max(5, math.ceil(rows / 100)))


def _lower_part(ax: Axes) -> Axes:
    """New axes in the lower quarter of `ax`, which keeps the rest."""
    spec, figure = ax.get_subplotspec(), ax.figure
    if spec is not None:
        parts = spec.subgridspec(2, 1, height_ratios=[3, 1], hspace=0.06)
        ax.set_subplotspec(parts[0])
        return figure.add_subplot(parts[1], sharex=ax)
    left, bottom, width, height = ax.get_position().bounds
    ax.set_position((left, bottom + 0.27 * height, width, 0.73 * height))
    return figure.add_axes((left, bottom, width, 0.24 * height), sharex=ax)
