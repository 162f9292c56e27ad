"""The studies that come with the package: their files, names and titles, without what it takes to run them."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

HEAD = ("study", "what", "data sets", "networks", "objectives", "seeds", "cells")


def shipped_studies() -> dict[str, str]:
    """The titles of the studies that come with the package, by name; `digits` first."""
    return {name: tomllib.loads(shipped_file(name).read_text("utf-8"))["title"] for name in shipped_names()}


def shipped_names() -> list[str]:
    """In the order of `shipped_studies`."""
    return sorted((file.stem for file in _folder().glob("*.toml")), key=lambda name: (name != "digits", name))


def shipped_file(name: str) -> Path:
    """Where the study of that name is."""
    return _folder() / f"{name}.toml"


def _folder() -> Path:
    return Path(str(resources.files("focalcal.experiments") / "studies"))


def study_table() -> str:
    """One Markdown row per shipped study, which docs/guide/studies.md repeats.

    An objective with several points of its options says how many.
    """
    rows = [HEAD, ("---",) * len(HEAD), *map(_row, shipped_names())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _row(name: str) -> tuple[str, ...]:
    from focalcal.experiments.study_file import load_study  # which costs what torch costs

    study = load_study(name)
    specs = study.specs()
    points: dict[str, set[object]] = {}
    for spec in specs:
        if (spec.data_set, spec.model) == (specs[0].data_set, specs[0].model):  # fcl's own point may differ elsewhere
            points.setdefault(spec.objective, set()).add(spec.objective_options)
    return (
        f"`{name}`",
        study.title,
        ", ".join(dict.fromkeys(spec.data_set for spec in specs)),
        ", ".join(dict.fromkeys(spec.model for spec in specs)),
        ", ".join(
            f"{objective} x {len(options)}" if len(options) > 1 else objective for objective, options in points.items()
        ),
        str(len({spec.seed for spec in specs})),
        str(len(specs)),
    )
