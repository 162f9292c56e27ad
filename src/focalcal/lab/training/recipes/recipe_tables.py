"""Recipes as tables: all of them in Markdown, which docs/guide/recipes.md repeats, and one with its sources as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from focalcal.lab.training.operating_points import operating_point
from focalcal.lab.training.recipe import Optimizer, Recipe, Schedule
from focalcal.lab.training.recipes import recipe, source_of
from focalcal.lab.training.recipes.sources import SOURCES

HEAD = ("recipe", "data set, network", "optimiser", "schedule", "epochs, batch", "augmentation", "gamma, lam", "judged")


def recipe_table(recipes: Mapping[str, Recipe]) -> str:
    """One row per recipe, with the settings that are our judgement in the last column."""
    rows = [HEAD, ("---",) * len(HEAD), *(_row(name, recipe) for name, recipe in recipes.items())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def sources_table(name: str) -> str:
    """One line per setting of the recipe `name`: the setting, its value, and who states it."""
    rows = [(setting, _value(value), source_of(name, setting)) for setting, value in _settings(recipe(name)).items()]
    stated = [(setting, value, source) for setting, value, source in rows if source is not None]
    widths = [max(len(row[column]) for row in stated) for column in (0, 1)]
    return "".join(f"{setting:{widths[0]}}  {value:{widths[1]}}  {source}\n" for setting, value, source in stated)


def _settings(recipe: Recipe) -> dict[str, Any]:
    """What the recipe sets, the optimiser and the schedule part by part, then FCL's gamma and lam."""
    settings: dict[str, Any] = {}
    for field, value in recipe.as_dict().items():
        if field in ("optimizer", "schedule"):
            settings |= {f"{field}.{part}": number for part, number in value.items() if number not in (None, [])}
        else:
            settings[field] = value
    point = operating_point(recipe.data_set, recipe.model)
    return settings | ({} if point is None else point._asdict())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={option}" for name, option in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(item["name"] if isinstance(item, dict) else str(item) for item in value) or "none"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _row(name: str, recipe: Recipe) -> tuple[str, ...]:
    steps = [step.name for step in (*recipe.augmentation, *recipe.after_normalisation)]
    point = operating_point(recipe.data_set, recipe.model)
    judged = sorted(setting for setting, source in SOURCES.get(name, {}).items() if source == "judgement")
    return (
        f"`{name}`",
        f"`{recipe.data_set}`, `{recipe.model}`",
        _optimizer(recipe.optimizer),
        _schedule(recipe.schedule),
        f"{recipe.epochs}, {recipe.batch_size}",
        ", ".join(steps) or "-",
        "-" if point is None else f"{point.gamma:g}, {point.lam:g}",
        ", ".join(judged) or "everything",
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
