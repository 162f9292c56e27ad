"""Every figure that the evidence of a study supports."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from focalcal.analysis.surface import Point, surface
from focalcal.reports.figures.confidence import confidence_histograms
from focalcal.reports.figures.display import Display
from focalcal.reports.figures.distortion import Distortion
from focalcal.reports.figures.epochs import epoch_curves
from focalcal.reports.figures.gammas import gamma_history
from focalcal.reports.figures.posterior import posterior_scatter
from focalcal.reports.figures.reliability import reliability_diagrams
from focalcal.reports.figures.saliency import saliency_maps
from focalcal.reports.figures.surface import SurfaceFigure
from focalcal.reports.file_names import as_file_name, unused

if TYPE_CHECKING:
    from focalcal.analysis.evidence import Evidence
    from focalcal.results import Run
    from focalcal.theory.study import TheoryStudy

MOST_OBJECTIVES = 15  # panels or lines of a figure that can still be read
SURFACES = ("ece", "nll")


def figures(
    evidence: Evidence,
    *,
    runs: Iterable[Run] = (),
    operating_points: Mapping[str, Point] | None = None,
    operating_curves: Mapping[str, Sequence[Point]] | None = None,
    theory: TheoryStudy | None = None,
) -> dict[str, Display]:
    """The displays that apply, by a name that can be a file's: "reliability-digits-small_cnn".

    runs              the stored runs of the evidence; without them there is no known posterior and no saliency
    operating_points  (gamma, lam) by setting, chosen before the surface was seen
    operating_curves  by setting, what `analysis.operating_curve` gives, to draw on its surfaces
    theory            a theory study, whose figure is then among them

    A stored file that cannot be read is told in a warning, and the figure made of it is left out.
    """
    given = {run.key: run for run in runs}
    points, curves = operating_points or {}, operating_curves or {}
    made: dict[str, Display] = {}

    def keep(display: Display | None, *parts: str) -> None:
        if display is not None:
            made[unused(as_file_name(*parts), made)] = display

    for setting in evidence.settings:
        objectives, point = readable(evidence, setting), points.get(setting)
        keep(reliability_diagrams(evidence, setting, objectives=objectives), "reliability", setting)
        keep(reliability_diagrams(evidence, setting, objectives=objectives, temperature=True), "temperature", setting)
        keep(confidence_histograms(evidence, setting, objectives=objectives), "confidence", setting)
        keep(epoch_curves(evidence, setting, objectives=objectives), "epochs", setting)
        for objective in ("fcl", "multilabel_fcl"):
            for metric in SURFACES:
                found = surface(
                    evidence, setting, metric, objective=objective, operating_point=point, curve=curves.get(setting, ())
                )
                keep(None if found is None else SurfaceFigure(found), "surface", metric, setting)
        keep(gamma_history(evidence, setting), "gammas", setting)
        own = {run.key: run.objective for run in evidence.runs if run.setting == setting and run.key in given}
        told = partial(posterior_scatter, [given[key] for key in own], own, objectives=objectives)
        keep(_if_readable(told, f"the known posterior of {setting}"), "posterior", setting)
        for key, objective in own.items():
            seed = str(given[key].settings["seed"])
            looked = partial(saliency_maps, given[key], objective=objective)
            keep(_if_readable(looked, f"the saliency of {given[key]!r}"), "saliency", setting, objective, seed)
    keep(None if theory is None else Distortion(theory), "distortion")
    return made


def _if_readable(made: Callable[[], Display | None], what: str) -> Display | None:
    """The display, or a warning if a file it is made from is damaged: the other figures can still be shown."""
    try:
        return made()
    except (OSError, ValueError) as error:
        warnings.warn(f"there is no figure of {what}: {error}", stacklevel=3)
        return None


def readable(evidence: Evidence, setting: str, most: int = MOST_OBJECTIVES) -> list[str]:
    """The setting's objectives; of more than `most`, without those with most variants, which surfaces show."""
    families: dict[str, list[str]] = {}
    for run in evidence.runs:
        if run.setting == setting:
            family = families.setdefault(run.spec["objective"], [])
            if run.objective not in family:
                family.append(run.objective)
    kept = set(families)
    while sum(len(families[name]) for name in kept) > most and kept:
        kept.remove(max(kept, key=lambda name: (len(families[name]), name)))
    return [label for name in families if name in kept for label in families[name]]
