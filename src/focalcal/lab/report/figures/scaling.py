"""Temperature scaling: a metric before and after it, and calibration against accuracy, which it does not change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.lab.evidence.metric_names import as_shown, axis_title
from focalcal.lab.objectives import short_name
from focalcal.lab.report.figures.view import Row, View, ranked
from focalcal.pages.style import drawing, headed, line_style, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The first of these that were measured are drawn against each other.
CALIBRATION = ("ece", "adaptive_ece", "smooth_ece", "classwise_ece", "mce")
AGAINST = ("error", "nll", "brier", "auroc")
_HOW = {
    "halves": "Both on the half of the test rows that T was not fitted on.",
    "validation": "T was fitted on the validation rows.",
}


def scalings(evidence: Evidence, setting: str, metrics: Sequence[str]) -> Iterator[View]:
    """By metric: as trained and after scaling, seeds side by side on the same rows, which T was not fitted on.

    t, before, after   means over the seeds that have a finite T
    raw, scaled        of all seeds, `scaled` where each has a finite T; where none was fitted `raw` is of all test rows
    """
    for metric in metrics:
        rows = [row for name in ranked(evidence, setting) if (row := _row(name, evidence.of(setting, name), metric))]
        bounded = [f"{short_name(row['objective'])} ({sum(row['bounded'])} of {len(row['seed'])})" for row in rows
                   if any(row["bounded"])]  # fmt: skip
        note = f"No finite T, and in no mean: {', '.join(bounded)}." if bounded else ""
        title = f"{axis_title(metric)} before and after temperature scaling on {setting}"
        if rows:
            facts = {"how": _HOW[evidence.fitted_on], "scaled": any(math.isfinite(row["t"]) for row in rows)}
            yield View("scaling", setting, metric, title, note, rows, facts=facts)


def headline_view(evidence: Evidence, setting: str, metrics: Sequence[str]) -> View | None:
    """Calibration against error, as trained and after temperature scaling; None where one of them was not measured."""
    across = next((metric for metric in CALIBRATION if metric in metrics), None)
    up = next((metric for metric in AGAINST if metric in metrics), None)
    if across is None or up is None:
        return None
    both = [{row["objective"]: row for row in view.rows} for view in scalings(evidence, setting, (across, up))]
    if len(both) < 2:
        return None
    rows = [
        {"objective": name, "state": ["as trained", "temperature-scaled"]}
        | {metric: [as_shown(metric, row[state]) for state in ("raw", "scaled")]
           for metric, row in ((across, each), (up, both[1][name]))}
        for name, each in both[0].items() if name in both[1]
    ]  # fmt: skip
    title = f"{axis_title(across)} against {axis_title(up)} on {setting}"
    note = f"Hollow: as trained. Filled: after temperature scaling. {_HOW[evidence.fitted_on]}"
    facts = {"across": across, "up": up}
    return View("headline", setting, "", title, note, rows, plot_headline, evidence.looks, facts)


def plot_headline(view: View) -> Figure:
    """A hollow mark as trained, joined to a filled one after scaling."""
    across, up = view.facts["across"], view.facts["up"]
    with drawing(3.4, width=5.4) as figure:
        axes = figure.subplots()
        for row in view.rows:
            style = line_style(view.looks[row["objective"]]) | {"linestyle": "-", "markersize": 5, "linewidth": 0.9}
            axes.plot(row[across], row[up], **style, label=plain(short_name(row["objective"]), longest=30))
            axes.plot(row[across][:1], row[up][:1], **style | {"markerfacecolor": "white", "linestyle": "none"})
        axes.set(xlabel=axis_title(across), ylabel=axis_title(up))
        axes.set_xlim(left=0)
        axes.grid(linewidth=0.3, color="#cccccc")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
        headed(figure, view.title, view.note)
    return figure


def _row(objective: str, runs: Sequence[RunEvidence], metric: str) -> Row | None:
    """None where the metric was not measured."""
    fitted = [run.scaled for run in runs]
    before = [scaling.before.get(metric) if scaling else None for scaling in fitted]
    after = [run.optimum.after.get(metric) if run.optimum else None for run in runs]
    raw = [run.metrics.get("test", {}).get(metric) for run in runs]
    if any(value is not None for value in before):
        raw = before
    elif all(value is None for value in raw):
        return None
    bounded = [scaling is not None and scaling.at_bound for scaling in fitted]
    usable = [at for at, run in enumerate(runs) if run.optimum]
    row: Row = {"objective": objective, "seed": [run.seed for run in runs], "bounded": bounded}
    row["T"] = [scaling.temperature if scaling else None for scaling in fitted]
    row |= {
        "value": [_short(value) for value in raw],
        "after_scaling": [_short(value) for value in after],
        "t": _mean([row["T"][at] for at in usable]),
    }
    row |= {"before": _mean([before[at] for at in usable]), "after": _mean([after[at] for at in usable])}
    return row | {"raw": _mean(raw), "scaled": math.nan if any(bounded) else _mean(after)}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _mean(values: Sequence[Any]) -> float:
    there = [value for value in values if value is not None and not math.isnan(value)]
    return float(np.mean(there)) if there else math.nan
