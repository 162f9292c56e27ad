"""What a study lacks: each with its kind, the run it is about, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from focalcal.lab.evidence.labels import Labels, cell_names
from focalcal.lab.store import Spec
from focalcal.lab.store.diagnostics import StoreFinding

if TYPE_CHECKING:
    from focalcal.lab.evidence.evidence import RunEvidence


@dataclass(frozen=True)
class EvidenceGap:
    """One thing that is not there, or not as it should be.

    text     says it in a line, and `about` of what
    key      of the run or cell it is about; None of several
    finding  what a store told of, a folder or a failure
    """

    kind: Literal["no runs", "stored", "not run", "unreadable", "not finite", "no seed", "one seed"]
    text: str
    key: str | None = None
    about: str = ""
    finding: StoreFinding | None = None

    def __str__(self) -> str:
        """One line."""
        if self.key is None or self.kind == "stored":
            return f"{self.about}: {self.text}" if self.about else self.text
        return f"{self.about} ({self.key[:12]}): {self.text}"


def nothing_stored(*, of_study: bool = False) -> EvidenceGap:
    """There is no run."""
    return EvidenceGap(
        "no runs", "There is no whole run of this study." if of_study else "The store holds no whole run."
    )


def gaps_of_stores(findings: Iterable[StoreFinding], names: Mapping[str, str] | None = None) -> list[EvidenceGap]:
    """Of the cells with `names` by key alone, if they are given."""
    return [
        EvidenceGap("stored", str(one), one.key, "" if names is None else names[one.key or ""], one)
        for one in findings
        if names is None or one.key in names
    ]


def cells_not_run(
    known: Sequence[Spec], there: Collection[str], told: Iterable[EvidenceGap], labels: Labels
) -> list[EvidenceGap]:
    """The cells without a run that no gap of `told` is about."""
    names = cell_names(known, labels)
    explained = {gap.key for gap in told}
    lacking = [spec for spec in dict.fromkeys(known) if spec.key not in there and spec.key not in explained]
    return [EvidenceGap("not run", "not run", spec.key, names[spec.key]) for spec in lacking]


def metrics_not_finite(runs: Iterable[RunEvidence]) -> list[EvidenceGap]:
    """One per run and split; metrics of single labels (ece/Hernia) are named where there are no others."""
    gaps = []
    for run in runs:
        for split, metrics in run.metrics.items():
            wrong = {name: value for name, value in metrics.items() if not math.isfinite(value)}
            shown = {name: value for name, value in wrong.items() if "/" not in name} or wrong
            listed = ", ".join(f"{name} is {value}" for name, value in shown.items())
            so = "means and tests leave it out"
            if not all(map(math.isnan, wrong.values())):
                so = "means are then infinite, and tests leave the pair out"
            if wrong:
                gaps.append(EvidenceGap("not finite", f"on {split} {listed}; {so}", run.key, run.name))
    return gaps


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
            if every - seeds and (setting, objective) not in expected:
                lacking = f"no seed {', '.join(map(str, sorted(every - seeds)))}, which others have"
                gaps.append(EvidenceGap("no seed", lacking, about=f"{setting} {objective}"))
        if single := [objective for objective, seeds in objectives.items() if len(seeds) == 1]:
            who = f"{', '.join(single)}: there is"
            if len(single) == len(objectives):
                who = "every objective has"
            gaps.append(EvidenceGap("one seed", f"{setting}, {who} one seed only: no spread, and no test"))
    return gaps
