"""The gamma and lam of Focal Calibration Loss that recipes name, to mark on surfaces over both."""

from __future__ import annotations

from focalcal.training.recipes import RECIPES

Point = tuple[float, float]


def operating_points() -> dict[str, Point]:
    """(gamma, lam) by setting, `data_set/model`; none where recipes for one setting name different points."""
    named: dict[str, set[Point]] = {}
    for recipe in RECIPES.values():
        named.setdefault(f"{recipe.data_set}/{recipe.model}", set()).add((recipe.fcl_gamma, recipe.fcl_lam))
    return {setting: next(iter(points)) for setting, points in named.items() if len(points) == 1}
