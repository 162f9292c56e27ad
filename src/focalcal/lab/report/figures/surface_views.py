"""A metric over gamma and lam: where the operating point lies, and where the minimum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.extras import required
from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.metric_names import title
from focalcal.lab.evidence.surface import Point, Surface, surface
from focalcal.lab.report.figures.view import View
from focalcal.lab.report.study_tables.flags import MARGIN
from focalcal.pages.style import GAMMA, LAM, SMALLEST, TEXT_WIDTH, drawing, headed, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = ("ece", "adaptive_ece", "nll", "brier", "error")
_MOST_PRINTED = 14  # columns whose numbers can be read at the width of a page


def surface_views(
    evidence: Evidence, setting: str, points: Mapping[str, Point], curves: Mapping[str, Sequence[Point]]
) -> Iterator[View]:
    """Of each loss with a grid in the setting, by metric; `points` are operating points by data set and network."""
    point, curve = points.get(evidence.place(setting)), curves.get(setting, ())
    for loss in evidence.losses:
        for metric in METRICS:
            grid = surface(evidence, setting, metric, objective=loss, operating_point=point, curve=curve)
            if grid is not None and np.isfinite(grid.values).any():
                yield surface_view(grid)


def surface_view(grid: Surface) -> View:
    """One row per gamma, lam by lam; missing cells are NaN."""
    rows = [
        {"gamma": gamma, "lam": list(grid.lams), "value": grid.values[at].tolist(), "seeds": grid.seeds[at].tolist()}
        for at, gamma in enumerate(grid.gammas)
    ]
    facts = {
        "metric": grid.metric,
        "label": title(grid.metric),
        "unit": grid.unit,
        "minimum": grid.minimum,
        "operating_point": grid.operating_point,
        "curve": grid.curve_places(),
    }
    heading = f"{title(grid.metric)} of {grid.objective} on {grid.setting} over {GAMMA} and {LAM}, test set"
    choice, note = f"{grid.objective} {grid.metric}", surface_note(grid)
    return View("surface", grid.setting, choice, heading, note, rows, plot_surface, facts=facts)


def surface_note(grid: Surface) -> str:
    """What a reader must know about it."""
    seeds = ", ".join(map(str, grid.known_seeds))
    parts = [f"Mean over seeds {seeds}." if len(grid.known_seeds) > 1 else f"Seed {seeds}."]
    if len(set(grid.seeds[np.isfinite(grid.values)].tolist())) > 1:
        parts.append("Some cells have fewer seeds.")
    if grid.missing:
        parts.append(f"Without a number: {grid.missing} of {grid.values.size} cells, missing or not finite.")
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


def plot_surface(view: View) -> Figure:
    """Cells on an even grid, dark is low; missing ones hatched; a star in the lowest cell, a red square around the
    operating point, each in its cell so that the number can be read."""
    gammas, lams = [row["gamma"] for row in view.rows], view.rows[0]["lam"]
    values = np.array([row["value"] for row in view.rows])
    with drawing(max(2.8, 1.5 + 0.38 * len(gammas)), width=min(TEXT_WIDTH, 2.6 + 0.5 * len(lams))) as figure:
        axes = figure.subplots()
        axes.set_facecolor("#f2f2f2")
        image = axes.imshow(np.ma.masked_invalid(values), cmap="viridis", aspect="auto", origin="lower")
        bar = figure.colorbar(image, ax=axes, pad=0.015, aspect=25)
        unit = view.facts["unit"]
        bar.set_label(plain(f"{view.facts['label']}{unit and f' ({unit})'}"))
        _cells(axes, image, values)
        handles = _marks(axes, view, gammas, lams)
        axes.set_xticks(range(len(lams)), [f"{lam:g}" for lam in lams])
        axes.set_yticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
        axes.set(xlabel=f"anchor weight {LAM}", ylabel=f"focusing {GAMMA}")
        axes.tick_params(length=0)
        headed(figure, view.title, view.note, handles=handles)
    return figure


def _cells(axes: Axes, image: Any, values: np.ndarray) -> None:
    rectangle = required("matplotlib.patches", purpose="A surface").Rectangle
    form = _form(values)
    for (row, column), value in np.ndenumerate(values):
        if math.isnan(value):
            hatched: dict[str, Any] = {"hatch": "////", "edgecolor": "#888888", "linewidth": 0, "label": "_missing"}
            axes.add_patch(rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, **hatched))
        elif values.shape[1] <= _MOST_PRINTED:
            light = _luminance(image.cmap(image.norm(value))[:3]) > 0.18  # where black has the higher contrast
            centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALLEST}
            axes.text(column, row - 0.1, format(value, form), color="black" if light else "white", **centred)


def _marks(axes: Axes, view: View, gammas: list[float], lams: list[float]) -> list[Any]:
    handles: list[Any] = []
    if (lowest := view.facts["minimum"]) is not None:
        edge: dict[str, Any] = {"markeredgecolor": "black", "markeredgewidth": 0.6, "linewidth": 0, "label": "minimum"}
        place = lams.index(lowest[1]), gammas.index(lowest[0]) + 0.3
        handles += axes.plot(*place, marker="*", color="white", markersize=7, **edge)
    if len(places := view.facts["curve"]) > 1:
        rows, columns = zip(*places, strict=True)
        label = "where theory cancels cross-entropy's overconfidence"
        handles += axes.plot(columns, rows, color="white", linewidth=1.6, linestyle=(0, (4, 1.5)), label=label)
        effects = required("matplotlib.patheffects", purpose="A surface")
        # a dark edge, so that a white line is seen on every colour and in the legend
        handles[-1].set_path_effects([effects.Stroke(linewidth=2.8, foreground="black"), effects.Normal()])
    point = view.facts["operating_point"]
    if point is not None and point[0] in gammas and point[1] in lams:
        corner = (lams.index(point[1]) - 0.46, gammas.index(point[0]) - 0.44)
        frame: dict[str, Any] = {"fill": False, "edgecolor": "#E8000B", "linewidth": 1.8}
        square = required("matplotlib.patches", purpose="A surface").Rectangle(
            corner, 0.92, 0.88, label=f"operating point, {_point_text(point)}", **frame
        )
        handles.append(axes.add_patch(square))
    return handles


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
