"""The recipes by name: every row of the paper's tables, and small ones for a machine without a GPU."""

from __future__ import annotations

from dataclasses import fields

from focalcal.core.checks import one_of, unknown_name
from focalcal.lab.training.operating_points import Point, operating_point
from focalcal.lab.training.recipe import Optimizer, Recipe, Schedule
from focalcal.lab.training.recipes.lite import LITE
from focalcal.lab.training.recipes.paper import PAPER
from focalcal.lab.training.recipes.sources import SOURCES

RECIPES: dict[str, Recipe] = {**PAPER, **LITE}
"""Every recipe by its name: the paper's, and ours for a machine without a GPU."""
SETTINGS = (
    *(field.name for field in fields(Recipe)),
    *(f"optimizer.{field.name}" for field in fields(Optimizer)),
    *(f"schedule.{field.name}" for field in fields(Schedule)),
    *Point._fields,
)


def recipe(name: str) -> Recipe:
    """The recipe of that name.

    >>> recipe("cifar10_resnet50").schedule.milestones
    (150, 250)
    """
    if name not in RECIPES:
        raise ValueError(unknown_name("a recipe", name, RECIPES))
    return RECIPES[name]


def source_of(name: str, setting: str) -> str | None:
    """Who states a setting of the recipe `name`: the "paper", published "code", or nobody, our "judgement".

    `setting` is a field such as "epochs", a part of one such as "optimizer.lr", or FCL's "gamma" or "lam"; None for
    a field that the recipe does not set.

    >>> source_of("cifar10_resnet50", "optimizer.nesterov")
    'judgement'
    """
    one_of("setting", setting, SETTINGS)
    recipe(name)
    if name not in SOURCES:
        return "judgement"
    return SOURCES[name].get(setting, SOURCES[name].get(setting.partition(".")[0]))


def operating_points() -> dict[str, Point]:
    """FCL's gamma and lam for each data set and network of a recipe, by "data_set/model"."""
    settings = {(recipe.data_set, recipe.model) for recipe in RECIPES.values()}
    points = {f"{data_set}/{model}": operating_point(data_set, model) for data_set, model in sorted(settings)}
    return {setting: point for setting, point in points.items() if point is not None}
