"""The shipped studies as a Markdown table, which docs/guide/studies.md repeats."""

from __future__ import annotations

from focalcal.experiments.shipped import shipped_studies
from focalcal.experiments.study import Study, load_study

HEAD = ("study", "what", "data sets", "networks", "objectives", "seeds", "cells")


def study_table() -> str:
    """One row a shipped study. An objective with several points of its options says how many."""
    rows = [HEAD, ("---",) * len(HEAD), *(_row(name, load_study(name)) for name in shipped_studies())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _row(name: str, study: Study) -> tuple[str, ...]:
    specs = study.specs()
    points: dict[str, set[object]] = {}
    for one in specs:
        if (one.data_set, one.model) == (specs[0].data_set, specs[0].model):  # elsewhere fcl's own point may be another
            points.setdefault(one.objective, set()).add(one.objective_options)
    return (
        f"`{name}`",
        study.title,
        ", ".join(dict.fromkeys(one.data_set for one in specs)),
        ", ".join(dict.fromkeys(one.model for one in specs)),
        ", ".join(f"{one} x {len(many)}" if len(many) > 1 else one for one, many in points.items()),
        str(len({one.seed for one in specs})),
        str(len(specs)),
    )
