"""A metric over gamma and lam: the grid of means, its minimum, and what was chosen beforehand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focalcal.lab.evidence.contenders import all_constant_guesses, within_margin
from focalcal.lab.evidence.metric_names import PERCENT, as_shown

if TYPE_CHECKING:
    from focalcal.lab.evidence.evidence import Evidence, RunEvidence

Point = tuple[float, float]  # gamma, lam


@dataclass(frozen=True, eq=False)
class Surface:
    """values, (gammas, lams), is the mean over the seeds of a cell, in the unit it is shown in; NaN where there is none
    or one of them is not finite.

    seeds            (gammas, lams): how many runs of a cell have a finite number
    known_seeds      of all cells
    allowed          (gammas, lams): whether the error is within the margin of the lowest one (`within_margin`) and
                     not that of a constant guess
    minimum          the allowed cell with the lowest value, None if there is none; `ties` cells share it
    operating_point  what was chosen beforehand, which need not be on the grid
    curve            points at which the theory has FCL cancel cross-entropy's overconfidence (`operating_curve`)
    left_out         runs that were trained or tested in another way than most
    """

    setting: str
    objective: str
    metric: str
    gammas: tuple[float, ...]
    lams: tuple[float, ...]
    values: np.ndarray
    seeds: np.ndarray
    known_seeds: tuple[int, ...]
    allowed: np.ndarray
    minimum: Point | None
    ties: int
    operating_point: Point | None
    left_out: int
    curve: tuple[Point, ...] = ()

    @property
    def unit(self) -> str:
        """Of the values."""
        return "%" if self.metric in PERCENT else ""

    @property
    def missing(self) -> int:
        """Cells without a value."""
        return int(np.isnan(self.values).sum())

    @property
    def excluded(self) -> int:
        """Cells with a value that cannot be the minimum, for their error."""
        return int((np.isfinite(self.values) & ~self.allowed).sum())

    def curve_places(self) -> list[Point]:
        """The curve in places of the grid, from 0: (place of gamma, place of lam); what lies outside is left out."""
        inside = [(gamma, lam) for gamma, lam in self.curve if self.lams[0] <= lam <= self.lams[-1]]
        return [
            (
                float(np.interp(gamma, self.gammas, range(len(self.gammas)))),
                float(np.interp(lam, self.lams, range(len(self.lams)))),
            )
            for gamma, lam in inside
        ]

    @property
    def on_grid(self) -> bool:
        """Whether the operating point is a cell."""
        point = self.operating_point
        return point is not None and point[0] in self.gammas and point[1] in self.lams


def surface(
    evidence: Evidence,
    setting: str,
    metric: str = "ece",
    *,
    objective: str = "fcl",
    operating_point: Point | None = None,
    curve: Sequence[Point] = (),
) -> Surface | None:
    """Of the test split; None if the setting has fewer than two gammas and two lams of the objective.

    Runs that were trained or tested in another way than most are left out and counted. The paper marks the point that
    was chosen beforehand, which a store does not know: give it.
    """
    runs = [
        run
        for run in evidence.runs
        if run.setting == setting and run.spec["objective"] == objective and {"gamma", "lam"} <= run.options.keys()
    ]
    usual = _same_protocol(runs)
    cells: dict[Point, list[float]] = {}
    runs_of: dict[Point, list[RunEvidence]] = {}
    for run in usual:
        point, test = (float(run.options["gamma"]), float(run.options["lam"])), run.metrics.get("test", {})
        cells.setdefault(point, []).append(as_shown(metric, test.get(metric, math.nan)))
        runs_of.setdefault(point, []).append(run)
    gammas, lams = (tuple(sorted({cell[axis] for cell in cells})) for axis in (0, 1))
    if len(gammas) < 2 or len(lams) < 2:
        return None
    values, seeds = np.full((len(gammas), len(lams)), math.nan), np.zeros((len(gammas), len(lams)), dtype=int)
    for (gamma, lam), measured in cells.items():
        finite = [value for value in measured if math.isfinite(value)]
        at = gammas.index(gamma), lams.index(lam)
        seeds[at] = len(finite)
        if len(finite) == len(measured):  # a mean over some of the seeds is not comparable
            values[at] = float(np.mean(finite))
    near = within_margin({point: _mean_error(of_cell) for point, of_cell in runs_of.items()})
    useful = {point for point in near if not all_constant_guesses(runs_of[point])}
    allowed = np.array([[(gamma, lam) in useful for lam in lams] for gamma in gammas])
    among = np.where(allowed, values, math.nan)
    lowest, ties = None, 0
    if np.isfinite(among).any():
        row, column = np.unravel_index(np.nanargmin(among), among.shape)
        lowest, ties = (gammas[row], lams[column]), int((among == np.nanmin(among)).sum())
    return Surface(
        setting=setting,
        objective=objective,
        metric=metric,
        gammas=gammas,
        lams=lams,
        values=values,
        seeds=seeds,
        known_seeds=tuple(sorted({run.seed for run in usual})),
        allowed=allowed,
        minimum=lowest,
        ties=ties,
        operating_point=None if operating_point is None else (float(operating_point[0]), float(operating_point[1])),
        left_out=len(runs) - len(usual),
        curve=tuple(curve),
    )


def _mean_error(runs: Sequence[RunEvidence]) -> float:
    return float(np.mean([run.metrics.get("test", {}).get("error", math.nan) for run in runs]))


def _same_protocol(runs: list[RunEvidence]) -> list[RunEvidence]:
    """The runs of the commonest training and protocol."""
    groups: dict[str, list[RunEvidence]] = {}
    for run in runs:
        how = json.dumps([run.spec.get("training"), run.spec.get("protocol")], sort_keys=True)
        groups.setdefault(how, []).append(run)
    return max(groups.values(), key=len, default=[])
