"""Recipes as a table in Markdown, which docs/guide/recipes.md repeats."""

from __future__ import annotations

from collections.abc import Mapping

from focalcal.lab.training.operating_points import fcl_point
from focalcal.lab.training.recipe import Optimizer, Recipe, Schedule

HEAD = ("recipe", "data set, network", "optimiser", "schedule", "epochs, batch", "augmentation", "gamma, lam")


def recipe_table(recipes: Mapping[str, Recipe]) -> str:
    """Recipes as a table in Markdown, one row per recipe.

    Args:
        recipes: by their names, such as `RECIPES`.

    Returns:
        The lines of the table.

    >>> from focalcal.lab.training import RECIPES
    >>> recipe_table(RECIPES).splitlines()[0]
    '| recipe | data set, network | optimiser | schedule | epochs, batch | augmentation | gamma, lam |'
    """
    rows = [HEAD, ("---",) * len(HEAD), *(_row(name, recipe) for name, recipe in recipes.items())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _row(name: str, recipe: Recipe) -> tuple[str, ...]:
    steps = [step.name for step in (*recipe.augmentation, *recipe.after_normalisation)]
    point = fcl_point(recipe.data_set, recipe.model)
    return (
        f"`{name}`",
        f"`{recipe.data_set}`, `{recipe.model}`",
        _optimizer(recipe.optimizer),
        _schedule(recipe.schedule),
        f"{recipe.epochs}, {recipe.batch_size}",
        ", ".join(steps) or "-",
        "-" if point is None else f"{point.gamma:g}, {point.lam:g}",
    )


def _optimizer(optimizer: Optimizer) -> str:
    words = [f"{optimizer.name} {optimizer.lr:g}"]
    if optimizer.momentum:
        words.append(f"{'Nesterov ' if optimizer.nesterov else ''}momentum {optimizer.momentum:g}")
    if optimizer.weight_decay:
        but = f" but on {', '.join(optimizer.undecayed)}" if optimizer.undecayed else ""
        words.append(f"decay {optimizer.weight_decay:g}{but}")
    return ", ".join(words)


def _schedule(schedule: Schedule) -> str:
    words = schedule.kind
    if schedule.kind == "milestones":
        words = f"x{schedule.factor:g} at {', '.join(map(str, schedule.milestones))}"
    elif schedule.kind == "plateau":
        words = f"x{schedule.factor:g} on a plateau of {schedule.patience}"
    return f"{words}, warm-up {schedule.warmup}" if schedule.warmup else words
