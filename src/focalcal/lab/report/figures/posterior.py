"""What a network says against the truth, where the truth is known: p over eta, beside q* of the theory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.extras import required
from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.run_details import POINTS
from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.view import Row, View, to_digits
from focalcal.pages.style import COLOURS, ETA, GUIDE, SMALLEST, PanelGrid, drawing, headed, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BINS = ("lower", "upper", "eta", "p", "low", "high", "q")
_NETWORK, _THEORY = "#7fb9e0", COLOURS[4]


def posterior_view(evidence: Evidence, setting: str) -> View | None:
    """The lowest seed's cloud and means in bins of eta, distances averaged over the seeds, nearest first.

    q* is the population minimiser of the loss; there is none for losses whose minimiser is not known here.
    """
    rows: list[Row] = []
    for objective in evidence.objectives:
        runs = [run for run in evidence.of(setting, objective) if run.details and run.details.posterior]
        known = [run.details.posterior for run in runs if run.details and run.details.posterior]
        if known:
            first, at = known[0], known[0]["count"] > 0
            row: Row = {"objective": objective, "seed": runs[0].seed, "rows": first["count"][at].tolist()}
            row |= {name: float(np.mean([each[name] for each in known])) for name in ("to_truth", "to_theory")}
            row |= {name: to_digits(first[name][at]) for name in _BINS}
            columns = zip(("eta", "p", "q"), first["points"].T, strict=True)
            rows.append(row | {"cloud": {name: to_digits(column, 4) for name, column in columns}})
    if not rows:
        return None
    rows.sort(key=lambda row: row["to_truth"])
    note = f"Each point is a row and class of one seed, thinned to {POINTS}; means are over all. TV: total variation."
    title = f"Predicted against true probability on {setting}"
    return View("posterior", setting, "", title, note, rows, plot_posterior)


def plot_posterior(view: View) -> Figure:
    """The cloud of p and of q* over eta, with the mean of p and its middle 80 % in bins of eta."""
    page = PanelGrid(len(view.rows))
    with drawing(0.9 + 2.3 * page.row * page.rows, width=page.width) as figure:
        shown = page.axes(figure, x=f"true probability {ETA}", y="probability")
        for axes, row in zip(shown, view.rows, strict=True):
            _scatter(axes, row, page.letters)
        headed(figure, view.title, view.note, handles=_handles())
    return figure


def _handles() -> list[Any]:
    line = required("matplotlib.lines", purpose="A figure").Line2D
    dots = {"linestyle": "none", "marker": "o", "markersize": 4}
    return [
        line([], [], color=_NETWORK, label="p of the network", **dots),
        line([], [], color=_THEORY, label="q* of the theory, where known", **dots),
        line([], [], color="black", marker="s", markersize=3, label="mean of p, 10 to 90 %"),
        line([], [], color=GUIDE, linestyle="--", linewidth=0.8, label=f"p = {ETA}"),
    ]


def _scatter(axes: Axes, row: Row, letters: int) -> None:
    axes.plot([0, 1], [0, 1], color=GUIDE, linewidth=0.8, linestyle="--", label="diagonal", zorder=3)
    cloud: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgewidth": 0, "rasterized": True}
    for name, size, colour in (("p", 1.6, _NETWORK), ("q", 1.2, _THEORY)):
        axes.plot(row["cloud"]["eta"], row["cloud"][name], markersize=size, color=colour, label=f"_{name}", **cloud)
    p, low, high = (np.array(row[name]) for name in ("p", "low", "high"))
    bars: dict[str, Any] = {"marker": "s", "markersize": 2.4, "linewidth": 0.9, "elinewidth": 0.7, "zorder": 4}
    reach = np.maximum(0, [p - low, high - p])
    axes.errorbar(row["eta"], p, yerr=reach, color="black", label="mean of p, 10 to 90 %", **bars)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_title(plain(short_name(row["objective"]), longest=letters))
    distances = f"TV to {ETA} {row['to_truth']:.3f}"
    distances += "" if math.isnan(row["to_theory"]) else f"\nTV to q* {row['to_theory']:.3f}"
    axes.text(0.03, 0.97, distances, transform=axes.transAxes, va="top", fontsize=SMALLEST)
