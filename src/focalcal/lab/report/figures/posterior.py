"""What a network says against the truth, where the truth is known: p over eta, beside q* of the theory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.extras import required
from focalcal.lab.evidence.run_details import POINTS, PosteriorPanel, posterior_panel
from focalcal.lab.objectives import short_name
from focalcal.pages.style import COLOURS, ETA, GUIDE, SMALLEST, PanelGrid, drawing, headed, plain
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focalcal.lab.store import Run

_NETWORK, _THEORY = "#7fb9e0", COLOURS[4]


@dataclass(frozen=True, eq=False)
class PosteriorScatter:
    """Panels of one setting."""

    title: str
    note: str
    panels: tuple[PosteriorPanel, ...]

    def frame(self) -> Table:
        """One row per objective and bin that is not empty."""
        names = ("lower", "upper", "count", "eta", "p", "low", "high", "q")
        return Table.stacked(
            {"objective": panel.objective, "seed": panel.seed}
            | {name: getattr(panel, name)[panel.count > 0] for name in names}
            for panel in self.panels
        )

    def plot(self) -> Figure:
        """The cloud of p and of q* over eta, with the mean of p and its middle 80 % in bins of eta."""
        page = PanelGrid(len(self.panels))
        with drawing(0.9 + 2.3 * page.row * page.rows, width=page.width) as figure:
            shown = page.axes(figure, x=f"true probability {ETA}", y="probability")
            for axes, panel in zip(shown, self.panels, strict=True):
                _scatter(axes, panel, page.letters)
            headed(figure, self.title, self.note, handles=_handles())
        return figure


def posterior_scatter(
    runs: Iterable[Run], labels: dict[str, str], *, objectives: Sequence[str] | None = None
) -> PosteriorScatter | None:
    """Of runs of one setting and its lowest seed whose test set has a known posterior; None if there are none.

    labels      the objective's label by the run's key, as `Evidence` has them
    objectives  those to show, in order; by default all

    q* is the population minimiser of the loss: of cross-entropy and the Brier score eta itself, of focal loss and of
    Focal Calibration Loss what `theory.minimise` finds. For the other objectives there is no q*.
    """
    known = [
        run for run in runs if "test" in run.splits and "posterior_distance" in run.record["metrics"].get("test", {})
    ]
    chosen = min((run.settings["seed"] for run in known), default=None)
    drawn: dict[str, PosteriorPanel] = {}
    for run in known:
        label = labels.get(run.key, run.settings["objective"])
        if run.settings["seed"] == chosen and label not in drawn and (objectives is None or label in objectives):
            predictions = run.predictions("test")
            if predictions.posterior is not None and not predictions.multilabel:
                options = run.settings["objective_options"]
                drawn[label] = posterior_panel(label, int(chosen), predictions, run.settings["objective"], options)
    if not drawn:
        return None
    order = [name for name in objectives if name in drawn] if objectives is not None else list(drawn)
    settings = sorted({f"{run.settings['data_set']}/{run.settings['model']}" for run in known})
    return PosteriorScatter(
        title=f"Predicted against true probability on {', '.join(settings)}, test set, seed {chosen}",
        note=f"Each point is a row and class; clouds are thinned to {POINTS} points, means are over all. "
        "TV: mean total variation.",
        panels=tuple(drawn[label] for label in order),
    )


def _handles() -> list[Any]:
    line = required("matplotlib.lines", purpose="A figure").Line2D
    dots = {"linestyle": "none", "marker": "o", "markersize": 4}
    return [
        line([], [], color=_NETWORK, label="p of the network", **dots),
        line([], [], color=_THEORY, label="q* of the theory, where known", **dots),
        line([], [], color="black", marker="s", markersize=3, label="mean of p, 10 to 90 %"),
        line([], [], color=GUIDE, linestyle="--", linewidth=0.8, label=f"p = {ETA}"),
    ]


def _scatter(axes: Axes, panel: PosteriorPanel, letters: int) -> None:
    axes.plot([0, 1], [0, 1], color=GUIDE, linewidth=0.8, linestyle="--", label="diagonal", zorder=3)
    cloud: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgewidth": 0, "rasterized": True}
    for column, size, colour, label in ((1, 1.6, _NETWORK, "p of the network"), (2, 1.2, _THEORY, "q* of the theory")):
        axes.plot(panel.points[:, 0], panel.points[:, column], markersize=size, color=colour, label=label, **cloud)
    at = panel.count > 0
    reach = np.maximum(0, np.stack([panel.p[at] - panel.low[at], panel.high[at] - panel.p[at]]))
    bars: dict[str, Any] = {"marker": "s", "markersize": 2.4, "linewidth": 0.9, "elinewidth": 0.7, "zorder": 4}
    axes.errorbar(panel.eta[at], panel.p[at], yerr=reach, color="black", label="mean of p, 10 to 90 %", **bars)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_title(plain(short_name(panel.objective), longest=letters))
    distances = f"TV to {ETA} {panel.to_truth:.3f}"
    distances += "" if math.isnan(panel.to_theory) else f"\nTV to q* {panel.to_theory:.3f}"
    axes.text(0.03, 0.97, distances, transform=axes.transAxes, va="top", fontsize=SMALLEST)
