"""How networks are trained: the paper's recipes, as plain values that say where each of them comes from."""

from focalcal.training.recipe import Recipe
from focalcal.training.recipe_parts import Optimizer, Schedule, Step
from focalcal.training.recipe_table import recipe_table
from focalcal.training.recipes import RECIPES, recipe

__all__ = ["RECIPES", "Optimizer", "Recipe", "Schedule", "Step", "recipe", "recipe_table"]
