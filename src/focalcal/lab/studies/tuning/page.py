"""The page of a search: what to train with, and the trials that say so; one HTML file that needs no network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from focalcal.lab.objectives import looks, short_name
from focalcal.metrics import METRICS
from focalcal.pages.page import Page, Section, html_table, render
from focalcal.pages.palette import palette_css

if TYPE_CHECKING:
    from focalcal.lab.studies.tuning import TuneResult
    from focalcal.pages.tables import Table

SCRIPTS = (
    "kit/intervals.js",
    f"{__package__}/surface.js",
    f"{__package__}/front.js",
    f"{__package__}/page.js",
)
_FINALISTS = (
    "Each over all seeds, raw or with a temperature, whichever its validation rows favour. 95 % intervals of the "
    "difference from cross-entropy, paired by row. The test rows were read once, for this table."
)
_TRIALS = "With the first seed, best first. Scaled: by a temperature that was fitted on other validation rows."


def tuning_page(result: TuneResult, title: str) -> str:
    """The page as HTML; of a search that was interrupted, what there is."""
    data = _data(result)
    tables: dict[str, Table] = {}
    sections: list[Section] = []

    def add(name: str, heading: str, note: str, table: Table | None = None) -> None:
        shown: Any = ""
        if table is not None:
            tables[name] = table
            shown = html_table(name, heading, table, quiet=True)
        body = render(f"{__package__}/chart.html.j2", name=name, heading=heading, note=note, table=shown)
        sections.append(Section(name, heading, body))

    if result.finalists:
        add("finalists", "Finalists against cross-entropy", _FINALISTS, result.finalist_table())
    if sum(trial["objective"] == "fcl" for trial in data["trials"]) > 1:
        add("surface", "FCL over gamma and lam", f"Validation {data['criterion']} of each trial, raw or scaled.")
    if len(data["trials"]) > 1:
        add("front", f"{data['criterion']} against error", "")
    if result.trials:
        tables["trials"] = result.trial_table()
        body = html_table("trials", "Trials", tables["trials"], _TRIALS, quiet=True)
        sections.append(Section("trials", "Trials", body))
    return Page(
        title=title,
        lead=render(
            f"{__package__}/lead.html.j2",
            sentence=result.sentence,
            notes=result.notes,
            paste=result.finalists and result.paste,
        ),
        sections=sections or [Section("trials", "Trials", "No trial was finished.")],
        data=data,
        tables=tables,
        scripts=SCRIPTS,
        styles=(palette_css(), "kit/marks.css", f"{__package__}/tuning.css"),
    ).html()


def _data(result: TuneResult) -> dict[str, Any]:
    criterion = result.criterion
    front = result.front(criterion)
    trials = [
        {
            "name": trial.candidate.name,
            "objective": trial.candidate.objective,
            "score": trial.judgement.best(criterion),
            "error": trial.judgement.error,
            "feasible": trial.feasible,
            "front": trial in front,
            **{key: value for key, value in trial.candidate.options if key in ("gamma", "lam")},
        }
        for trial in result.trials
        if math.isfinite(trial.judgement.best(criterion))
    ]
    changes = {
        finalist.name: finalist.differences(result.baseline, criterion)
        for finalist in result.finalists
        if finalist is not result.baseline
    }
    drawn = looks(str(trial["objective"]) for trial in trials)
    return {
        "criterion": METRICS[criterion].title,
        "trials": trials,
        "looks": {
            name: {"name": short_name(name), "place": look.place, "marker": look.marker} for name, look in drawn.items()
        },
        "finalists": [
            {"name": name, "mean": change.mean, "low": change.low, "high": change.high}
            for name, change in changes.items()
        ],
    }
