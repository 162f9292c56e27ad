"""What a study lacks, as objects with a kind, a run and numbers; `report.sentences` has the sentences."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from focalcal.lab.evidence.labels import Label, cell_names
from focalcal.lab.store import Spec
from focalcal.lab.store.diagnostics import StoreFinding

if TYPE_CHECKING:
    from focalcal.lab.evidence.evidence import RunEvidence

_PER_LABEL = "/"  # in a metric's name: ece/Hernia


@dataclass(frozen=True)
class EvidenceGap:
    """One thing that is not there, or not as it should be.

    no runs      nothing is stored, of a study if `of_study`, else of anything
    stored       a folder or failure that a store told of, `finding`; `name` is the cell's, empty if that is not known
    not run      a cell without a run
    unreadable   a file of a run that cannot be read; `detail` says why
    not finite   metrics of `split` that are NaN or infinite: `numbers`
    no seed      `objectives` of the setting `name` lack `seeds`, which others of it have
    one seed     `objectives` of the setting `name` have a single seed; `all_of_setting` if every one has
    """

    kind: Literal["no runs", "stored", "not run", "unreadable", "not finite", "no seed", "one seed"]
    key: str | None = None
    name: str = ""
    detail: str = ""
    finding: StoreFinding | None = None
    split: str = ""
    numbers: tuple[tuple[str, float], ...] = ()
    objectives: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    all_of_setting: bool = False
    of_study: bool = False


def gaps_of_stores(findings: Iterable[StoreFinding], names: Mapping[str, str] | None = None) -> list[EvidenceGap]:
    """Of the cells with `names` by key alone, if they are given."""
    return [
        EvidenceGap("stored", finding.key, "" if names is None else names[finding.key or ""], finding=finding)
        for finding in findings
        if names is None or finding.key in names
    ]


def cells_not_run(
    known: Sequence[Spec], there: Collection[str], told: Iterable[EvidenceGap], labels: Mapping[str, Label]
) -> list[EvidenceGap]:
    """The cells without a run that no gap of `told` is about."""
    names = cell_names(known, labels)
    explained = {gap.key for gap in told}
    lacking = [spec for spec in dict.fromkeys(known) if spec.key not in there and spec.key not in explained]
    return [EvidenceGap("not run", spec.key, names[spec.key]) for spec in lacking]


def metrics_not_finite(runs: Iterable[RunEvidence]) -> list[EvidenceGap]:
    """One per run and split."""
    gaps = []
    for run in runs:
        for split, metrics in run.metrics.items():
            wrong = {name: value for name, value in metrics.items() if not math.isfinite(value)}
            if wrong:
                gaps.append(EvidenceGap("not finite", run.key, run.name, split=split, numbers=tuple(wrong.items())))
    return gaps


def whole_metrics(gap: EvidenceGap) -> dict[str, float]:
    """Its numbers without those of single labels, unless there are only such."""
    whole = {name: value for name, value in gap.numbers if _PER_LABEL not in name}
    return whole or dict(gap.numbers)


def seeds_short(runs: Sequence[RunEvidence], known: Collection[str]) -> list[EvidenceGap]:
    """Cells with one seed, and cells that lack seeds which others of their setting have; not if they are known."""
    cells: dict[str, dict[str, set[int]]] = {}
    expected = {(run.setting, run.objective) for run in runs if run.key in known}
    for run in runs:
        cells.setdefault(run.setting, {}).setdefault(run.objective, set()).add(run.seed)
    gaps = []
    for setting, objectives in cells.items():
        every = set().union(*objectives.values())
        for objective, seeds in objectives.items():
            lacking = tuple(sorted(every - seeds))
            if lacking and (setting, objective) not in expected:
                gaps.append(EvidenceGap("no seed", name=setting, objectives=(objective,), seeds=lacking))
        single = tuple(objective for objective, seeds in objectives.items() if len(seeds) == 1)
        if single:
            every_one = len(single) == len(objectives)
            gaps.append(EvidenceGap("one seed", name=setting, objectives=single, all_of_setting=every_one))
    return gaps
