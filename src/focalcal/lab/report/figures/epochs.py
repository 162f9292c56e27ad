"""A metric of the test set after each epoch, one line per objective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.lab.objectives import short_name
from focalcal.pages.palette import Look
from focalcal.pages.style import drawing, headed, line_style, plain, whole_numbers
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focalcal.lab.evidence.evidence import Evidence, RunEvidence

_NAMES = {"nll": "NLL (nats)", "ece": "ECE (share)", "error": "error (share)", "brier": "Brier score", "loss": "loss"}
_MARKED = 12  # markers along a line


@dataclass(frozen=True, eq=False)
class EpochLine:
    """Mean, lowest and highest over the seeds at each epoch, (epochs,); NaN where a seed's number is not finite."""

    objective: str
    look: Look
    seeds: tuple[int, ...]
    epochs: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False)
class EpochCurves:
    """Lines of one setting."""

    title: str
    note: str
    metric: str
    lines: tuple[EpochLine, ...]

    def frame(self) -> Table:
        """One row per objective and epoch."""
        blocks = (
            {"objective": line.objective, "epoch": line.epochs, "seeds": len(line.seeds)}
            | {"mean": line.mean, "low": line.low, "high": line.high}
            for line in self.lines
        )
        return Table.stacked(blocks, digits=4)

    def plot(self) -> Figure:
        """On a logarithmic scale if all numbers are positive; the band is from the lowest to the highest seed."""
        with drawing(3.6) as figure:
            axes = figure.subplots()
            for line in self.lines:
                style = line_style(line.look)
                every = max(1, math.ceil(len(line.epochs) / _MARKED))
                marks: dict[str, Any] = {"markersize": 3.2, "markevery": (line.look.place % every, every)}
                label = plain(short_name(line.objective), longest=30)
                axes.plot(line.epochs, line.mean, label=label, **marks, **style)
                if len(line.seeds) > 1:
                    axes.fill_between(line.epochs, line.low, line.high, color=style["color"], alpha=0.13, linewidth=0)
            low, high = (np.concatenate([getattr(line, end) for line in self.lines]) for end in ("low", "high"))
            if np.nanmin(low) > 0:
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter(_few_labels(float(np.nanmin(low)), float(np.nanmax(high))))
                axes.tick_params(which="minor", labelsize=7)
            whole_numbers(axes)
            axes.set(xlabel="epoch", ylabel=f"test {_NAMES.get(self.metric, plain(self.metric))}")
            axes.grid(axis="y", linewidth=0.3, color="#cccccc")
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), handlelength=3.2, borderaxespad=0.0)
            headed(figure, self.title, self.note)
        return figure


def epoch_curves(
    evidence: Evidence, setting: str, metric: str = "nll", *, objectives: Sequence[str] | None = None
) -> EpochCurves | None:
    """Of the epochs at which every seed of an objective was tested; None if no run of the setting has any."""
    wanted = evidence.objectives if objectives is None else objectives
    drawn = evidence.looks
    every = [_line(objective, drawn[objective], evidence.of(setting, objective), metric) for objective in wanted]
    lines = tuple(line for line in every if line is not None)
    if not lines:
        return None
    seeds = sorted({seed for line in lines for seed in line.seeds})
    many = len(seeds) > 1
    over = f"mean over seeds {', '.join(map(str, seeds))}" if many else f"seed {seeds[0]}"
    notes = ["Band: lowest to highest seed."] * many
    if len({line.seeds for line in lines}) > 1:
        notes.append("Not every objective has every seed.")
    name = _NAMES.get(metric, metric).partition(" (")[0]
    return EpochCurves(f"Test {name} after each epoch on {setting}, {over}", " ".join(notes), metric, lines)


def _line(objective: str, look: Look, runs: list[RunEvidence], metric: str) -> EpochLine | None:
    measured = {
        run.seed: {
            int(epoch["epoch"]): _finite(epoch["test"][metric])
            for epoch in run.epochs
            if metric in (epoch.get("test") or {})
        }
        for run in runs
    }
    measured = {seed: values for seed, values in measured.items() if values}
    common = sorted(set.intersection(*map(set, measured.values()))) if measured else []
    if not common:
        return None
    table = np.array([[values[epoch] for epoch in common] for values in measured.values()])
    if not np.isfinite(table.mean(0)).any():
        return None
    return EpochLine(
        objective, look, tuple(measured), np.array(common), table.mean(0), table.min(0), table.max(0)
    )  # NaN if one is


def _finite(value: float | None) -> float:
    return math.nan if value is None or not math.isfinite(value) else float(value)


def _few_labels(low: float, high: float) -> Any:
    """Numbers between the powers of ten: all if the axis spans little, 2 and 5, none if it is long."""
    decades = math.log10(high / low) if high > low else 0.0
    wanted = range(1, 10) if decades < 0.7 else (2, 5) if decades < 2.5 else ()
    return lambda value, place: f"{value:g}" if round(value / 10 ** math.floor(math.log10(value))) in wanted else ""
