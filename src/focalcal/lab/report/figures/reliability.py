"""Reliability diagrams: accuracy against confidence, one panel per objective, with the counts below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from focalcal.core.extras import required
from focalcal.lab.objectives import short_name
from focalcal.pages.palette import Look
from focalcal.pages.reliability_display import ReliabilityDisplay, scale_rows
from focalcal.pages.style import SMALLEST, PanelGrid, drawing, headed, line_style, plain
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focalcal.lab.evidence.evidence import Evidence, RunEvidence

_HOLLOW: dict[str, Any] = {"linestyle": (0, (4, 1.2)), "markerfacecolor": "white"}  # before scaling, as on the page


@dataclass(frozen=True, eq=False)
class ReliabilityPanel:
    """An objective and its displays: one, or before and after temperature scaling; `summary` is shown above them."""

    objective: str
    look: Look
    summary: str
    displays: tuple[ReliabilityDisplay, ...]

    def styles(self) -> list[dict[str, Any]]:
        """Of the displays: the objective's own, hollow and dashed before scaling."""
        own = line_style(self.look) | {"linestyle": "-"}
        return [own | _HOLLOW, own] if len(self.displays) > 1 else [own]

    def draw(self, top: Axes, below: Axes, *, letters: int, most: float) -> None:
        """The diagram into `top`, its title of at most so many letters; the counts, at most `most`, into `below`."""
        number = len(self.displays)
        for place, (display, style) in enumerate(zip(self.displays, self.styles(), strict=True)):
            display.draw_diagram(top, style | {"label": display.name}, chance=number == 1)
            display.draw_rows(below, style["color"], faint=place + 1 < number, place=place, number=number)
        top.set_title(f"{plain(short_name(self.objective), longest=letters)}\n{self.summary}")
        scale_rows(below, most)
        hidden = ", ".join(str(display.hidden) for display in self.displays)
        below.set_xlabel(f"confidence\nhidden: {hidden} of {self.displays[0].rows}", fontsize=SMALLEST)


@dataclass(frozen=True, eq=False)
class ReliabilityDiagrams:
    """Panels of one setting and seed."""

    title: str
    note: str
    panels: tuple[ReliabilityPanel, ...]

    def frame(self) -> Table:
        """One row per bin that is not empty, hidden ones included."""
        return Table.stacked(
            {"objective": panel.objective, "curve": display.name, **display.frame().columns}
            for panel in self.panels
            for display in panel.displays
        )

    def plot(self) -> Figure:
        """Points at (mean confidence, accuracy) with the Wilson interval, in a panel of unit sides; counts below."""
        page = PanelGrid(len(self.panels))
        rows, columns = page.rows, page.columns
        most = max(float(display.reliability.count.max()) for panel in self.panels for display in panel.displays)
        with drawing(0.75 + 2.9 * page.row * rows, width=page.width) as figure:
            grid = figure.add_gridspec(2 * rows, columns, height_ratios=[2.6, 1] * rows)
            for number, panel in enumerate(self.panels):
                row, column = divmod(number, columns)
                top = figure.add_subplot(grid[2 * row, column])
                below = figure.add_subplot(grid[2 * row + 1, column], sharex=top)
                panel.draw(top, below, letters=page.letters, most=most)
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
    drawn = evidence.looks
    runs = runs_of_seed(
        evidence, setting, lambda run: (run.scaled if temperature else run.reliability) is not None, seed, objectives
    )
    if not runs:
        return None
    panels = tuple(_panel(run, drawn[run.objective], temperature, least) for run in runs)
    limits = sorted({display.least for panel in panels for display in panel.displays})
    sparse = " or ".join(map(str, limits))
    what = "before and after temperature scaling" if temperature else "test set, as trained"
    more = " Grey: where a calibrated network's accuracy would lie by chance."
    if temperature:
        rows = "the other half of the test rows" if evidence.fitted_on == "halves" else "the validation rows"
        more = f" T was fitted on {rows}; both curves are of the same rows."
    level = panels[0].displays[0].reliability.level
    return ReliabilityDiagrams(
        title=f"Reliability on {setting}, seed {runs[0].seed}: {what}",
        note=f"Bars: {level:.0%} Wilson intervals. Below the diagonal is overconfident. Bins with fewer than {sparse} "
        f"rows are not shown above and are hatched below.{more}",
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


def _panel(run: RunEvidence, look: Look, temperature: bool, least: int | None) -> ReliabilityPanel:
    fitted = ""
    if temperature:
        assert run.scaled is not None
        fitted = f"\nT = {run.scaled.temperature:.3g}{' (a bound)' * run.scaled.at_bound}"
        made = [("before", run.scaled.reliability_before), ("after", run.scaled.reliability_after)]
    else:
        assert run.reliability is not None
        made = [("as trained", run.reliability)]
    displays = tuple(ReliabilityDisplay.from_reliability(bins, name=name, least=least) for name, bins in made)
    errors = (f"{100 * display.reliability.ece:.2f}" for display in displays)
    summary = "ECE " + " \N{RIGHTWARDS ARROW} ".join(errors) + " %" + fitted
    return ReliabilityPanel(run.objective, look, summary, displays)


def _handles(panels: Sequence[ReliabilityPanel]) -> list[Any]:
    """Of the displays, where there are several."""
    line = required("matplotlib.lines", purpose="A figure").Line2D
    labels = [display.name for display in panels[0].displays]
    if len(labels) < 2:
        return []
    neutral: dict[str, Any] = {"color": "#444444", "marker": "o", "linestyle": "-"}
    return [
        line([], [], markersize=4, label=f"{label} scaling", **style)
        for label, style in zip(labels, (neutral | _HOLLOW, neutral), strict=True)
    ]
