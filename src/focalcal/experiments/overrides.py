"""A recipe with some of its fields changed, as a study's file writes them, and the small one of a smoke run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from focalcal.data import DATA_SETS
from focalcal.experiments.spec_builder import check_recipe_options, unknown
from focalcal.models import MODELS
from focalcal.training.recipe import Optimizer, Recipe, Schedule

FIELDS = tuple(field.name for field in fields(Recipe))
_PARTS = {"optimizer": "name", "schedule": "kind"}  # and what says that a table is a new one
_PART_FIELDS = {
    "optimizer": [one.name for one in fields(Optimizer)],
    "schedule": [one.name for one in fields(Schedule)],
}
_TABLES = ("data_options", "model_options")
_CHOICES: dict[str, tuple[str, ...]] = {"data_set": tuple(DATA_SETS), "model": tuple(MODELS)}


def overridden(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """The recipe with these fields instead of its own; "" stands for none, which TOML cannot write.

    `data_options` and `model_options` are added to the recipe's, as are the keys of `optimizer` and `schedule` unless
    they say `name` or `kind`: then the table is the whole optimiser or schedule.
    """
    for name, value in values.items():
        if name not in FIELDS:
            raise ValueError(unknown("a field of a recipe", name, FIELDS))
        if name in _CHOICES and value not in _CHOICES[name]:
            raise ValueError(unknown(f"a {name.replace('_', ' ')}", value, _CHOICES[name]))
        for part in value if name in _PART_FIELDS and isinstance(value, Mapping) else ():
            if part not in _PART_FIELDS[name]:
                raise ValueError(unknown(f"a field of the {name}", part, _PART_FIELDS[name]))
    changed = replace(recipe, **{name: _changed(recipe, name, value) for name, value in values.items()})
    check_recipe_options(changed)
    return changed


def shrunk(recipe: Recipe, *, epochs: int, batch_size: int) -> Recipe:
    """The recipe at another number of epochs, its milestones and warm-up moved in proportion, and in smaller batches.

    A milestone that would fall on the last epoch or before the first is left out.
    """
    ratio = epochs / recipe.epochs
    schedule = recipe.schedule
    warmup = int(schedule.warmup * ratio)
    milestones = tuple(
        sorted({max(1, int(one * ratio)) for one in schedule.milestones if max(1, one * ratio) < epochs})
    )
    if schedule.kind == "milestones" and not milestones:
        schedule = Schedule(kind="constant", warmup=warmup)
    else:
        schedule = replace(schedule, milestones=milestones, warmup=warmup)
    return replace(recipe, epochs=epochs, batch_size=min(batch_size, recipe.batch_size), schedule=schedule)


def _adds(name: str, value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return name in _TABLES or (name in _PARTS and _PARTS[name] not in value)


def _changed(recipe: Recipe, name: str, value: Any) -> Any:
    if not _adds(name, value):
        return None if value == "" else value
    before = getattr(recipe, name)
    return {**(dict(before) if name in _TABLES else before.as_dict()), **value}
