"""Reliability diagrams and the confidence of right and wrong predictions: rows of a setting in bins, seeds pooled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.view import Row, View, ranked, to_digits
from focalcal.metrics.reliability import Reliability
from focalcal.pages.style import BAND, COLOURS, GUIDE, PanelGrid, drawing, headed, line_style, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 15
_Z = 1.96  # of what chance gives, 95 % two-sided
_HOLLOW: dict[str, Any] = {"linestyle": (0, (4, 1.2)), "markerfacecolor": "white"}  # before scaling
_NOTE = "Below the diagonal is overconfident. Bins with few rows are not shown above and are pale below."
_CHANCE = " Grey: where a calibrated network's accuracy would lie by chance."


def reliabilities(evidence: Evidence, setting: str) -> Iterator[View]:
    """By state: as trained ("whole"), before and after temperature scaling on the same rows, "class 0" and so on."""
    cells = {name: evidence.of(setting, name) for name in ranked(evidence, setting)}

    def view(choice: str, said: str, diagrams: dict[str, list[Any]]) -> Iterator[View]:
        if rows := [_pooled(name, each) for name, each in diagrams.items() if any(each)]:
            yield _view(evidence, setting, choice, said, rows)

    yield from view("whole", "", {name: [run.reliability for run in runs] for name, runs in cells.items()})
    for when in ("before", "after"):
        optima = {name: [run.optimum for run in runs if run.optimum] for name, runs in cells.items()}
        diagrams = {name: [getattr(each, f"reliability_{when}") for each in own] for name, own in optima.items()}
        yield from view(when, f", {when} temperature scaling", diagrams)
    for k in range(max((len(_classes(run)) for runs in cells.values() for run in runs), default=0)):
        of_class = {name: [_classes(run)[k] for run in runs if k < len(_classes(run))] for name, runs in cells.items()}
        yield from view(f"class {k}", f", probability of class {k} against how often it is right", of_class)


def epoch_reliabilities(evidence: Evidence, setting: str, every: int) -> Iterator[View]:
    """By epoch, one in `every` and the last, of those that every seed of an objective has stored the bins of."""
    sums: dict[int, list[Row]] = {}
    for name in ranked(evidence, setting):
        runs = evidence.of(setting, name)
        stored = [{int(epoch["epoch"]): epoch["bins"] for epoch in run.epochs if epoch.get("bins")} for run in runs]
        for epoch in set.intersection(*map(set, stored)) if stored and all(stored) else ():
            total = {part: np.sum([bins[epoch][part] for bins in stored], axis=0) for part in stored[0][epoch]}
            sums.setdefault(epoch, []).append(_row(name, len(runs), **total))
    for at, epoch in enumerate(sorted(sums)):
        if at % every == 0 or at == len(sums) - 1:
            yield _view(evidence, setting, f"epoch {epoch}", f", epoch {epoch}", sums[epoch])


def _view(evidence: Evidence, setting: str, choice: str, said: str, rows: Sequence[Row]) -> View:
    title = f"Reliability on {setting}, seeds pooled{said}"
    return View("reliability", setting, choice, title, _NOTE + _CHANCE, rows, plot_reliability, evidence.looks)


def temperature_view(evidence: Evidence, before: View, after: View) -> View:
    """Both diagrams of each objective as one view for print; T is the mean of the seeds."""
    rows = []
    later = {row["objective"]: row for row in after.rows}
    for row in before.rows:
        fitted = [run.optimum.temperature for run in evidence.of(before.setting, row["objective"]) if run.optimum]
        said = f"\nT = {np.mean(fitted):.3g}"
        rows += [row | {"state": "before", "said": said}, later[row["objective"]] | {"state": "after", "said": said}]
    title = f"Reliability on {before.setting}, seeds pooled, before and after temperature scaling"
    where = "the other half of the test rows" if evidence.fitted_on == "halves" else "the validation rows"
    note = f"{_NOTE} T was fitted on {where}; both curves are of the same rows."
    return View("temperature", before.setting, "", title, note, rows, plot_reliability, evidence.looks)


def confidence_view(whole: View) -> View:
    """How sure the right and the wrong predictions were, in the bins of the reliability diagram."""
    rows = []
    for row in whole.rows:
        right = np.rint(np.multiply(row["rows"], row["accuracy"])).astype(int)
        rows.append(
            {name: row[name] for name in ("objective", "bin")}
            | {"right": right.tolist(), "wrong": (np.array(row["rows"]) - right).tolist()}
        )
    title = f"Confidence of right and wrong predictions on {whole.setting}, test rows, seeds pooled"
    note = "Heights grow as the root of the number of rows."
    return View("confidence", whole.setting, "", title, note, rows, plot_confidence, whole.looks)


def plot_reliability(view: View) -> Figure:
    """Accuracy over confidence in a panel of unit sides; rows per bin below. Of two states the first one is hollow."""
    panels: dict[str, list[Row]] = {}
    for row in view.rows:
        panels.setdefault(row["objective"], []).append(row)
    page = PanelGrid(len(panels))
    most = max(max(row["rows"]) for row in view.rows)
    with drawing(0.75 + 2.9 * page.row * page.rows, width=page.width) as figure:
        grid = figure.add_gridspec(2 * page.rows, page.columns, height_ratios=[2.6, 1] * page.rows)
        for number, (objective, states) in enumerate(panels.items()):
            line, column = divmod(number, page.columns)
            top = figure.add_subplot(grid[2 * line, column])
            below = figure.add_subplot(grid[2 * line + 1, column], sharex=top)
            own = line_style(view.looks[objective]) | {"linestyle": "-", "markersize": 3.2}
            for at, row in enumerate(states):
                _diagram(top, row, own | (_HOLLOW if at + 1 < len(states) else {}), chance=len(states) == 1)
                _counts(below, row, own["color"], at, len(states))
            eces = " \N{RIGHTWARDS ARROW} ".join(f"{100 * row['ece']:.2f}" for row in states)
            said = f"pooled ECE {eces} %{states[0].get('said', '')}"
            top.set_title(f"{plain(short_name(objective), longest=page.letters)}\n{said}")
            below.set(ylim=(0, 1.08 * math.sqrt(most)), xlabel="confidence")
            if column == 0:
                top.set_ylabel("accuracy")
                below.set_ylabel("rows, root")
        headed(figure, view.title, view.note, handles=_handles(figure) if len(states) > 1 else ())
    return figure


def plot_confidence(view: View) -> Figure:
    """Right predictions above the axis, wrong ones below it; the root of the number, so that few are seen."""
    page = PanelGrid(len(view.rows))
    most = [max(max(row[side]) for row in view.rows) for side in ("right", "wrong")]
    high, low = (max(1.0, 1.08 * math.sqrt(number)) for number in most)
    ticks = [-number for number in _round_numbers(most[1])[:0:-1]] + _round_numbers(most[0])
    places = np.sign(ticks) * np.sqrt(np.abs(ticks))
    apart = [place == 0 or abs(place) > 0.1 * (high + low) for place in places]  # else the labels would touch
    with drawing(0.8 + 1.85 * page.rows, width=page.width) as figure:
        shown = page.axes(figure, x="confidence", y="rows")
        for axes, row in zip(shown, view.rows, strict=True):
            left = (np.array(row["bin"]) - 1) / BINS
            edges: dict[str, Any] = {"align": "edge", "edgecolor": "black", "linewidth": 0.5}
            for side, sign, colour, hatch in (("right", 1, COLOURS[1], None), ("wrong", -1, COLOURS[4], "/" * 5)):
                label = f"{side} predictions" if axes is shown[0] else f"_{side}"
                heights = sign * np.sqrt(row[side])
                axes.bar(left, heights, 1 / BINS, facecolor=colour, hatch=hatch, label=label, **edges)
            axes.axhline(0, color="black", linewidth=0.6)
            labels = [str(abs(number)) for number, kept in zip(ticks, apart, strict=True) if kept]
            axes.set_yticks(places[apart], labels)
            axes.set(xlim=(0, 1), ylim=(-low, high))
            wrong = f"{sum(row['wrong'])} of {sum(row['wrong']) + sum(row['right'])} wrong"
            axes.set_title(f"{plain(short_name(row['objective']), longest=page.letters)}\n{wrong}")
        headed(figure, view.title, view.note, handles=shown[0].get_legend_handles_labels()[0])
    return figure


def _classes(run: RunEvidence) -> tuple[Reliability, ...]:
    return run.details.classes if run.details is not None else ()


def _pooled(objective: str, diagrams: Iterable[Reliability | None]) -> Row:
    known = [diagram for diagram in diagrams if diagram is not None]

    def total(name: str) -> Any:
        return np.sum([each.count * np.where(each.count > 0, getattr(each, name), 0.0) for each in known], axis=0)

    count = np.sum([each.count for each in known], axis=0)
    return _row(objective, len(known), count=count, confidence=total("confidence"), correct=total("accuracy"))


def _row(objective: str, seeds: int, *, count: Any, confidence: Any, correct: Any) -> Row:
    """Of sums per bin; empty bins are left out, and those of fewer than `least` rows estimate no accuracy.

    Seeds are tested on the same examples, so that what chance gives is that of one seed's number of rows.
    """
    filled = np.flatnonzero(np.asarray(count) > 0)
    n = np.rint(np.asarray(count, float)[filled])
    sure, right = (np.asarray(sums, float)[filled] / n for sums in (confidence, correct))
    half = _Z * np.sqrt(np.clip(sure * (1 - sure), 0, None) / np.maximum(1, n / seeds))
    return {
        "objective": objective,
        "seeds": seeds,
        "ece": float(np.average(np.abs(sure - right), weights=n)),
        "gap": float(np.average(sure - right, weights=n)),
        "bin": (filled + 1).tolist(),
        "rows": n.astype(int).tolist(),
        "confidence": to_digits(sure),
        "accuracy": to_digits(right),
        "chance": to_digits(half, 3),
        "least": min(100.0, max(5.0, 0.01 * n.sum())),
    }


def _diagram(axes: Axes, row: Row, style: dict[str, Any], *, chance: bool) -> None:
    shown = [at for at, rows in enumerate(row["rows"]) if rows >= row["least"]]
    sure, right, half = (np.array(row[name])[shown] for name in ("confidence", "accuracy", "chance"))
    axes.plot([0, 1], [0, 1], color=GUIDE, linewidth=0.8, linestyle="--", label="_diagonal", zorder=2)
    if chance:
        left = (np.array(row["bin"])[shown] - 1) / BINS
        low, high = np.clip(sure - half, 0, 1), np.clip(sure + half, 0, 1)
        axes.bar(left, high - low, 1 / BINS, bottom=low, align="edge", color=BAND, label="_chance", zorder=1)
    axes.plot(sure, right, **style, zorder=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")


def _counts(axes: Axes, row: Row, colour: str, place: int, number: int) -> None:
    width = 1 / BINS / number
    left = (np.array(row["bin"]) - 1) / BINS + place * width
    for x, rows in zip(left, row["rows"], strict=True):
        alpha = 0.25 if rows < row["least"] else 0.8 if place + 1 == number else 0.45
        axes.bar(x, math.sqrt(rows), width, align="edge", color=colour, alpha=alpha, label="_rows")


def _handles(figure: Figure) -> Sequence[Any]:
    """What the two lines of the first panel are, in grey."""
    from matplotlib.lines import Line2D

    neutral: dict[str, Any] = {"color": "#444444", "marker": "o", "linestyle": "-", "markersize": 4}
    return [
        Line2D([], [], label="before scaling", **neutral | _HOLLOW),
        Line2D([], [], label="after scaling", **neutral),
    ]


def _round_numbers(most: int) -> list[int]:
    """0 and two or three round numbers up to `most`.

    >>> _round_numbers(360), _round_numbers(7)
    ([0, 10, 100, 200], [0, 1, 2, 5])
    """
    scale = 10 ** (len(str(most)) - 1)
    return [0, *(number for number in (scale // 10, scale, 2 * scale, 5 * scale) if 0 < number <= most)]
