"""The figures of the published results, each from its records alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.pages.style import COLOURS, GUIDE, drawing
from focalcal.stats import compare
from paper.operating_point.alike import CURVES, Alike
from paper.operating_point.trial import TOLERANCE
from paper.published import Records, by_training_rows, scale_of, training_rows
from paper.tasks.answers import MARGIN, TaskRecords
from paper.trials import Trials, recorded_tasks, seeds_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SOURCES = {"known-posterior-gaussian": "mixture", "known-posterior-discrete": "forty states"}
_CURVES = {
    "ce": "cross-entropy",
    "focal": "focal loss",
    "fcl lam=1 scale=matched": "FCL(3, 1), matched",
    "fcl lam=16 scale=matched": "FCL(3, 16), matched",
    "fcl lam=16": "FCL(3, 16), paper's scale",
}


def distance_by_rows() -> Figure:
    """Distance to the loss's own q* and to the posterior against the number of training rows."""
    with drawing(2.6) as figure:
        axes = figure.subplots(1, 2 * len(_SOURCES), sharey="row")
        for place, (source, title_of_source) in enumerate(_SOURCES.items()):
            records = Records.read(source, by_training_rows)
            sizes = sorted({training_rows(line) for line in records.lines})
            for column, (metric, title) in enumerate(
                (("q_distance", "to its own q*"), ("posterior_distance", "to the truth"))
            ):
                panel = axes[2 * place + column]
                for at, (name, label) in enumerate(_CURVES.items()):
                    points = [
                        (size, records.mean(f"{records.lines[0]['spec']['data_set']}, {size:,} rows", name, metric))
                        for size in sizes
                    ]
                    drawn = [(size, float(mean)) for size, mean in points if mean is not None]
                    if drawn:
                        panel.plot(*zip(*drawn, strict=True), marker="o^sDv"[at], ms=3, color=COLOURS[at], label=label)
                panel.set(
                    xscale="log",
                    yscale="log",
                    xlabel="training rows",
                    title=f"{title_of_source}: {title}",
                )
        axes[0].set_ylabel("mean total variation")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def operating_points() -> Figure:
    """The temperature that test rows need, of cross-entropy, at the predicted lam and of FCL(3, 1)."""
    trials = Trials.read("operating-point", "operating-point-real")
    settings = list(dict.fromkeys(row["setting"] for row in trials.rows))
    roles = {"cross-entropy": COLOURS[6], "FCL(3, 1)": COLOURS[4], "predicted": COLOURS[0], "refined": COLOURS[2]}
    with drawing(0.32 * len(settings) + 1.1) as figure:
        axes = figure.subplots()
        for at, (role, colour) in enumerate(roles.items()):
            rows = [row for row in trials.rows if row["role"] == role and math.isfinite(row["temperature"])]
            axes.plot(
                [row["temperature"] for row in rows],
                [settings.index(row["setting"]) + 0.12 * (at - 1.5) for row in rows],
                "osD^"[at], ms=3.5, color=colour, label=role, alpha=0.8, ls="none",
            )  # fmt: skip
        axes.axvline(1, color=GUIDE, lw=0.8)
        axes.axvspan(math.exp(-0.1), math.exp(0.1), color=GUIDE, alpha=0.15, lw=0)
        axes.set(
            xscale="log",
            yticks=range(len(settings)),
            yticklabels=settings,
            xlabel="temperature that the test rows need",
        )
        axes.set_xticks([0.5, 0.7, 1, 1.4, 2], ["0.5", "0.7", "1", "1.4", "2"])
        axes.minorticks_off()
        axes.invert_yaxis()
        figure.legend(loc="outside lower center", ncols=4)
    return figure


