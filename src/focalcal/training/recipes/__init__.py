"""The recipes by name: every row of the paper's tables, and small ones for a machine without a GPU.

Three kinds of source. "paper": Liang et al., "Focal Calibration Loss". "code": the published code of a reference that
the paper says it follows (Mukhoti et al. 2020 and what came after it; for X-rays a public CheXNet). "judgement": ours.
docs/guide/recipes.md gives the reasons.
"""

from __future__ import annotations

from focalcal.training.recipe import Recipe
from focalcal.training.recipes.chest_xrays import CHEST_XRAYS
from focalcal.training.recipes.images import IMAGES
from focalcal.training.recipes.lite import LITE
from focalcal.training.recipes.texts import TEXTS
from focalcal.training.recipes.transformers import TRANSFORMERS

RECIPES: dict[str, Recipe] = {**IMAGES, **TEXTS, **TRANSFORMERS, **CHEST_XRAYS, **LITE}


def recipe(name: str) -> Recipe:
    """The recipe of that name.

    >>> recipe("cifar10_resnet50").schedule.milestones
    (150, 250)
    """
    if name not in RECIPES:
        raise ValueError(f"name must be one of {', '.join(map(repr, RECIPES))}, got {name!r}")
    return RECIPES[name]
