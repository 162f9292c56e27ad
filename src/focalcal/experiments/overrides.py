"""A recipe with some of its fields changed, as a study's file writes them, and the small one of a smoke run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from focalcal.data import DATA_SETS
from focalcal.models import MODELS
from focalcal.training.recipe import Recipe, Schedule

_NEW_PART = {"optimizer": "name", "schedule": "kind"}  # the key that makes a table the whole of it
_OPTIONS: dict[str, tuple[str, Mapping[str, object]]] = {
    "data_options": ("data_set", DATA_SETS),
    "model_options": ("model", MODELS),
}


def override_recipe(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """The recipe with these fields instead of its own.

    `data_options` and `model_options` are added to the recipe's, which a data set or a network of somebody's own code
    begins without. The keys of `optimizer` and `schedule` are changes as well, unless they say `name` or `kind`: then
    the table is the whole optimiser or schedule.
    """
    changed = dict(values)
    for field, key in _NEW_PART.items():
        if field in values and key not in values[field]:
            changed[field] = replace(getattr(recipe, field), **values[field])
    for field, (owner, shipped) in _OPTIONS.items():
        kept = {} if changed.get(owner, getattr(recipe, owner)) not in shipped else dict(getattr(recipe, field))
        if owner in values or field in values:
            changed[field] = {**kept, **values.get(field, {})}
    return replace(recipe, **changed)


def shrink_recipe(recipe: Recipe, *, epochs: int, batch_size: int) -> Recipe:
    """The recipe at another number of epochs, its milestones and warm-up moved in proportion, and in smaller batches.

    A milestone that would fall on the last epoch or before the first is left out.
    """
    ratio = epochs / recipe.epochs
    schedule = recipe.schedule
    warmup = int(schedule.warmup * ratio)
    milestones = tuple(
        sorted({max(1, int(epoch * ratio)) for epoch in schedule.milestones if max(1, epoch * ratio) < epochs})
    )
    if schedule.kind == "milestones" and not milestones:
        schedule = Schedule(kind="constant", warmup=warmup)
    else:
        schedule = replace(schedule, milestones=milestones, warmup=warmup)
    return replace(recipe, epochs=epochs, batch_size=min(batch_size, recipe.batch_size), schedule=schedule)
