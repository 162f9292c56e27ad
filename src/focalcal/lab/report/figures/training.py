"""What was measured after each epoch: a line per objective, its mean over seeds and the range; AdaFocal's gammas."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.extras import required
from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.evidence.metric_names import as_shown, axis_title
from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.view import Row, View, ranked
from focalcal.pages.style import GAMMA, GUIDE, PANEL, drawing, headed, line_style, panels, plain, whole_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPLITS = ("train", "val", "test")
CURVES = ("loss", "error", "nll", "brier", "ece", "adaptive_ece", "smooth_ece")
_MARKED = 12  # markers along a line
_ACROSS, _MOST = 3, 6  # panels of gammas abreast, and in all


def trainings(evidence: Evidence, setting: str) -> Iterator[View]:
    """By split and metric, "test nll": epochs that any seed has; mean and range where all of an objective's have it."""
    for split in SPLITS:
        for metric in CURVES:
            rows = [row for name in ranked(evidence, setting)
                    if (row := _row(name, evidence.of(setting, name), split, metric))]  # fmt: skip
            if rows:
                title = f"{split} {axis_title(metric)} after each epoch on {setting}"
                several = len({run.seed for run in evidence.runs}) > 1
                note = "Mean over seeds; the band is from the lowest to the highest." * several
                yield View("training", setting, f"{split} {metric}", title, note, rows, plot_training, evidence.looks)


def _row(objective: str, runs: Sequence[RunEvidence], split: str, metric: str) -> Row | None:
    by_seed: dict[int, dict[int, float]] = {}
    for run in runs:
        numbered = {int(epoch.get("epoch", at)): epoch for at, epoch in enumerate(run.epochs, 1)}
        values = {at: _value(epoch.get(split), metric) for at, epoch in numbered.items()}
        if not all(map(math.isnan, values.values())):
            by_seed[run.seed] = values
    if not by_seed:
        return None
    epochs = sorted(set().union(*by_seed.values()))
    table = np.array([[values.get(epoch, math.nan) for epoch in epochs] for values in by_seed.values()])
    row: Row = {"objective": objective, "epoch": epochs}
    row |= {name: _digits(getattr(table, name)(0)) for name in ("mean", "min", "max")}  # NaN if a seed's is
    return row | {f"seed {seed}": _digits(values) for seed, values in zip(by_seed, table, strict=True)}


def _digits(values: np.ndarray) -> list[float]:
    return [float(f"{value:.5g}") for value in values.tolist()]


def _value(values: Any, metric: str) -> float:
    value = values.get(metric) if isinstance(values, Mapping) else None
    return math.nan if value is None else float(value)


def thinned(row: Row, every: int) -> Row:
    """With one epoch in `every`, the first and the last among them."""
    last = len(row["epoch"]) - 1
    kept = [at for at in range(last + 1) if at % every == 0 or at == last]
    return {name: [value[at] for at in kept] if isinstance(value, list) else value for name, value in row.items()}


def plot_training(view: View) -> Figure:
    """On a logarithmic scale if all numbers are positive."""
    split, metric = view.choice.split(" ")
    with drawing(3.6) as figure:
        axes = figure.subplots()
        ends: list[float] = []
        for row in view.rows:
            look = view.looks[row["objective"]]
            style, every = line_style(look), max(1, math.ceil(len(row["epoch"]) / _MARKED))
            marks: dict[str, Any] = {"markersize": 3.2, "markevery": (look.place % every, every)}
            mean, low, high = ([as_shown(metric, value) for value in row[name]] for name in ("mean", "min", "max"))
            label = plain(short_name(row["objective"]), longest=30)
            axes.plot(row["epoch"], mean, label=label, **marks, **style)
            if sum(name.startswith("seed ") for name in row) > 1:
                axes.fill_between(row["epoch"], low, high, color=style["color"], alpha=0.13, linewidth=0)
            ends += [value for value in (*low, *high) if math.isfinite(value)]
        if ends and min(ends) > 0:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(_few_labels(min(ends), max(ends)))
            axes.tick_params(which="minor", labelsize=7)
        whole_numbers(axes)
        axes.set(xlabel="epoch", ylabel=f"{split} {axis_title(metric)}")
        axes.grid(axis="y", linewidth=0.3, color="#cccccc")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), handlelength=3.2, borderaxespad=0.0)
        headed(figure, view.title, view.note)
    return figure


