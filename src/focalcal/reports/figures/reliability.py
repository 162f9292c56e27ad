"""Reliability diagrams: accuracy against confidence, one panel per objective, with the counts below."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.extras import required
from focalcal.metrics.reliability import Reliability
from focalcal.reports.figures.style import GUIDE, SMALLEST, PanelGrid, drawing, headed, line_style, plain
from focalcal.reports.objectives import Look, looks, short_name
from focalcal.reports.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focalcal.analysis.evidence import Evidence, RunEvidence

_HOLLOW: dict[str, Any] = {"linestyle": (0, (4, 1.2)), "markerfacecolor": "white"}  # before scaling, as on the page


@dataclass(frozen=True, eq=False)
class Curve:
    """One reliability diagram: `label` says of what, `ece` is that of the same rows, `least` rows make a bin shown."""

    label: str
    bins: Reliability
    ece: float
    least: int

    @property
    def shown(self) -> np.ndarray:
        """True for the bins that are not too sparse to estimate an accuracy."""
        shown: np.ndarray = self.bins.count >= self.least
        return shown

    def filled(self) -> dict[str, np.ndarray]:
        """The columns of the bins that are not empty."""
        names = ("lower", "upper", "count", "confidence", "accuracy", "low", "high")
        columns = {name: getattr(self.bins, name) for name in names} | {"shown": self.shown}
        columns["count"] = self.bins.count.astype(int)
        return {name: values[self.bins.count > 0] for name, values in columns.items()}

    @property
    def rows(self) -> int:
        """Of all bins."""
        return int(self.bins.count.sum())

    @property
    def hidden(self) -> int:
        """Rows in bins that are not shown."""
        return int(self.bins.count[~self.shown].sum())


@dataclass(frozen=True, eq=False)
class ReliabilityPanel:
    """An objective and its curves: one, or before and after temperature scaling; `summary` is shown above them."""

    objective: str
    look: Look
    summary: str
    curves: tuple[Curve, ...]

    def styles(self) -> list[dict[str, Any]]:
        """Of the curves: the objective's own, hollow and dashed before scaling."""
        own = line_style(self.look) | {"linestyle": "-"}
        return [own | _HOLLOW, own] if len(self.curves) > 1 else [own]


@dataclass(frozen=True, eq=False)
class ReliabilityDiagrams:
    """Panels of one setting and seed."""

    title: str
    note: str
    panels: tuple[ReliabilityPanel, ...]

    def frame(self) -> Table:
        """One row per bin that is not empty, hidden ones included."""
        return Table.stacked(
            {"objective": panel.objective, "curve": curve.label, **curve.filled()}
            for panel in self.panels
            for curve in panel.curves
        )

    def plot(self) -> Figure:
        """Points at (mean confidence, accuracy) with the Wilson interval, in a panel of unit sides; counts below."""
        page = PanelGrid(len(self.panels))
        rows, columns = page.rows, page.columns
        most = max(float(curve.bins.count.max()) for panel in self.panels for curve in panel.curves)
        with drawing(0.75 + 2.9 * page.row * rows, width=page.width) as figure:
            grid = figure.add_gridspec(2 * rows, columns, height_ratios=[2.6, 1] * rows)
            for number, panel in enumerate(self.panels):
                row, column = divmod(number, columns)
                top = figure.add_subplot(grid[2 * row, column])
                _diagram(top, panel, page.letters)
                below = figure.add_subplot(grid[2 * row + 1, column], sharex=top)
                _counts(below, panel, most)
                if column == 0:
                    top.set_ylabel("accuracy")
                    below.set_ylabel("rows")
            headed(figure, self.title, self.note, handles=_handles(self.panels))
        return figure


def reliability_diagrams(
    evidence: Evidence,
    setting: str,
    *,
    seed: int | None = None,
    objectives: Sequence[str] | None = None,
    temperature: bool = False,
    least: int | None = None,
) -> ReliabilityDiagrams | None:
    """The test set as it is, or with `temperature` the rows it was not fitted on, before and after; None without runs.

    seed         by default the lowest that any of the objectives has; an objective without it has no panel
    least        rows that a bin must have to be shown; by default 1 % of them, as the paper's 100 of 10,000, but at
                 least 5 and at most 100. What is hidden is counted in the panel.
    """
    drawn = looks(evidence.objectives)
    runs = runs_of_seed(
        evidence, setting, lambda run: (run.scaled if temperature else run.reliability) is not None, seed, objectives
    )
    if not runs:
        return None
    panels = tuple(_panel(run, drawn[run.objective], temperature, least) for run in runs)
    limits = sorted({curve.least for panel in panels for curve in panel.curves})
    sparse = " or ".join(map(str, limits))
    what = "before and after temperature scaling" if temperature else "test set, as trained"
    fitted = ""
    if temperature:
        rows = "the other half of the test rows" if evidence.fitted_on == "halves" else "the validation rows"
        fitted = f" T was fitted on {rows}; both curves are of the same rows."
    level = panels[0].curves[0].bins.level
    return ReliabilityDiagrams(
        title=f"Reliability on {setting}, seed {runs[0].seed}: {what}",
        note=f"Bars: {level:.0%} Wilson intervals. Below the diagonal is overconfident. Bins with fewer than {sparse} "
        f"rows are not shown above and are hatched below.{fitted}",
        panels=panels,
    )


