"""Where FCL's distortion would cancel the overconfidence of a cross-entropy network: points (gamma, lam)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from focalcal.lab.evidence.evidence import Evidence
from focalcal.lab.evidence.surface import Point, surface
from focalcal.lab.store import Run
from focalcal.posthoc.operating_point import operating_point

_RESAMPLES = 20  # of the interval, which is not shown


def operating_curves(evidence: Evidence, runs: Iterable[Run]) -> dict[str, tuple[Point, ...]]:
    """By setting with a grid over gamma and lam that has a run to tell from."""
    given = {run.key: run for run in runs}
    curves = {}
    for setting in evidence.settings:
        grid = surface(evidence, setting)
        if grid is not None:
            own = [given[run.key] for run in evidence.runs if run.setting == setting and run.key in given]
            curves[setting] = operating_curve(own, grid.gammas)
    return {setting: points for setting, points in curves.items() if points}


def operating_curve(runs: Iterable[Run], gammas: Sequence[float]) -> tuple[Point, ...]:
    """One point per gamma for which a lam cancels the overconfidence, by the validation rows of one run of a setting.

    The run is the lowest seed's with cross-entropy or, which has the same minimiser, FCL at gamma = 0; nothing without
    one, or without logits of rows that it was not trained on, enough of them to tell.
    """
    proper = [run for run in runs if _is_proper(run) and "val" in run.splits]
    wanted = [gamma for gamma in gammas if gamma > 0]
    for run in sorted(proper, key=lambda run: run.settings["seed"]):
        validation = run.predictions("val")
        if wanted and validation.kind == "logits" and not validation.multilabel:
            logits, labels = validation.logits, validation.labels
            try:
                point = operating_point(logits, labels, wanted[0], gammas=wanted, resamples=_RESAMPLES)
            except ValueError:  # too few rows, or no best temperature, as with labels that are all predicted
                return ()
            return tuple((match.gamma, match.lam) for match in point.matches if match.status == "matched")
    return ()


def _is_proper(run: Run) -> bool:
    objective, options = run.settings["objective"], run.settings["objective_options"]
    return bool(objective == "ce" or (objective == "fcl" and options.get("gamma") == 0))
