"""The study of what a search has chosen, as a file that anybody can read, run and report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from focalcal.lab.training import RECIPES

if TYPE_CHECKING:
    from focalcal.lab.studies.study_file import Study
    from focalcal.lab.studies.study_grid import StudyGrid
    from focalcal.lab.studies.tuning.search import TuneCandidate


def chosen_study(study: Study, grid: StudyGrid, picks: Sequence[TuneCandidate]) -> str:
    """A setting for every pick, with its recipe's changes and one objective; title, seeds and protocol of the study."""
    known = [name for pick in picks for name in (pick.objective, pick.method.objective.label)]
    head = {
        "title": f"{study.title} (tuned, equal budgets)",
        "description": study.description,
        "seeds": list(grid.seeds),
        "temperature": "validation",
        "section": study.section,
        "candidate": study.candidate if study.candidate in known else "",  # one without any result is left out
    }
    protocol = {**grid.protocol.as_dict(), **grid.evaluations.as_dict()}
    parts = [
        _table("", head),
        _table("[protocol]", {name: value for name, value in protocol.items() if value is not None}),
    ]
    for pick in picks:
        setting, objective = pick.method.setting, pick.method.objective
        base = RECIPES[setting.base].as_dict()
        changes = {name: value for name, value in pick.recipe.as_dict().items() if value != base[name]}
        parts.append(_table("[[settings]]", {"recipe": setting.base, "label": setting.label, **changes}))
        named = {"name": objective.name, "label": objective.label}
        parts.append(_table("[[settings.objectives]]", {**named, **{name: [value] for name, value in pick.options}}))
    return "\n".join(parts)


def _table(head: str, values: Mapping[str, Any]) -> str:
    lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
    return "\n".join([*([head] if head else []), *lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(name)} = {_toml(part)}" for name, part in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps("" if value is None else value)  # strings, numbers and booleans are those of JSON
