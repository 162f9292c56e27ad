"""How sure the right and the wrong predictions were."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.reliability import runs_of_seed
from focalcal.pages.style import COLOURS, PanelGrid, drawing, headed, plain
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focalcal.lab.evidence.evidence import Evidence


@dataclass(frozen=True, eq=False)
class ConfidencePanel:
    """Rows whose confidence is in (lower, upper], by whether the prediction was right; all (bins,)."""

    objective: str
    lower: np.ndarray
    upper: np.ndarray
    right: np.ndarray
    wrong: np.ndarray


@dataclass(frozen=True, eq=False)
class ConfidenceHistograms:
    """Panels of one setting and seed."""

    title: str
    note: str
    panels: tuple[ConfidencePanel, ...]

    def frame(self) -> Table:
        """One row per objective and bin."""
        return Table.stacked(map(vars, self.panels))

    def plot(self) -> Figure:
        """Right predictions above the axis, wrong ones below it; the root of the number, so that few are seen."""
        page = PanelGrid(len(self.panels))
        most = tuple(max(int(getattr(panel, side).max()) for panel in self.panels) for side in ("right", "wrong"))
        with drawing(0.8 + 1.85 * page.rows, width=page.width) as figure:
            shown = page.axes(figure, x="confidence", y="rows")
            for axes, panel in zip(shown, self.panels, strict=True):
                _histogram(axes, panel, most, page.letters, first=axes is shown[0])
            handles, _ = figure.axes[0].get_legend_handles_labels()
            headed(figure, self.title, self.note, handles=handles)
        return figure


def confidence_histograms(
    evidence: Evidence, setting: str, *, seed: int | None = None, objectives: Sequence[str] | None = None
) -> ConfidenceHistograms | None:
    """Of the test set as it is, in the bins of the reliability diagram; None without runs.

    `seed` is by default the lowest that any of the objectives has.
    """
    drawn = []
    for run in runs_of_seed(evidence, setting, lambda run: run.reliability is not None, seed, objectives):
        assert run.reliability is not None
        bins = run.reliability
        right = np.rint(np.nan_to_num(bins.count * bins.accuracy)).astype(int)
        wrong = bins.count.astype(int) - right
        drawn.append(ConfidencePanel(run.objective, bins.lower, bins.upper, right, wrong))
        chosen = run.seed
    if not drawn:
        return None
    title = f"Confidence of right and wrong predictions on {setting}, test set, seed {chosen}"
    return ConfidenceHistograms(title, "Heights grow as the root of the number of rows.", tuple(drawn))


def _histogram(axes: Axes, panel: ConfidencePanel, most: tuple[int, ...], letters: int, *, first: bool) -> None:
    width = panel.upper - panel.lower
    for name, sign, colour, hatch in (("right", 1, COLOURS[1], None), ("wrong", -1, COLOURS[4], "/" * 5)):
        edges: dict[str, Any] = {"align": "edge", "edgecolor": "black", "linewidth": 0.5, "hatch": hatch}
        label = f"{name} predictions" if first else f"_{name}"
        axes.bar(panel.lower, sign * np.sqrt(getattr(panel, name)), width, facecolor=colour, label=label, **edges)
    axes.axhline(0, color="black", linewidth=0.6)
    high, low = (max(1.0, 1.08 * math.sqrt(number)) for number in most)
    numbers = [-number for number in _round_numbers(most[1])[:0:-1]] + _round_numbers(most[0])
    places = np.sign(numbers) * np.sqrt(np.abs(numbers))
    apart = [place == 0 or abs(place) > 0.1 * (high + low) for place in places]  # else the labels would touch
    axes.set_yticks(places[apart], [str(abs(number)) for number, kept in zip(numbers, apart, strict=True) if kept])
    axes.set(xlim=(0, 1), ylim=(-low, high))
    wrong = f"{panel.wrong.sum()} of {panel.wrong.sum() + panel.right.sum()} wrong"
    axes.set_title(f"{plain(short_name(panel.objective), longest=letters)}\n{wrong}")


def _round_numbers(most: int) -> list[int]:
    """0 and two or three round numbers up to `most`.

    >>> _round_numbers(360), _round_numbers(7)
    ([0, 10, 100, 200], [0, 1, 2, 5])
    """
    scale = 10 ** (len(str(most)) - 1)
    return [0, *(number for number in (scale // 10, scale, 2 * scale, 5 * scale) if 0 < number <= most)]
