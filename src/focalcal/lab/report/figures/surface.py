"""The figure of a metric over gamma and lam: where the operating point lies, and where the minimum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.extras import required
from focalcal.lab.evidence.metric_names import title
from focalcal.lab.evidence.surface import Point, Surface
from focalcal.lab.report.study_tables.flags import MARGIN
from focalcal.pages.style import GAMMA, LAM, SMALLEST, TEXT_WIDTH, drawing, headed, plain
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_PRINTED = 14  # columns whose numbers can be read at the width of a page


@dataclass(frozen=True, eq=False)
class SurfaceFigure:
    """A surface to draw."""

    surface: Surface

    @property
    def title(self) -> str:
        """What is shown, in a line."""
        return surface_title(self.surface)

    @property
    def note(self) -> str:
        """What a reader must know about it."""
        return surface_note(self.surface, missing="Hatched")

    def frame(self) -> Table:
        """One row per cell, missing ones included."""
        grid = self.surface
        cells = [(gamma, lam) for gamma in grid.gammas for lam in grid.lams]
        return Table(
            {
                "gamma": [gamma for gamma, _ in cells],
                "lam": [lam for _, lam in cells],
                grid.metric: grid.values.ravel().tolist(),
                "seeds": grid.seeds.ravel().tolist(),
                "minimum": [cell == grid.minimum for cell in cells],
                "operating_point": [cell == grid.operating_point for cell in cells],
            }
        )

    def plot(self) -> Figure:
        """Cells on an even grid, dark is low; missing ones hatched; a star and a red square."""
        rows, columns = self.surface.values.shape
        width = min(TEXT_WIDTH, 2.6 + 0.5 * columns)
        with drawing(max(2.8, 1.5 + 0.38 * rows), width=width) as figure:
            axes = figure.subplots()
            axes.set_facecolor("#f2f2f2")
            image = axes.imshow(
                np.ma.masked_invalid(self.surface.values), cmap="viridis", aspect="auto", origin="lower"
            )
            bar = figure.colorbar(image, ax=axes, pad=0.015, aspect=25)
            bar.set_label(plain(f"{title(self.surface.metric)}{self.surface.unit and f' ({self.surface.unit})'}"))
            self._cells(axes, image)
            handles = self._marks(axes)
            axes.set_xticks(range(columns), [f"{lam:g}" for lam in self.surface.lams])
            axes.set_yticks(range(rows), [f"{gamma:g}" for gamma in self.surface.gammas])
            axes.set(xlabel=f"anchor weight {LAM}", ylabel=f"focusing {GAMMA}")
            axes.tick_params(length=0)
            headed(figure, self.title, self.note, handles=handles)
        return figure

    def _cells(self, axes: Axes, image: Any) -> None:
        rectangle = required("matplotlib.patches", purpose="A surface").Rectangle
        form = _form(self.surface.values)
        for (row, column), value in np.ndenumerate(self.surface.values):
            if math.isnan(value):
                corner = (column - 0.5, row - 0.5)
                hatched: dict[str, Any] = {"hatch": "////", "edgecolor": "#888888", "linewidth": 0, "label": "_missing"}
                axes.add_patch(rectangle(corner, 1, 1, fill=False, **hatched))
            elif len(self.surface.lams) <= _MOST_PRINTED:
                light = _luminance(image.cmap(image.norm(value))[:3]) > 0.18  # where black has the higher contrast
                centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALLEST}
                axes.text(column, row - 0.1, format(value, form), color="black" if light else "white", **centred)

    def _marks(self, axes: Axes) -> list[Any]:
        """The star in the corner of its cell, so that the number can be read; the square around its cell."""
        handles: list[Any] = []
        grid = self.surface
        if grid.minimum is not None:
            row, column = grid.gammas.index(grid.minimum[0]), grid.lams.index(grid.minimum[1])
            edge: dict[str, Any] = {"markeredgecolor": "black", "markeredgewidth": 0.6, "linewidth": 0}
            handles += axes.plot(column, row + 0.3, marker="*", color="white", markersize=7, label="minimum", **edge)
        if len(places := grid.curve_places()) > 1:
            rows, columns = zip(*places, strict=True)
            label = "where theory cancels cross-entropy's overconfidence"
            handles += axes.plot(columns, rows, color="white", linewidth=1.6, linestyle=(0, (4, 1.5)), label=label)
            handles[-1].set_path_effects(_outlined())
        place = grid.operating_point
        if place is not None and grid.on_grid:
            corner = (grid.lams.index(place[1]) - 0.46, grid.gammas.index(place[0]) - 0.44)
            label = f"operating point, {_point_text(place)}"
            square = required("matplotlib.patches", purpose="A surface").Rectangle(
                corner, 0.92, 0.88, fill=False, edgecolor="#E8000B", linewidth=1.8, label=label
            )
            handles.append(axes.add_patch(square))
        return handles


def _outlined() -> list[Any]:
    """A dark edge, so that a white line is seen on every colour and in the legend."""
    effects = required("matplotlib.patheffects", purpose="A surface")
    return [effects.Stroke(linewidth=2.8, foreground="black"), effects.Normal()]


def surface_title(grid: Surface) -> str:
    """What is shown, in a line."""
    return f"{title(grid.metric)} of {grid.objective} on {grid.setting} over {GAMMA} and {LAM}, test set"


def surface_note(grid: Surface, *, missing: str) -> str:
    """What a reader must know about it; `missing` says how cells without a value look."""
    seeds = ", ".join(map(str, grid.known_seeds))
    parts = [f"Mean over seeds {seeds}." if len(grid.known_seeds) > 1 else f"Seed {seeds}."]
    if len(set(grid.seeds[np.isfinite(grid.values)].tolist())) > 1:
        parts.append("Some cells have fewer seeds.")
    if grid.missing:
        parts.append(f"{missing}: {grid.missing} of {grid.values.size} cells missing or not finite.")
    if grid.excluded:
        cells = f"{grid.excluded} cell{'s' * (grid.excluded > 1)} cannot be the minimum"
        parts.append(f"{cells}: an error exceeds the lowest by more than {MARGIN}, or is that of a constant guess.")
    if grid.ties > 1:
        parts.append(f"{grid.ties} cells share the minimum; the first is marked.")
    if grid.left_out:
        parts.append(f"{grid.left_out} runs with another training or protocol are left out.")
    if grid.operating_point is not None and not grid.on_grid:
        parts.append(f"The operating point, {_point_text(grid.operating_point)}, is not on the grid.")
    parts.append("Seen on test data: the minimum describes, it must not choose.")
    return " ".join(parts)


def _luminance(colour: Sequence[float]) -> float:
    """From 0 to 1, of red, green and blue."""
    return float(np.dot(np.asarray(colour) ** 2.2, (0.2126, 0.7152, 0.0722)))


def _point_text(point: Point) -> str:
    return f"{GAMMA} = {point[0]:g}, {LAM} = {point[1]:g}"


def _form(values: np.ndarray) -> str:
    """Three significant digits of a typical value, as fixed decimals."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not len(sizes):
        return ".2f"
    decimals = max(0, min(4, 2 - math.floor(math.log10(float(np.median(sizes))))))
    return f".{decimals}f" if sizes.max() < 1e5 else ".2g"
