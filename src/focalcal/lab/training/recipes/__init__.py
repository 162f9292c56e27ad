"""The recipes by name: every row of the paper's tables, and small ones (`*_lite`) for a machine without a GPU.

Each is a TOML file of this folder. A comment beside a setting, or beside the table that it is in, says who states it:

paper      Liang et al., "Focal Calibration Loss", states it
code       the paper does not, and it is in the published code of a reference that the paper says it follows
           (Mukhoti et al. 2020 and what came after it; for X-rays a public CheXNet)
judgement  nobody states it, or the sources differ, and the choice is ours; docs/guide/recipes.md gives the reasons

Lite recipes are our judgement throughout.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from focalcal.core.checks import unknown_name
from focalcal.lab.training.operating_points import Point, fcl_point
from focalcal.lab.training.recipe import Recipe


class _Recipes(Mapping[str, Recipe]):
    """Read when one is asked for."""

    def __getitem__(self, name: str) -> Recipe:
        if name not in _files():
            raise KeyError(name)
        return _read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_files())

    def __len__(self) -> int:
        return len(_files())


RECIPES: Mapping[str, Recipe] = _Recipes()
"""Every recipe by its name: the paper's, then ours for a machine without a GPU."""


def recipe(name_or_path: str) -> Recipe:
    """A recipe, shipped or your own.

    Args:
        name_or_path: the name of a shipped one, or the path of a file of your own, which ends in .toml.

    Returns:
        The recipe.

    >>> recipe("cifar10_resnet50").schedule.milestones
    (150, 250)
    """
    if name_or_path in RECIPES:
        return RECIPES[name_or_path]
    text = recipe_text(name_or_path)
    try:
        return Recipe.from_dict(tomllib.loads(text))
    except ValueError as error:  # of TOML or of the recipe
        raise ValueError(f"{name_or_path}: {error}") from None


def recipe_text(name_or_path: str) -> str:
    """The file of a recipe: its settings, with their sources as comments.

    Args:
        name_or_path: as `recipe` takes it.

    Returns:
        The text of the file.

    >>> "hidden" in recipe_text("digits_mlp_lite")
    True
    """
    if name_or_path in RECIPES:
        return _files()[name_or_path].read_text("utf-8")
    if not name_or_path.endswith(".toml"):
        known = unknown_name("a recipe", name_or_path, RECIPES)
        raise ValueError(f"{known}. For a file of your own give its path, which ends in .toml")
    return Path(name_or_path).read_text("utf-8")


def operating_points() -> dict[str, Point]:
    """FCL's gamma and lam for each data set and network of a recipe, by "data_set/model"."""
    settings = {(recipe.data_set, recipe.model) for recipe in RECIPES.values()}
    points = {f"{data_set}/{model}": fcl_point(data_set, model) for data_set, model in sorted(settings)}
    return {setting: point for setting, point in points.items() if point is not None}


@cache
def _files() -> dict[str, Path]:
    folder = Path(str(resources.files(__name__)))
    return {file.stem: file for file in sorted(folder.glob("*.toml"), key=lambda file: ("_lite" in file.stem, file))}


@cache
def _read(name: str) -> Recipe:
    return Recipe.from_dict(tomllib.loads(_files()[name].read_text("utf-8")))
