"""A study's numbers as the page's scripts read them: by cell (a setting and an objective), seeds side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from focalcal.analysis.comparisons import Family
from focalcal.analysis.contenders import constant_guesses
from focalcal.analysis.evidence import Evidence, RunEvidence
from focalcal.analysis.metric_names import HIGHER_IS_BETTER, PERCENT, SINGLE_LABEL, title
from focalcal.analysis.origins import origins
from focalcal.analysis.surface import Surface
from focalcal.reports.definitions import METRICS, TERMS
from focalcal.reports.figures.surface import surface_note, surface_title
from focalcal.reports.objectives import full_name, looks, short_name
from focalcal.reports.study_page_cells import CURVES, SPLITS, cell_data
from focalcal.reports.study_tables.flags import mark

MOST_EPOCH_VALUES = 200_000  # about 2 MB
MOST_BIN_VALUES = 150_000  # of diagrams epoch by epoch, about 1 MB
MOST_CLASS_VALUES = 100_000
_CHOICES = (*SINGLE_LABEL, "mce", "auroc", "posterior_distance")  # of the metric switch, where they were measured


def page_data(evidence: Evidence, families: Sequence[Family] = (), surfaces: Sequence[Surface] = ()) -> dict[str, Any]:
    """Everything that is drawn. A cell names its setting and objective by their place in the lists.

    "every_epochs" is k where one epoch in k is given, the first and the last among them, so that the page stays small;
    "every_bins" likewise for the diagrams of epochs.
    """
    cells = [
        (setting, objective, runs)
        for setting in evidence.settings
        for objective in evidence.objectives
        if (runs := evidence.of(setting, objective))
    ]
    every, every_bins = _every(evidence), _every_bins(cells)
    settings, objectives = list(evidence.settings), list(evidence.objectives)
    facts, classes = origins(evidence.runs), _classes_fit(cells)
    marks = {(guess.setting, guess.objective): mark(guess) for guess in constant_guesses(evidence)}
    return {
        "title": evidence.title,
        "every_epochs": every,
        "settings": settings,
        "fitted_on": evidence.fitted_on,
        "objectives": _objectives(objectives),
        "metrics": _metrics(evidence),
        "terms": TERMS,
        "cells": [
            {
                "setting": settings.index(setting),
                "objective": objectives.index(objective),
                "mark": marks.get((setting, objective)),
                **cell_data(runs, every, every_bins, classes=classes),
            }
            for setting, objective, runs in cells
        ],
        "comparisons": [
            _comparison(evidence, family, at) for family in families for at in range(len(family.comparisons))
        ],
        "surfaces": [_surface(found) for found in surfaces],
        "facts": {"shared": facts.shared, "own": facts.own},
    }


def _objectives(objectives: Sequence[str]) -> list[dict[str, Any]]:
    drawn = looks(objectives)
    return [
        {
            "key": objective,
            "name": short_name(objective),
            "full": full_name(objective),
            "place": drawn[objective].place,
            "marker": drawn[objective].marker,
            "dash": drawn[objective].dash,
        }
        for objective in objectives
    ]


def _metrics(evidence: Evidence) -> list[dict[str, Any]]:
    """What the switch offers, of the test split."""
    measured = {name for run in evidence.runs for name in run.metrics.get("test", {})}
    return [
        {
            "key": name,
            "title": title(name),
            "percent": name in PERCENT,
            "higher": name in HIGHER_IS_BETTER,
            "meaning": METRICS.get(name, ""),
        }
        for name in _CHOICES
        if name in measured
    ]


def _comparison(evidence: Evidence, family: Family, at: int) -> dict[str, Any]:
    found = family.comparisons[at]
    values = evidence.values(family.setting, found.metric)
    ours, theirs = values[family.candidate], values[family.baseline]
    return {
        "setting": evidence.settings.index(family.setting),
        "candidate": evidence.objectives.index(family.candidate),
        "baseline": evidence.objectives.index(family.baseline),
        "metric": found.metric,
        "seeds": found.seeds,
        "differences": [ours[seed] - theirs[seed] for seed in found.seeds],
        "mean": found.test.mean,
        "low": found.interval.low,
        "high": found.interval.high,
        "effect": found.effect,
        "p": found.test.p_value,
        "p_holm": found.p_adjusted,
        "verdict": found.verdict if found.reachable else "cannot show",
    }


def _surface(found: Surface) -> dict[str, Any]:
    return {
        "setting": found.setting,
        "metric": found.metric,
        "label": title(found.metric),
        "unit": found.unit,
        "title": surface_title(found),
        "note": surface_note(found, missing="Grey"),
        "gammas": found.gammas,
        "lams": found.lams,
        "values": found.values,
        "seeds": found.seeds,
        "minimum": found.minimum,
        "operating_point": found.operating_point,
        "curve": found.curve_places(),
    }


def _classes_fit(cells: Sequence[tuple[str, str, list[RunEvidence]]]) -> bool:
    """Whether the diagrams of single classes are few enough for a page."""
    numbers = [len(runs[0].details.classes) for _, _, runs in cells if runs[0].details is not None]
    return 45 * sum(numbers) <= MOST_CLASS_VALUES


def _every(evidence: Evidence) -> int:
    """Every how many epochs can be given without more values than a page should hold."""
    values = len(SPLITS) * len(CURVES) * sum(len(run.epochs) for run in evidence.runs)
    return max(1, math.ceil(values / MOST_EPOCH_VALUES))


def _every_bins(cells: Sequence[tuple[str, str, list[RunEvidence]]]) -> int:
    values = 45 * sum(max((len(run.epochs) for run in runs), default=0) for _, _, runs in cells)
    return max(1, math.ceil(values / MOST_BIN_VALUES))
