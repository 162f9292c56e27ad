"""One lane per objective: every seed of a metric (ranking), and the candidate minus each baseline (differences)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.lab.evidence.comparisons import Family
from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.evidence.metric_names import HIGHER_IS_BETTER, as_shown, axis_title, shown_text
from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.view import Row, View
from focalcal.lab.report.study_tables.flags import flag_marks
from focalcal.lab.report.study_tables.paired import CANNOT_SHOW
from focalcal.pages.style import BAND, MARKERS, SMALLEST, drawing, headed, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of a verdict: the mark of the mean, that mark in a sentence, and what it says.
VERDICTS = {
    "better": ("diamond", "\N{BLACK DIAMOND}", "significantly better"),
    "worse": ("square", "\N{BLACK SQUARE}", "significantly worse"),
    "indistinguishable": ("circle", "\N{WHITE CIRCLE}", "not significant"),
    CANNOT_SHOW: ("cross", "\N{MULTIPLICATION X}", "too few seeds to tell"),
}


def rankings(evidence: Evidence, setting: str, metrics: Sequence[str]) -> Iterator[View]:
    """By metric: every seed, the mean, the interval over test rows and what chance gives, best first.

    Means are over what was measured; infinity stays infinite, and is last.
    """
    marks = flag_marks(evidence)
    for metric in metrics:
        rows: list[Row] = []
        for objective, seeds in evidence.values(setting, metric).items():
            measured = [value for value in seeds.values() if not math.isnan(value)]
            if measured:
                own: Row = {"objective": objective, "seed": list(seeds), "value": list(seeds.values())}
                own |= {"mean": float(np.mean(measured)), **_interval(evidence.of(setting, objective), metric)}
                rows.append(own | {"flag": marks.get((setting, objective))})
        sign = -1 if metric in HIGHER_IS_BETTER else 1
        rows.sort(key=lambda row: sign * row["mean"] if math.isfinite(row["mean"]) else math.inf)
        if rows:
            best = f"Best: {short_name(rows[0]['objective'])}, {shown_text(metric, rows[0]['mean'])}."
            title = f"{axis_title(metric)} on {setting}, test rows"
            yield View("ranking", setting, metric, title, best, rows, plot_ranking, evidence.looks)


def _interval(runs: Sequence[RunEvidence], metric: str) -> Row:
    """The ends of the intervals over rows, and what chance gives, averaged over the seeds that have them.

    Seeds share their test rows, so that the average of the ends is no narrower than the interval of the mean.
    """
    known = [run.details.intervals[metric] for run in runs if run.details and metric in run.details.intervals]
    chances = [interval.chance for interval in known if interval.chance is not None]
    return {
        "low": float(np.mean([interval.low for interval in known])) if known else None,
        "high": float(np.mean([interval.high for interval in known])) if known else None,
        "chance": float(np.mean(chances)) if chances else None,
    }


def paired_differences(evidence: Evidence, setting: str, families: Sequence[Family]) -> Iterator[View]:
    """By metric: what the candidate has more than each baseline, paired by seed, and what the test says."""
    by_metric: dict[str, list[Row]] = {}
    for family in families:
        for test in family.comparisons if family.setting == setting else ():
            values = evidence.values(setting, test.metric)
            ours, theirs = values[family.candidate], values[family.baseline]
            row = {
                "objective": family.baseline,
                "seed": list(test.seeds),
                "value": [ours[seed] - theirs[seed] for seed in test.seeds],
                "mean": test.test.mean,
                "low": test.interval.low,
                "high": test.interval.high,
                "p": test.test.p_value,
                "p_holm": test.p_adjusted,
                "d_z": test.effect,
                "verdict": test.verdict if test.reachable else CANNOT_SHOW,
            }
            by_metric.setdefault(test.metric, []).append(row)
    for metric, rows in by_metric.items():
        rows.sort(key=lambda row: (-1 if metric in HIGHER_IS_BETTER else 1) * row["mean"])
        candidate = next(family.candidate for family in families if family.setting == setting)
        title = f"{short_name(candidate)} minus each baseline, {axis_title(metric)} on {setting}"
        counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS}
        said = [f"{VERDICTS[name][1]} {VERDICTS[name][2]}: {count}" for name, count in counts.items() if count]
        yield View(
            "differences", setting, metric, title, " \N{NO-BREAK SPACE} ".join(said), rows, plot_differences,
            evidence.looks, {"candidate": candidate},
        )  # fmt: skip


def plot_ranking(view: View) -> Figure:
    """Rings are seeds, the mark their mean, the line the interval over rows, the band what chance alone gives."""
    metric = view.choice
    with drawing(1.2 + 0.21 * len(view.rows), width=5.4) as figure:
        axes = _lanes(figure, view, axis_title(metric))
        for at, row in enumerate(view.rows):
            if row["chance"] is not None:
                axes.barh(at, as_shown(metric, row["chance"]), height=0.75, color=BAND, zorder=0, label="_chance")
            _lane(axes, view, at, row, metric, view.looks[row["objective"]].marker)
        axes.margins(x=0.04)
        note = f"{view.note} Rings: seeds. Line: 95 % interval over test rows. Grey: what chance alone gives."
        headed(figure, view.title, note)
    return figure


def plot_differences(view: View) -> Figure:
    """Rings are seeds, the line the interval of their mean, whose mark is the verdict of the test."""
    metric = view.choice
    with drawing(1.2 + 0.21 * len(view.rows), width=5.4) as figure:
        axes = _lanes(figure, view, f"{axis_title(metric)}: difference")
        axes.axvline(0, color="black", linewidth=0.8, zorder=1)
        for at, row in enumerate(view.rows):
            marker, _, _ = VERDICTS[row["verdict"]]
            _lane(axes, view, at, row, metric, marker, hollow=row["verdict"] not in ("better", "worse"), sign=True)
        words = {mark: f"{mark}: {said}" for mark, _, said in VERDICTS.values()}
        used = dict.fromkeys(words[VERDICTS[row["verdict"]][0]] for row in view.rows)
        less = "right" if metric in HIGHER_IS_BETTER else "left"
        note = f"Better is to the {less}. Means: {', '.join(used)}. Lines: 95 % bootstrap intervals of the mean."
        headed(figure, view.title, note)
    return figure


def _lanes(figure: Figure, view: View, label: str) -> Axes:
    axes: Axes = figure.subplots()
    names = [plain(short_name(row["objective"]), longest=30) for row in view.rows]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(label)
    axes.grid(axis="x", linewidth=0.3, color="#cccccc")
    return axes


def _lane(
    axes: Axes, view: View, at: int, row: Row, metric: str, marker: str, *, hollow: bool = False, sign: bool = False
) -> None:
    colour = view.looks[row["objective"]].light
    ends: Mapping[str, Any] = {name: row[name] for name in ("low", "high")}
    if ends["low"] is not None:
        axes.plot(
            [as_shown(metric, ends["low"]), as_shown(metric, ends["high"])], [at, at], color=colour, linewidth=1.2
        )
    ring: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none", "markeredgecolor": colour}
    values = [as_shown(metric, value) for value in row["value"]]
    axes.plot(values, [at] * len(values), marker="o", markersize=3.2, markeredgewidth=0.6, label="_seeds", **ring)
    if math.isfinite(row["mean"]):
        face = "white" if hollow else colour
        mark: dict[str, Any] = {"markersize": 5.5, "markerfacecolor": face, "markeredgecolor": colour, "zorder": 4}
        axes.plot([as_shown(metric, row["mean"])], [at], marker=MARKERS[marker], linestyle="none", **mark)
    text = shown_text(metric, row["mean"], unit=False, sign=sign).replace("-", "\N{MINUS SIGN}")
    beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": SMALLEST}
    axes.text(1.02, at, text, **beside)
