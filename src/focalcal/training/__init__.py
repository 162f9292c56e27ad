"""How networks are trained: the paper's recipes, plain values that say where each of them comes from, and the loop."""

from focalcal.training.checkpoint import CheckpointError
from focalcal.training.distributed import is_first_process
from focalcal.training.fit import Fitted, fit
from focalcal.training.network import build_network
from focalcal.training.non_finite import NonFiniteLossError
from focalcal.training.predict import predict
from focalcal.training.recipe import Recipe
from focalcal.training.recipe_parts import Optimizer, Schedule, Step
from focalcal.training.recipe_table import recipe_table
from focalcal.training.recipes import RECIPES, recipe

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
    "fit",
    "is_first_process",
    "predict",
    "recipe",
    "recipe_table",
]
