"""How sure the right and the wrong predictions were."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.reports.figures.style import COLOURS, Page, drawing, headed, panels, plain
from focalcal.reports.objectives import short_name
from focalcal.reports.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focalcal.analysis.evidence import Evidence


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
        """A row an objective and bin."""
        columns: dict[str, list[Any]] = {"objective": []}
        for panel in self.panels:
            columns["objective"] += [panel.objective] * len(panel.lower)
            for name in ("lower", "upper", "right", "wrong"):
                columns.setdefault(name, []).extend(getattr(panel, name).tolist())
        return Table(columns)

    def plot(self) -> Figure:
        """Right predictions above the axis, wrong ones below it; the root of the number, so that few are seen."""
        page = Page(len(self.panels))
        most = tuple(max(int(getattr(panel, side).max()) for panel in self.panels) for side in ("right", "wrong"))
        with drawing(0.8 + 1.85 * page.rows, width=page.width) as figure:
            for number, (axes, panel) in enumerate(
                zip(panels(figure, len(self.panels), across=page.columns), self.panels, strict=True)
            ):
                _histogram(axes, panel, most, page.letters, first=number == 0)
                if number % page.columns == 0:
                    axes.set_ylabel("rows")
                if number + page.columns >= len(self.panels):
                    axes.set_xlabel("confidence")
            handles, _ = figure.axes[0].get_legend_handles_labels()
            headed(figure, self.title, self.note, handles=handles)
        return figure


def confidence_histograms(
    evidence: Evidence, setting: str, *, seed: int | None = None, objectives: Sequence[str] | None = None
) -> ConfidenceHistograms | None:
    """Of the test set as it is, in the bins of the reliability diagram; None without runs.

    `seed` is by default the lowest that any of the objectives has.
    """
    wanted = evidence.objectives if objectives is None else objectives
    usable = [run for one in wanted for run in evidence.of(setting, one) if run.reliability is not None]
    chosen = min((run.seed for run in usable), default=None) if seed is None else seed
    found = {}
    for run in reversed(usable):
        if run.seed == chosen:
            bins = run.reliability
            assert bins is not None
            right = np.rint(np.nan_to_num(bins.count * bins.accuracy)).astype(int)
            found[run.objective] = ConfidencePanel(
                run.objective, bins.lower, bins.upper, right, bins.count.astype(int) - right
            )
    shown = tuple(found[objective] for objective in wanted if objective in found)
    if not shown:
        return None
    title = f"Confidence of right and wrong predictions on {setting}, test set, seed {chosen}"
    return ConfidenceHistograms(title, "Heights grow as the root of the number of rows.", shown)


def _histogram(axes: Axes, panel: ConfidencePanel, most: tuple[int, ...], letters: int, *, first: bool) -> None:
    width = panel.upper - panel.lower
    sides: tuple[tuple[str, int, dict[str, Any]], ...] = (
        ("right", 1, {"facecolor": COLOURS[1]}),
        ("wrong", -1, {"facecolor": COLOURS[4], "hatch": "/" * 5}),
    )
    for name, sign, style in sides:
        label = f"{name} predictions" if first else f"_{name}"
        heights = sign * np.sqrt(getattr(panel, name))
        axes.bar(panel.lower, heights, width, align="edge", edgecolor="black", linewidth=0.5, label=label, **style)
    axes.axhline(0, color="black", linewidth=0.6)
    high, low = (max(1.0, 1.08 * math.sqrt(number)) for number in most)
    numbers = [-number for number in _round_numbers(most[1])[:0:-1]] + _round_numbers(most[0])
    places = np.sign(numbers) * np.sqrt(np.abs(numbers))
    apart = [place == 0 or abs(place) > 0.1 * (high + low) for place in places]  # else the labels would touch
    axes.set_yticks(places[apart], [str(abs(number)) for number, kept in zip(numbers, apart, strict=True) if kept])
    axes.set(xlim=(0, 1), ylim=(-low, high))
    told = f"{panel.wrong.sum()} of {panel.wrong.sum() + panel.right.sum()} wrong"
    axes.set_title(f"{plain(short_name(panel.objective), longest=letters)}\n{told}")


def _round_numbers(most: int) -> list[int]:
    """0 and two or three round numbers up to `most`.

    >>> _round_numbers(360), _round_numbers(7)
    ([0, 10, 100, 200], [0, 1, 2, 5])
    """
    scale = 10 ** (len(str(most)) - 1)
    return [0, *(number for number in (scale // 10, scale, 2 * scale, 5 * scale) if 0 < number <= most)]
