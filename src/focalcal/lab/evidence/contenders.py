"""Who may be called best: being calibrated and useless is not a win."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from focalcal.lab.evidence.evidence import Evidence, RunEvidence
from focalcal.pages.numbers import best

# An objective can lead, or stand out in a table, if its mean test error exceeds the lowest of its setting by no more
# than the larger of these two. The paper's tables, where every objective is useful, have excesses of up to 1.02 points
# where the lowest error is below 10 %, and of up to 15 % of the lowest elsewhere.
MARGIN_POINTS = 0.02
MARGIN_SHARE = 0.25
SAMPLING_ERRORS = 2.0  # standard errors of a constant guess's error that count as no difference from it
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class ConstantGuess:
    """Runs of a cell whose error on the test rows is that of one class predicted for all of them.

    error     the mean over these runs
    constant  the error of the best constant guess: 1 minus the share of the commonest label
    """

    setting: str
    objective: str
    seeds: tuple[int, ...]
    of: int
    error: float
    constant: float


def contenders(evidence: Evidence, setting: str) -> frozenset[str]:
    """The objectives of a setting that may be called best; all of them where no error was measured.

    On a hard task the margin reaches to a constant guess: objectives with no run that is better are left out as well.
    """
    errors = {
        objective: statistics.fmean(values.values()) for objective, values in evidence.values(setting, "error").items()
    }
    near = within_margin({name: errors.get(name, math.nan) for name in evidence.objectives})
    return frozenset(name for name in near if not all_constant_guesses(evidence.of(setting, name)))


def within_margin(errors: Mapping[Key, float]) -> frozenset[Key]:
    """Those whose error is within the margin of the lowest, not those without one; all where none has a finite one.

    >>> sorted(within_margin({"a": 0.05, "b": 0.069, "c": 0.071, "d": float("nan")}))
    ['a', 'b']
    """
    finite = [error for error in errors.values() if math.isfinite(error)]
    if not finite:
        return frozenset(errors)
    most = min(finite) + max(MARGIN_POINTS, MARGIN_SHARE * min(finite))
    return frozenset(name for name, error in errors.items() if error <= most)


def constant_guesses(evidence: Evidence) -> list[ConstantGuess]:
    """The cells in which some run is no better than a constant guess, in the order of the evidence."""
    guesses = []
    for (setting, objective), runs in evidence.cells.items():
        useless = [run for run in runs if is_constant_guess(run)]
        if useless:
            error = statistics.fmean(run.metrics["test"]["error"] for run in useless)
            constant = statistics.fmean(run.constant_error or 0.0 for run in useless)
            seeds = tuple(run.seed for run in useless)
            guesses.append(ConstantGuess(setting, objective, seeds, len(runs), error, constant))
    return guesses


def is_constant_guess(run: RunEvidence) -> bool:
    """Whether the test error is at least c - 2 sqrt(c (1 - c) / n), c the best constant guess's on these n rows."""
    test = run.metrics.get("test", {})
    error, rows, c = test.get("error", math.nan), test.get("rows", math.nan), run.constant_error
    return c is not None and error >= c - SAMPLING_ERRORS * math.sqrt(c * (1 - c) / rows)  # NaN is not


def all_constant_guesses(runs: Sequence[RunEvidence]) -> bool:
    """Whether there are runs, and none of them is better than a constant guess."""
    return bool(runs) and all(map(is_constant_guess, runs))


def best_objectives(
    evidence: Evidence, setting: str, cells: Mapping[str, Any], *, higher: bool = False
) -> dict[str, bool]:
    """By objective, whether its cell is the best as printed (`numbers.best`) among those of the contenders."""
    allowed = contenders(evidence, setting)
    marks = best(list(cells.values()), higher=higher, among=[name in allowed for name in cells])
    return dict(zip(cells, marks, strict=True))


def best_of_settings(evidence: Evidence, cells: Mapping[tuple[str, str], Any], *, higher: bool = False) -> list[bool]:
    """Of cells by setting and objective, which ones are the best of their setting."""
    marks: dict[tuple[str, str], bool] = {}
    for setting in dict.fromkeys(setting for setting, _ in cells):
        own = {objective: cell for (place, objective), cell in cells.items() if place == setting}
        for objective, mark in best_objectives(evidence, setting, own, higher=higher).items():
            marks[setting, objective] = mark
    return [marks[cell] for cell in cells]