def runs_of_seed(
    evidence: Evidence,
    setting: str,
    usable: Callable[[RunEvidence], bool],
    seed: int | None,
    objectives: Sequence[str] | None,
) -> list[RunEvidence]:
    """One run per objective that has the seed, by default the lowest that any of them has; in their order."""
    wanted = evidence.objectives if objectives is None else objectives
    runs = [run for objective in wanted for run in evidence.of(setting, objective) if usable(run)]
    chosen = min((run.seed for run in runs), default=None) if seed is None else seed
    first: dict[str, RunEvidence] = {}
    for run in runs:
        if run.seed == chosen:
            first.setdefault(run.objective, run)
    return list(first.values())


def sparse_limit(rows: float) -> int:
    """1 % of the rows, between 5 and 100.

    >>> sparse_limit(360), sparse_limit(10_000), sparse_limit(50_000)
    (5, 100, 100)
    """
    return min(100, max(5, math.ceil(rows / 100)))


def _panel(run: RunEvidence, look: Look, temperature: bool, least: int | None) -> ReliabilityPanel:
    fitted = ""
    if temperature:
        assert run.scaled is not None
        fitted = f"\nT = {run.scaled.temperature:.3g}{' (a bound)' * run.scaled.at_bound}"
        made = [
            ("before", run.scaled.reliability_before, run.scaled.before),
            ("after", run.scaled.reliability_after, run.scaled.after),
        ]
    else:
        assert run.reliability is not None
        made = [("as trained", run.reliability, run.metrics.get("test", {}))]
    curves = tuple(
        Curve(
            label, bins, metrics.get("ece", math.nan), sparse_limit(int(bins.count.sum())) if least is None else least
        )
        for label, bins, metrics in made
    )
    shown = ["-" if math.isnan(curve.ece) else f"{100 * curve.ece:.2f}" for curve in curves]
    summary = "ECE " + " \N{RIGHTWARDS ARROW} ".join(shown) + " %" + fitted
    return ReliabilityPanel(run.objective, look, summary, curves)


def _handles(panels: Sequence[ReliabilityPanel]) -> list[Any]:
    """Of the curves, where there are several."""
    line = required("matplotlib.lines", purpose="A figure").Line2D
    labels = [curve.label for curve in panels[0].curves]
    if len(labels) < 2:
        return []
    neutral: dict[str, Any] = {"color": "#444444", "marker": "o", "linestyle": "-"}
    return [
        line([], [], markersize=4, label=f"{label} scaling", **style)
        for label, style in zip(labels, (neutral | _HOLLOW, neutral), strict=True)
    ]


def _diagram(axes: Axes, panel: ReliabilityPanel, letters: int) -> None:
    axes.plot([0, 1], [0, 1], color=GUIDE, linewidth=0.8, linestyle="--", zorder=0, label="_diagonal")
    for curve, style in zip(panel.curves, panel.styles(), strict=True):
        at, bins = curve.shown, curve.bins
        reach = np.abs(np.stack([bins.low[at], bins.high[at]]) - bins.accuracy[at])
        bars: dict[str, Any] = {"markersize": 3, "linewidth": 0.9, "elinewidth": 0.9, "capsize": 1.5}
        axes.errorbar(bins.confidence[at], bins.accuracy[at], yerr=reach, label=curve.label, **bars, **style)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02))
    axes.set_title(f"{plain(short_name(panel.objective), longest=letters)}\n{panel.summary}")
    axes.tick_params(labelbottom=False)


def _counts(axes: Axes, panel: ReliabilityPanel, most: float) -> None:
    number = len(panel.curves)
    for place, (curve, drawn) in enumerate(zip(panel.curves, panel.styles(), strict=True)):
        faint = 0.45 if place + 1 < number else 1.0
        bins = curve.bins
        width = (bins.upper - bins.lower) / number
        for shown in (True, False):
            at = (curve.shown == shown) & (bins.count > 0)
            style: dict[str, Any] = {"align": "edge", "edgecolor": drawn["color"], "linewidth": 0.5}
            style |= (
                {"facecolor": drawn["color"], "alpha": faint} if shown else {"facecolor": "white", "hatch": "/" * 6}
            )
            axes.bar((bins.lower + place * width)[at], bins.count[at], width[at], **style)
    axes.set_yscale("log")
    axes.set_ylim(0.6, 1.6 * most)
    axes.minorticks_off()
    powers = 10 ** np.arange(0, int(math.log10(max(most, 1))) + 1)
    ticks = powers[:: max(1, len(powers) // 3)]
    axes.set_yticks(ticks, map(str, ticks))
    hidden = ", ".join(f"{curve.hidden}" for curve in panel.curves)
    axes.set_xlabel(f"confidence\nhidden: {hidden} of {panel.curves[0].rows}", fontsize=SMALLEST)
