"""Sentences about what a study lacks, for people."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from focalcal.reports.labels import cell_names
from focalcal.results import Spec

if TYPE_CHECKING:
    from focalcal.reports.evidence import RunEvidence

_PER_LABEL = "/"  # in a metric's name: ece/Hernia


def not_there(known: Sequence[Spec], there: Collection[str], told: Iterable[str]) -> list[str]:
    """The cells without a run that no sentence of `told` names by key."""
    names = cell_names(known)
    text = "\n".join(told)
    lacking = [spec for spec in dict.fromkeys(known) if spec.key not in there and spec.key[:12] not in text]
    return [f"{names[spec.key]} ({spec.key[:12]}): not run" for spec in lacking]


def odd_numbers(runs: Iterable[RunEvidence], told: Iterable[str]) -> list[str]:
    """Metrics that are NaN or infinite, a sentence a run and split, unless `told` names them."""
    known = list(told)
    found = []
    for run in runs:
        for split, metrics in run.metrics.items():
            wrong = {name: value for name, value in metrics.items() if not math.isfinite(value)}
            whole = {name: value for name, value in wrong.items() if _PER_LABEL not in name}
            shown = ", ".join(
                f"{name} is {value}"
                for name, value in (whole or wrong).items()
                if not any(run.key[:12] in one and f"{name} of {split}" in one for one in known)
            )
            if shown:
                found.append(f"{run.name} ({run.key[:12]}): on {split} {shown}; {_consequence(wrong)}")
    return found


def _consequence(wrong: dict[str, float]) -> str:
    if all(math.isnan(value) for value in wrong.values()):
        return "means and tests leave it out"
    return "means are then infinite, and tests leave the pair out"


def seeds_short(runs: Sequence[RunEvidence], known: Collection[str]) -> list[str]:
    """Cells with one seed, and cells that lack seeds which others of their setting have; known cells are told above."""
    cells: dict[str, dict[str, set[int]]] = {}
    expected = {(run.setting, run.objective) for run in runs if run.key in known}
    for run in runs:
        cells.setdefault(run.setting, {}).setdefault(run.objective, set()).add(run.seed)
    found = []
    for setting, objectives in cells.items():
        every = set().union(*objectives.values())
        for objective, seeds in objectives.items():
            lacking = sorted(every - seeds)
            if lacking and (setting, objective) not in expected:
                found.append(f"{setting} {objective}: no seed {', '.join(map(str, lacking))}, which others have")
        single = [objective for objective, seeds in objectives.items() if len(seeds) == 1]
        if single:
            who = "every objective has" if len(single) == len(objectives) else f"{', '.join(single)}: there is"
            found.append(f"{setting}, {who} one seed only: no spread, and no test")
    return found
