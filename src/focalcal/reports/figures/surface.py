"""A metric over gamma and lam: where the operating point lies, and where the minimum."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.analysis.contenders import MARGIN, all_constant_guesses, within_margin
from focalcal.analysis.metric_names import PERCENT, title
from focalcal.core.extras import required
from focalcal.reports.figures.style import GAMMA, LAM, SMALLEST, TEXT_WIDTH, drawing, headed, plain
from focalcal.reports.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focalcal.analysis.evidence import Evidence, RunEvidence

Point = tuple[float, float]  # gamma, lam

_MOST_PRINTED = 14  # columns whose numbers can be read at the width of a page


@dataclass(frozen=True, eq=False)
class Surface:
    """values, (gammas, lams), is the mean over `seeds` runs of a cell; NaN where there is none or it is not finite.

    `minimum` is the cell with the lowest value of those whose error is within the margin of the lowest error
    (`within_margin`) and not that of a constant guess, None if there is none; `operating_point` what was chosen
    beforehand, which need not be on the grid.
    """

    title: str
    note: str
    metric: str
    unit: str
    gammas: tuple[float, ...]
    lams: tuple[float, ...]
    values: np.ndarray
    seeds: np.ndarray
    minimum: Point | None
    operating_point: Point | None

    def frame(self) -> Table:
        """A row a cell, missing ones included."""
        cells = [(gamma, lam) for gamma in self.gammas for lam in self.lams]
        return Table(
            {
                "gamma": [gamma for gamma, _ in cells],
                "lam": [lam for _, lam in cells],
                self.metric: self.values.ravel().tolist(),
                "seeds": self.seeds.ravel().tolist(),
                "minimum": [cell == self.minimum for cell in cells],
                "operating_point": [cell == self.operating_point for cell in cells],
            }
        )

    def plot(self) -> Figure:
        """Cells on an even grid, dark is low; missing ones hatched; a star and a red square."""
        rows, columns = self.values.shape
        width = min(TEXT_WIDTH, 2.6 + 0.5 * columns)
        with drawing(max(2.8, 1.5 + 0.38 * rows), width=width) as figure:
            axes = figure.subplots()
            axes.set_facecolor("#f2f2f2")
            image = axes.imshow(np.ma.masked_invalid(self.values), cmap="viridis", aspect="auto", origin="lower")
            bar = figure.colorbar(image, ax=axes, pad=0.015, aspect=25)
            bar.set_label(plain(f"{title(self.metric)}{self.unit and f' ({self.unit})'}"))
            self._cells(axes, image)
            handles = self._marks(axes)
            axes.set_xticks(range(columns), [f"{lam:g}" for lam in self.lams])
            axes.set_yticks(range(rows), [f"{gamma:g}" for gamma in self.gammas])
            axes.set(xlabel=f"anchor weight {LAM}", ylabel=f"focusing {GAMMA}")
            axes.tick_params(length=0)
            headed(figure, self.title, self.note, handles=handles)
        return figure

    def _cells(self, axes: Axes, image: Any) -> None:
        rectangle = required("matplotlib.patches", purpose="A surface").Rectangle
        form = _form(self.values)
        for (row, column), value in np.ndenumerate(self.values):
            if math.isnan(value):
                corner = (column - 0.5, row - 0.5)
                axes.add_patch(
                    rectangle(
                        corner, 1, 1, fill=False, hatch="////", edgecolor="#888888", linewidth=0, label="_missing"
                    )
                )
            elif len(self.lams) <= _MOST_PRINTED:
                light = _luminance(image.cmap(image.norm(value))[:3]) > 0.18  # where black has the higher contrast
                colour = "black" if light else "white"
                axes.text(
                    column, row - 0.1, format(value, form), ha="center", va="center", color=colour, fontsize=SMALLEST
                )

    def _marks(self, axes: Axes) -> list[Any]:
        """The star in the corner of its cell, so that the number can be read; the square around its cell."""
        handles: list[Any] = []
        if self.minimum is not None:
            row, column = self.gammas.index(self.minimum[0]), self.lams.index(self.minimum[1])
            star: dict[str, Any] = {
                "marker": "*",
                "color": "white",
                "markeredgecolor": "black",
                "markeredgewidth": 0.6,
                "linewidth": 0,
            }
            handles += axes.plot(column, row + 0.3, markersize=7, label="minimum", **star)
        place = self.operating_point
        if place is not None and place[0] in self.gammas and place[1] in self.lams:
            corner = (self.lams.index(place[1]) - 0.46, self.gammas.index(place[0]) - 0.44)
            label = f"operating point, {_shown(place)}"
            square = required("matplotlib.patches", purpose="A surface").Rectangle(
                corner, 0.92, 0.88, fill=False, edgecolor="#E8000B", linewidth=1.8, label=label
            )
            handles.append(axes.add_patch(square))
        return handles


def surface(
    evidence: Evidence,
    setting: str,
    metric: str = "ece",
    *,
    objective: str = "fcl",
    operating_point: Point | None = None,
) -> Surface | None:
    """Of the test split; None if the setting has fewer than two gammas and two lams of the objective.

    Runs that were trained or tested in another way than most are left out, which the note says. The paper marks the
    point that was chosen beforehand, which a store does not know: give it.
    """
    runs = [
        run
        for run in evidence.runs
        if run.setting == setting and run.spec["objective"] == objective and {"gamma", "lam"} <= run.options.keys()
    ]
    usual, others = _same_protocol(runs)
    cells: dict[Point, list[float]] = {}
    runs_of: dict[Point, list[RunEvidence]] = {}
    for run in usual:
        point, test = (float(run.options["gamma"]), float(run.options["lam"])), run.metrics.get("test", {})
        cells.setdefault(point, []).append(test.get(metric, math.nan) * (100 if metric in PERCENT else 1))
        runs_of.setdefault(point, []).append(run)
    gammas, lams = (tuple(sorted({cell[axis] for cell in cells})) for axis in (0, 1))
    if len(gammas) < 2 or len(lams) < 2:
        return None
    values, seeds = np.full((len(gammas), len(lams)), math.nan), np.zeros((len(gammas), len(lams)), dtype=int)
    for (gamma, lam), measured in cells.items():
        finite = [value for value in measured if math.isfinite(value)]
        at = gammas.index(gamma), lams.index(lam)
        seeds[at] = len(finite)
        if len(finite) == len(measured):  # a mean over some of the seeds is not comparable
            values[at] = float(np.mean(finite))
    near = within_margin({point: _mean_error(several) for point, several in runs_of.items()})
    useful = {point for point in near if not all_constant_guesses(runs_of[point])}
    allowed = np.array([[(gamma, lam) in useful for lam in lams] for gamma in gammas])
    among = np.where(allowed, values, math.nan)
    lowest = None
    if np.isfinite(among).any():
        row, column = np.unravel_index(np.nanargmin(among), among.shape)
        lowest = gammas[row], lams[column]
    place = None if operating_point is None else (float(operating_point[0]), float(operating_point[1]))
    return Surface(
        title=f"{title(metric)} of {objective} on {setting} over {GAMMA} and {LAM}, test set",
        note=_note(values, among, seeds, sorted({run.seed for run in usual}), len(others), place, gammas, lams),
        metric=metric,
        unit="%" if metric in PERCENT else "",
        gammas=gammas,
        lams=lams,
        values=values,
        seeds=seeds,
        minimum=lowest,
        operating_point=place,
    )


def _mean_error(runs: Sequence[RunEvidence]) -> float:
    return float(np.mean([run.metrics.get("test", {}).get("error", math.nan) for run in runs]))


def _same_protocol(runs: list[RunEvidence]) -> tuple[list[RunEvidence], list[RunEvidence]]:
    """The runs of the commonest training and protocol, and the others."""
    groups: dict[str, list[RunEvidence]] = {}
    for run in runs:
        how = json.dumps([run.spec.get("training"), run.spec.get("protocol")], sort_keys=True)
        groups.setdefault(how, []).append(run)
    most = max(groups.values(), key=len, default=[])
    return most, [run for group in groups.values() if group is not most for run in group]


def _note(
    values: np.ndarray,
    among: np.ndarray,
    seeds: np.ndarray,
    known_seeds: list[int],
    others: int,
    place: Point | None,
    gammas: tuple[float, ...],
    lams: tuple[float, ...],
) -> str:
    parts = [
        f"Seed {known_seeds[0]}." if len(known_seeds) == 1 else f"Mean over seeds {', '.join(map(str, known_seeds))}."
    ]
    if len(set(seeds[np.isfinite(values)].tolist())) > 1:
        parts.append("Some cells have fewer seeds.")
    missing = int(np.isnan(values).sum())
    if missing:
        parts.append(f"Hatched: {missing} of {values.size} cells missing or not finite.")
    if excluded := int((np.isfinite(values) & np.isnan(among)).sum()):
        cells = f"{excluded} cell{'s' * (excluded > 1)} cannot be the minimum"
        parts.append(f"{cells}: an error exceeds the lowest by more than {MARGIN}, or is that of a constant guess.")
    ties = int((among == np.nanmin(among)).sum()) if np.isfinite(among).any() else 0
    if ties > 1:
        parts.append(f"{ties} cells share the minimum; the first is marked.")
    if others:
        parts.append(f"{others} runs with another training or protocol are left out.")
    if place is not None and not (place[0] in gammas and place[1] in lams):
        parts.append(f"The operating point, {_shown(place)}, is not on the grid.")
    parts.append("Seen on test data: the minimum describes, it must not choose.")
    return " ".join(parts)


def _luminance(colour: Sequence[float]) -> float:
    """From 0 to 1, of red, green and blue."""
    return float(np.dot(np.asarray(colour) ** 2.2, (0.2126, 0.7152, 0.0722)))


def _shown(point: Point) -> str:
    return f"{GAMMA} = {point[0]:g}, {LAM} = {point[1]:g}"


def _form(values: np.ndarray) -> str:
    """Three significant digits of a typical value, as fixed decimals."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not len(sizes):
        return ".2f"
    decimals = max(0, min(4, 2 - math.floor(math.log10(float(np.median(sizes))))))
    return f".{decimals}f" if sizes.max() < 1e5 else ".2g"
