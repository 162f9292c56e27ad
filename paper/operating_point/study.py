"""The operating point put to the test: cross-entropy is trained first, then FCL at the lam that it predicts.

A study file cannot say "the lam that another run predicts", so the cells are made here, in three rounds: the
cross-entropy runs of a study; from each of them FCL at the predicted lam, and its controls; from one of these a refined
lam. Every cell is an ordinary run of the store, and nothing is trained twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from focalcal.lab.store import Run, Spec, Store
from focalcal.lab.studies.completeness import examine_cells
from focalcal.lab.studies.events import OnEvent
from focalcal.lab.studies.grid import Executor, run_grid
from focalcal.lab.studies.own_data import FINGERPRINT
from focalcal.lab.studies.spec_builder import has_validation, recipe_of, spec_of
from focalcal.posthoc import OperatingPoint, operating_point
from paper.operating_point.trial import Role, Trial, measured_trial

GAMMAS = (2.0, 3.0, 5.0)
_CENTRAL = 3.0  # the gamma of the controls and of the refinement
_DIGITS = 3  # of a predicted lam, so that machines which differ in the last bit have the same cells


@dataclass(frozen=True)
class _Cell:
    """A run that is wanted, and what is known of it beforehand."""

    baseline: Spec
    spec: Spec
    role: Role
    helps: bool = False
    matched: bool = False


def run_operating_points(
    baselines: Iterable[Spec],
    store: Store,
    executor: Executor,
    *,
    gammas: Sequence[float] = GAMMAS,
    on_event: OnEvent | None = None,
) -> tuple[list[Trial], bool]:
    """Train what the three rounds miss, and measure what the store then has; the second value: whether Ctrl-C came.

    baselines  cross-entropy cells, of recipes that hold validation rows out: they make the predictions, test rows judge

    A cell that fails is left out, with those that follow from it.
    """
    specs = [_checked(spec) for spec in baselines]
    cells = [_Cell(spec, spec, Role.BASELINE) for spec in specs]
    cells += [_fcl_cell(spec, Role.DEFAULT, _CENTRAL, 1.0, "paper") for spec in specs]
    cells += [_fcl_cell(spec, Role.CONSTANT, _CENTRAL, 3.0) for spec in specs]
    finished = _run(cells, store, executor, on_event)
    stored = examine_cells(specs, store)
    points = {spec: _point(run) for spec in specs if isinstance(run := stored.get(spec.key), Run)}
    cells = [replace(cell, helps=_helps(points.get(cell.baseline))) for cell in cells]
    if finished:
        predicted = [cell for spec, point in points.items() if point for cell in _predicted(spec, point, gammas)]
        cells += predicted
        finished = _run(predicted, store, executor, on_event)
    if finished:
        refined = _refined(predicted, store)
        cells += refined
        finished = _run(refined, store, executor, on_event)
    runs = examine_cells([cell.spec for cell in cells], store)
    trials = [_trial(cell, run) for cell in cells if isinstance(run := runs.get(cell.spec.key), Run)]
    return trials, not finished


def _checked(spec: Spec) -> Spec:
    if spec.objective != "ce":
        raise ValueError(f"baselines must be cross-entropy cells (objective ce), got {spec.name}; leave it out")
    if not has_validation(spec.data_set, recipe_of(spec).data_options):
        raise ValueError(
            f"baselines must hold validation rows out to predict lam from, got {spec.name}, which holds none out; "
            "set data_options.validation, e.g. 2000"
        )
    return spec


def _run(cells: Sequence[_Cell], store: Store, executor: Executor, on_event: OnEvent | None) -> bool:
    """Whether the round came to its end; cells may have failed."""
    return not run_grid((cell.spec for cell in cells), store, executor=executor, on_event=on_event).interrupted


def _point(run: Run, trained_with: tuple[float, float] = (0.0, 0.0)) -> OperatingPoint | None:
    """From the validation rows; None where they have no best temperature, as with labels that are all predicted."""
    try:
        return operating_point(
            run.predictions("val"), gamma=_CENTRAL, trained_with=trained_with, gammas=GAMMAS, resamples=200
        )
    except ValueError:
        return None


def _helps(point: OperatingPoint | None) -> bool:
    return point is not None and point.helps


def _predicted(baseline: Spec, point: OperatingPoint, gammas: Sequence[float]) -> list[_Cell]:
    """FCL at the lam of each gamma, or at lam = 0 where no lam distorts enough; and the controls at gamma = 3."""
    matches = {match.gamma: match for match in point.matches if math.isfinite(match.lam) and match.gamma in gammas}
    cells = [
        _fcl_cell(baseline, Role.PREDICTED, gamma, match.lam, helps=point.helps, matched=match.matched)
        for gamma, match in matches.items()
    ]
    if _CENTRAL in matches:
        lam = matches[_CENTRAL].lam
        cells.append(_fcl_cell(baseline, Role.PAPER_SCALE, _CENTRAL, lam, "paper", helps=point.helps))
        if lam > 0:
            cells.append(_fcl_cell(baseline, Role.HALF, _CENTRAL, lam / 2, helps=point.helps))
            cells.append(_fcl_cell(baseline, Role.TWICE, _CENTRAL, 2 * lam, helps=point.helps))
    return cells


def _refined(predicted: Iterable[_Cell], store: Store) -> list[_Cell]:
    """A second prediction, from the network that the first one led to."""
    first = [cell for cell in predicted if cell.role is Role.PREDICTED and _options(cell)["gamma"] == _CENTRAL]
    stored = examine_cells([cell.spec for cell in first], store)
    cells = []
    for cell in first:
        run = stored.get(cell.spec.key)
        point = _point(run, (_CENTRAL, _options(cell)["lam"])) if isinstance(run, Run) else None
        if point is not None and math.isfinite(point.lam):
            matched = point.status == "matched"
            cells.append(_fcl_cell(cell.baseline, Role.REFINED, _CENTRAL, point.lam, helps=cell.helps, matched=matched))
    return cells


def _fcl_cell(
    baseline: Spec,
    role: Role,
    gamma: float,
    lam: float,
    scale: str = "matched",
    *,
    helps: bool = False,
    matched: bool = False,
) -> _Cell:
    """The baseline's cell with FCL in place of cross-entropy."""
    options = {"gamma": gamma, "lam": float(f"{lam:.{_DIGITS}g}"), "scale": scale}
    recipe, protocol, fingerprint = recipe_of(baseline), baseline.protocol, baseline.training.get(FINGERPRINT)
    spec = spec_of(recipe, "fcl", options, seed=baseline.seed, protocol=protocol, fingerprint=fingerprint)
    return _Cell(baseline, spec, role, helps, matched)


def _options(cell: _Cell) -> dict[str, Any]:
    """gamma, lam and scale; those of cross-entropy are gamma = 0 on the paper's scale."""
    return {"gamma": 0.0, "lam": 0.0, "scale": "paper", **dict(cell.spec.objective_options)}


def _trial(cell: _Cell, run: Run) -> Trial:
    return Trial(
        baseline=cell.baseline.key,
        seed=cell.spec.seed,
        role=cell.role,
        **_options(cell),
        helps=cell.helps,
        matched=cell.matched,
        key=run.key,
        **measured_trial(run),
    )
