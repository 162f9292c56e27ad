"""How networks are trained: the paper's recipes as plain values, where each setting comes from, and the loop."""

from focalcal.lab.training.checkpoint import CheckpointError
from focalcal.lab.training.distributed import is_first_process
from focalcal.lab.training.fit import Fitted, fit
from focalcal.lab.training.network import build_network, check_start, trained_network
from focalcal.lab.training.non_finite import NonFiniteLossError
from focalcal.lab.training.outputs import predict
from focalcal.lab.training.recipe import Optimizer, Recipe, Schedule, Step
from focalcal.lab.training.recipes import RECIPES, recipe, recipe_text
from focalcal.lab.training.recipes.recipe_tables import recipe_table

__all__ = [
    "RECIPES",
    "CheckpointError",
    "Fitted",
    "NonFiniteLossError",
    "Optimizer",
    "Recipe",
    "Schedule",
    "Step",
    "build_network",
    "check_start",
    "fit",
    "is_first_process",
    "predict",
    "recipe",
    "recipe_table",
    "recipe_text",
    "trained_network",
]
