"""How AdaFocal steered gamma: one line per confidence bin over the epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.extras import required
from focalcal.lab.objectives import short_name
from focalcal.pages.style import GAMMA, GUIDE, PANEL, drawing, headed, panels, plain, whole_numbers
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focalcal.lab.evidence.evidence import Evidence, RunEvidence

_ACROSS = 3
_MOST = 6  # runs


@dataclass(frozen=True, eq=False)
class GammaPanel:
    """One run: gammas (epochs, bins) and edges (epochs, bins + 1) after each of its epochs; NaN where not stored."""

    objective: str
    seed: int
    epochs: np.ndarray
    gammas: np.ndarray
    edges: np.ndarray


@dataclass(frozen=True, eq=False)
class GammaHistory:
    """One panel per run of a setting."""

    title: str
    note: str
    panels: tuple[GammaPanel, ...]

    def frame(self) -> Table:
        """One row per run, epoch and bin (from 1)."""
        return Table.stacked(
            {"objective": panel.objective, "seed": panel.seed, "epoch": int(epoch), "bin": range(1, len(gammas) + 1)}
            | {"lower": edges[:-1], "upper": edges[1:], "gamma": gammas}
            for panel in self.panels
            for epoch, gammas, edges in zip(panel.epochs, panel.gammas, panel.edges, strict=True)
        )

    def plot(self) -> Figure:
        """Dark lines are bins of low confidence, light ones of high; below 0 the loss is inverse-focal."""
        with drawing(
            0.9 + 2.1 * -(-len(self.panels) // _ACROSS), width=max(3.6, 2.4 * min(3, len(self.panels)))
        ) as figure:
            matplotlib, cm = required("matplotlib", purpose="A figure"), required("matplotlib.cm", purpose="A figure")
            bins = max(panel.gammas.shape[1] for panel in self.panels)
            norm = required("matplotlib.colors", purpose="A figure").Normalize(1, max(2, bins))
            colours = cm.ScalarMappable(norm, matplotlib.colormaps["viridis"].resampled(256))
            shown = panels(figure, len(self.panels), across=_ACROSS, sharey=True)
            for axes, panel in zip(shown, self.panels, strict=True):
                axes.axhline(0, color=GUIDE, linewidth=0.8, linestyle="--", zorder=0, label="_zero")
                for number, history in enumerate(panel.gammas.T, 1):
                    colour = colours.to_rgba(1 + 0.92 * (number - 1))  # the lightest yellow is not seen on white
                    axes.plot(panel.epochs, history, color=colour, marker=".", markersize=2.5, linewidth=0.9)
                whole_numbers(axes)
                axes.set_xlabel("epoch")
                axes.set_title(f"{plain(short_name(panel.objective), longest=PANEL - 8)}, seed {panel.seed}")
            shown[0].set_ylabel(f"{GAMMA} of the bin")
            figure.colorbar(colours, ax=shown, label="bin, by confidence", ticks=[1, (1 + bins) // 2, bins], aspect=30)
            headed(figure, self.title, self.note)
        return figure


def gamma_history(evidence: Evidence, setting: str) -> GammaHistory | None:
    """Of the first runs of a setting whose epochs hold `gammas`; None if none do."""
    steered = [panel for run in evidence.runs if run.setting == setting and (panel := _panel(run)) is not None]
    if not steered:
        return None
    notes = ["Below 0 the loss is inverse-focal. Bins are known by their number, as their edges move."]
    if len(steered) > _MOST:
        notes.append(f"{len(steered) - _MOST} more runs are not shown.")
    return GammaHistory(
        f"{GAMMA} of each confidence bin over the epochs on {setting}", " ".join(notes), tuple(steered[:_MOST])
    )


def _panel(run: RunEvidence) -> GammaPanel | None:
    steered = [epoch for epoch in run.epochs if epoch.get("gammas")]
    if not steered or len({len(epoch["gammas"]) for epoch in steered}) > 1:
        return None
    gammas = np.array([_floats(epoch["gammas"]) for epoch in steered])
    width = gammas.shape[1] + 1
    edges = [
        _floats(epoch["edges"]) if len(epoch.get("edges") or ()) == width else [math.nan] * width for epoch in steered
    ]
    return GammaPanel(
        run.objective, run.seed, np.array([int(epoch["epoch"]) for epoch in steered]), gammas, np.array(edges)
    )


def _floats(values: list[Any]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]