def tolerance() -> Figure:
    """The share of networks within every tolerance: FCL at the predicted lam, its controls, and cross-entropy."""
    known_and_real, real = Trials.read("operating-point", "operating-point-real"), Trials.read("operating-point-real")
    again = Trials.read("operating-point-again")
    panels = {
        "where the rule says that FCL helps and a lam matches": Alike(known_and_real, again),
        "all real data": Alike(real, again, everywhere=True),
    }
    with drawing(2.9) as figure:
        all_axes = figure.subplots(1, len(panels), sharey=True)
        for axes, (title, alike) in zip(all_axes, panels.items(), strict=True):
            for at, curve in enumerate(CURVES):
                misses = sorted(miss for miss in alike.misses(curve) if math.isfinite(miss))
                shares = [(place + 1) / len(alike.misses(curve)) for place in range(len(misses))]
                axes.step([0, *misses, 1], [0, *shares, *shares[-1:]], where="post", color=COLOURS[at], label=curve,
                          lw=1.8 if curve == "predicted lam" else 1.1, ls="-" if at < 5 else "--")  # fmt: skip
            axes.axvline(TOLERANCE, color=GUIDE, lw=0.8)
            axes.set(
                xlim=(0, 0.3),
                ylim=(0, 1.03),
                xlabel="tolerance of |log T|",
                title=f"{title}: {len(alike.baselines)} runs",
            )
        all_axes[0].set_ylabel("share of networks within it")
        figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def surfaces() -> Figure:
    """Test NLL over gamma and lam, on both scales, in both regimes of the default study, and the predicted lams."""
    records = Records.read("surface")
    settings = records.evidence.settings
    with drawing(1.9 * len(settings) + 0.2) as figure:
        axes = figure.subplots(len(settings), 2, squeeze=False)
        for row, setting in enumerate(settings):
            cells = [line for line in records.lines if records.setting_of(line) == setting]
            losses = [line["metrics"]["test"]["nll"] for line in cells]
            limits = (min(losses), statistics.quantiles(losses, n=10)[-1])
            for column, scale in enumerate(("paper", "matched")):
                panel = axes[row, column]
                image = _surface(panel, [line for line in cells if scale_of(line) == scale], limits)
                panel.set_title(f"{setting}, {scale} scale")
            figure.colorbar(image, ax=list(axes[row]), label="test NLL", extend="max")
        figure.legend(*axes[-1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _surface(panel: Any, cells: list[dict[str, Any]], limits: tuple[float, float]) -> Any:
    options = [line["spec"]["objective_options"] for line in cells]
    gammas, lams = (sorted({option[name] for option in options}) for name in ("gamma", "lam"))
    values = [[math.nan] * len(lams) for _ in gammas]
    for line, option in zip(cells, options, strict=True):
        values[gammas.index(option["gamma"])][lams.index(option["lam"])] = line["metrics"]["test"]["nll"]
    image = panel.imshow(values, origin="lower", aspect="auto", cmap="viridis_r", vmin=limits[0], vmax=limits[1])
    lowest = min(cells, key=lambda line: line["metrics"]["test"]["nll"])["spec"]["objective_options"]
    panel.plot(lams.index(lowest["lam"]), gammas.index(lowest["gamma"]), "*", color="white", mec="black", ms=9,
               label="lowest", ls="none")  # fmt: skip
    predicted = next(line["operating_point"] for line in cells if "operating_point" in line)["lams"]
    points = [(lam, float(gamma)) for gamma, lam in predicted.items() if lam is not None and lam <= max(lams)]
    panel.plot(
        [float(np.interp(lam, lams, range(len(lams)))) for lam, _ in points],
        [gammas.index(gamma) for _, gamma in points],
        "o-", color="white", mec="black", ms=4, label="predicted by cross-entropy's validation rows",
    )  # fmt: skip
    panel.set(xticks=range(len(lams)), xticklabels=[f"{lam:g}" for lam in lams], xlabel="lam")
    panel.set(yticks=range(len(gammas)), yticklabels=[f"{gamma:g}" for gamma in gammas], ylabel="gamma")
    return image


_SHOWN = (
    ("AdaFocal", "as it is"),
    ("AdaFocal", "with T"),
    ("FCL", "as it is"),
    ("FCL", "with T"),
    ("label smoothing", "with T"),
    ("label smoothing", "calibrated"),
    ("averaged cross-entropy", "with T"),
    ("averaged cross-entropy", "calibrated"),
    ("recipe", "calibrated"),
)


def equal_access() -> Figure:
    """NLL and ECE of every method minus those of cross-entropy with a temperature, with 95 % intervals over seeds."""
    tasks = recorded_tasks("equal-access")
    with drawing(0.17 * len(_SHOWN) * 2 + 1.1) as figure:
        axes = figure.subplots(2, len(tasks), sharey=True, squeeze=False)
        for column, task in enumerate(tasks):
            by_seed = seeds_of(Trials.read(f"equal-access-{task}"))
            reference = by_seed["cross-entropy", "with T"]
            scales = {"nll": 100 / statistics.mean(reference["nll"].values()), "ece": 100.0}
            for place, key in enumerate(_SHOWN):
                if key not in by_seed:
                    continue
                for panel, test in zip(
                    axes[:, column], compare(by_seed[key], reference, metrics=("nll", "ece")), strict=True
                ):
                    mean, low, high = (
                        scales[test.metric] * getattr(test.interval, name) for name in ("mean", "low", "high")
                    )
                    panel.errorbar(mean, place, xerr=[[max(0, mean - low)], [max(0, high - mean)]], fmt="o", ms=3, lw=1,
                                   color=COLOURS[0] if mean < 0 else COLOURS[4])  # fmt: skip
            axes[0, column].set_title(task)
            for panel, label in zip(axes[:, column], ("NLL, %", "ECE, points"), strict=True):
                panel.axvline(0, color=GUIDE, lw=0.8)
                panel.set(xlabel=label, yticks=range(len(_SHOWN)))
                panel.locator_params(axis="x", nbins=3)
                panel.set_yticklabels([" ".join(key) for key in _SHOWN])
        axes[0, 0].invert_yaxis()
    return figure


def tasks_differences() -> Figure:
    """Of questions 1 to 3 every comparison: each task's mean difference in NLL, and the mean over tasks."""
    answers = TaskRecords.read().family("1 to 3")
    names = sorted({task for answer in answers for task in answer.by_task})
    with drawing(0.13 * len(names) + 1.6) as figure:
        panels = figure.subplots(1, len(answers), sharey=True)
        for panel, answer in zip(panels, answers, strict=True):
            panel.axvline(0, color=GUIDE, lw=0.8)
            panel.axvspan(answer.low, answer.high, color=COLOURS[0], alpha=0.2, lw=0)
            panel.axvline(answer.difference, color=COLOURS[0], lw=1.2)
            values = [answer.by_task.get(name, math.nan) for name in names]
            colours = [COLOURS[0] if value < 0 else COLOURS[4] if value > 0 else GUIDE for value in values]
            panel.scatter(values, range(len(names)), c=colours, s=8)
            panel.set_xscale("symlog", linthresh=1)
            panel.set_xticks([-10, -1, 0, 1, 10], ["-10", "-1", "0", "1", "10"])
            panel.minorticks_off()
            panel.set_title(answer.name.replace(" - ", "\n- ").replace(", ", ",\n"), fontsize=6)
        panels[0].set_yticks(range(len(names)), names, fontsize=6)
        panels[0].invert_yaxis()
        figure.supxlabel(
            "difference in test NLL, points of the labels' entropy; below zero the first is better", fontsize=8
        )
    return figure


def _intervals(family: str) -> Figure:
    answers = TaskRecords.read().family(family)
    with drawing(0.24 * len(answers) + 0.8) as figure:
        axes = figure.subplots()
        axes.axvline(0, color=GUIDE, lw=0.8)
        axes.axvspan(-MARGIN, MARGIN, color=GUIDE, alpha=0.15, lw=0)
        for place, answer in enumerate(answers):
            mean = answer.difference
            axes.errorbar(mean, place, xerr=[[max(0, mean - answer.low)], [max(0, answer.high - mean)]], fmt="o", ms=3,
                          lw=1, color=COLOURS[0] if mean < 0 else COLOURS[4])  # fmt: skip
        axes.set_yticks(range(len(answers)), [answer.name for answer in answers])
        axes.set_xlabel("difference in test NLL, points of the labels' entropy, 95 %")
        axes.invert_yaxis()
    return figure


def tasks_temperatures() -> Figure:
    """The share of cells whose test rows need no more than a temperature, for every tolerance of |log T|."""
    records = TaskRecords.read()
    shown = ("cross-entropy", "FCL", "FCL(3, 3)", "label smoothing", "focal", "Brier", "AdaFocal", "BSCE-GRA")
    curves = {name: records.misses(name) for name in shown}
    curves["cross-entropy with T"] = records.misses("cross-entropy", scaled=True)
    with drawing(2.9) as figure:
        axes = figure.subplots()
        for at, (name, misses) in enumerate(curves.items()):
            shares = [(place + 1) / len(misses) for place in range(len(misses))]
            axes.step([0, *misses], [0, *shares], where="post", color=COLOURS[at % len(COLOURS)], label=name,
                      lw=1.8 if name == "FCL" else 1.1, ls="-" if at < 5 else "--")  # fmt: skip
        axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="tolerance of |log T|", ylabel="share of cells within it")
        figure.legend(loc="outside lower center", ncols=4)
    return figure


DRAWINGS: dict[str, tuple[tuple[str, ...], Callable[[], Any]]] = {
    "distance_by_rows": (tuple(_SOURCES), distance_by_rows),
    "operating_points": (("operating-point",), operating_points),
    "tolerance": (("operating-point", "operating-point-real", "operating-point-again"), tolerance),
    "surfaces": (("surface",), surfaces),
    "equal_access": (("equal-access-digits",), equal_access),
    "tasks_differences": (("tasks",), tasks_differences),
    "tasks_epochs": (("tasks",), lambda: _intervals("4")),
    "tasks_refinement": (("tasks",), lambda: _intervals("5")),
    "tasks_temperatures": (("tasks",), tasks_temperatures),
}
