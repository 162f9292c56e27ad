"""The runs of stores that a study is about, and why others of it cannot be shown."""

from __future__ import annotations

from collections.abc import Sequence

from focalcal.analysis.evidence import reading_order
from focalcal.analysis.gaps import EvidenceGap, gaps_of_stores
from focalcal.analysis.labels import cell_names
from focalcal.results import Run, Spec, Store
from focalcal.results.merge import runs_of


def collected(stores: Sequence[Store], specs: Sequence[Spec] = ()) -> tuple[list[Run], list[EvidenceGap]]:
    """In reading order; those of `specs` if there are any, and the gaps of these alone."""
    runs, findings = runs_of(stores)
    names = cell_names(specs) if specs else None
    if names is not None:
        runs = [run for run in runs if run.key in names]
    gaps = gaps_of_stores(findings, names)
    if not runs:
        gaps.insert(0, EvidenceGap("no runs", of_study=bool(specs)))
    return reading_order(runs), gaps