def _few_labels(low: float, high: float) -> Any:
    """Numbers between the powers of ten: all if the axis spans little, 2 and 5, none if it is long."""
    decades = math.log10(high / low) if high > low else 0.0
    wanted = range(1, 10) if decades < 0.7 else (2, 5) if decades < 2.5 else ()
    return lambda value, place: f"{value:g}" if round(value / 10 ** math.floor(math.log10(value))) in wanted else ""


def gamma_view(evidence: Evidence, setting: str) -> View | None:
    """How AdaFocal steered gamma in the first runs of a setting: one row per run and epoch; None without any."""
    steered = [run for run in evidence.runs if run.setting == setting and _steered(run)]
    rows = [
        {"objective": run.objective, "seed": run.seed, "epoch": int(epoch["epoch"])}
        | {"bin": list(range(1, len(epoch["gammas"]) + 1)), "lower": edges[:-1], "upper": edges[1:]}
        | {"gamma": _floats(epoch["gammas"])}
        for run in steered[:_MOST]
        for epoch in _steered(run)
        for edges in (_floats(epoch.get("edges") or [None] * (len(epoch["gammas"]) + 1)),)
    ]
    if not rows:
        return None
    note = "Below 0 the loss is inverse-focal. Bins are known by their number, as their edges move."
    note += f" {len(steered) - _MOST} more runs are not shown." * (len(steered) > _MOST)
    title = f"{GAMMA} of each confidence bin over the epochs on {setting}"
    return View("gammas", setting, "", title, note, rows, plot_gammas, evidence.looks)


def _steered(run: RunEvidence) -> list[dict[str, Any]]:
    """The epochs that say so; none where the number of bins changed."""
    epochs = [epoch for epoch in run.epochs if epoch.get("gammas")]
    return epochs if len({len(epoch["gammas"]) for epoch in epochs}) == 1 else []


def plot_gammas(view: View) -> Figure:
    """Dark lines are bins of low confidence, light ones of high; below 0 the loss is inverse-focal."""
    runs: dict[tuple[str, int], list[Row]] = {}
    for row in view.rows:
        runs.setdefault((row["objective"], row["seed"]), []).append(row)
    with drawing(0.9 + 2.1 * -(-len(runs) // _ACROSS), width=max(3.6, 2.4 * min(_ACROSS, len(runs)))) as figure:
        matplotlib, cm = required("matplotlib", purpose="A figure"), required("matplotlib.cm", purpose="A figure")
        bins = max(len(row["gamma"]) for row in view.rows)
        norm = required("matplotlib.colors", purpose="A figure").Normalize(1, max(2, bins))
        colours = cm.ScalarMappable(norm, matplotlib.colormaps["viridis"].resampled(256))
        drawn = panels(figure, len(runs), across=_ACROSS, sharey=True)
        for axes, ((objective, seed), epochs) in zip(drawn, runs.items(), strict=True):
            axes.axhline(0, color=GUIDE, linewidth=0.8, linestyle="--", zorder=0, label="_zero")
            for number, history in enumerate(np.array([row["gamma"] for row in epochs]).T, 1):
                colour = colours.to_rgba(1 + 0.92 * (number - 1))  # the lightest yellow is not seen on white
                places = [row["epoch"] for row in epochs]
                axes.plot(places, history, color=colour, marker=".", markersize=2.5, linewidth=0.9)
            whole_numbers(axes)
            axes.set_xlabel("epoch")
            axes.set_title(f"{plain(short_name(objective), longest=PANEL - 8)}, seed {seed}")
        drawn[0].set_ylabel(f"{GAMMA} of the bin")
        figure.colorbar(colours, ax=drawn, label="bin, by confidence", ticks=[1, (1 + bins) // 2, bins], aspect=30)
        headed(figure, view.title, view.note)
    return figure


def _floats(values: Sequence[Any]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]
