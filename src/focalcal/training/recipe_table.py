"""Recipes as a Markdown table, which docs/guide/recipes.md repeats."""

from __future__ import annotations

from collections.abc import Mapping

from focalcal.training.recipe import Recipe
from focalcal.training.recipe_parts import Optimizer, Schedule

HEAD = ("recipe", "data set, network", "optimiser", "schedule", "epochs, batch", "augmentation", "gamma, lam", "judged")


def recipe_table(recipes: Mapping[str, Recipe]) -> str:
    """One row a recipe, with the fields that are our judgement in the last column."""
    rows = [HEAD, ("---",) * len(HEAD), *(_row(name, one) for name, one in recipes.items())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _row(name: str, recipe: Recipe) -> tuple[str, ...]:
    steps = [step.name for step in (*recipe.augmentation, *recipe.after_normalisation)]
    return (
        f"`{name}`",
        f"`{recipe.data_set}`, `{recipe.model}`",
        _optimizer(recipe.optimizer),
        _schedule(recipe.schedule),
        f"{recipe.epochs}, {recipe.batch_size}",
        ", ".join(steps) or "-",
        f"{recipe.fcl_gamma:g}, {recipe.fcl_lam:g}",
        ", ".join(recipe.judged) if recipe.known else "everything",
    )


def _optimizer(optimizer: Optimizer) -> str:
    said = [f"{optimizer.name} {optimizer.lr:g}"]
    if optimizer.momentum:
        said.append(f"{'Nesterov ' if optimizer.nesterov else ''}momentum {optimizer.momentum:g}")
    if optimizer.weight_decay:
        but = f" but on {', '.join(optimizer.undecayed)}" if optimizer.undecayed else ""
        said.append(f"decay {optimizer.weight_decay:g}{but}")
    return ", ".join(said)


def _schedule(schedule: Schedule) -> str:
    said = schedule.kind
    if schedule.kind == "milestones":
        said = f"x{schedule.factor:g} at {', '.join(map(str, schedule.milestones))}"
    elif schedule.kind == "plateau":
        said = f"x{schedule.factor:g} on a plateau of {schedule.patience}"
    return f"{said}, warm-up {schedule.warmup}" if schedule.warmup else said
