"""Every figure that the evidence of a study supports, what each offers, and how one is written to a folder."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from focalcal.core.atomic import write_atomically
from focalcal.lab.evidence.surface import Point, surface
from focalcal.lab.report.figures.confidence import confidence_histograms
from focalcal.lab.report.figures.epochs import epoch_curves
from focalcal.lab.report.figures.gammas import gamma_history
from focalcal.lab.report.figures.posterior import posterior_scatter
from focalcal.lab.report.figures.reliability import reliability_diagrams
from focalcal.lab.report.figures.saliency import saliency_maps
from focalcal.lab.report.figures.surface import SurfaceFigure
from focalcal.pages.style import rendered
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from focalcal.lab.evidence.evidence import Evidence
    from focalcal.lab.store import Run

MOST_OBJECTIVES = 15  # panels or lines of a figure that can still be read
SURFACES = ("ece", "nll")
FORMS = ("pdf", "png")
_LONGEST = 120  # letters of a file's name


class Display(Protocol):
    """Numbers that are complete when it is made: drawing them, or listing them, computes nothing."""

    @property
    def title(self) -> str:
        """What is shown, in a line."""

    @property
    def note(self) -> str:
        """What a reader must know about it, in a line or two."""

    def plot(self) -> Figure:
        """The figure."""

    def frame(self) -> Table:
        """The numbers behind it."""


def figures(
    evidence: Evidence,
    *,
    runs: Iterable[Run] = (),
    operating_points: Mapping[str, Point] | None = None,
    operating_curves: Mapping[str, Sequence[Point]] | None = None,
) -> dict[str, Display]:
    """The displays that apply, by a name that can be a file's: "reliability-digits-small_cnn".

    runs              the stored runs of the evidence; without them there is no known posterior and no saliency
    operating_points  (gamma, lam) by setting, chosen before the surface was seen
    operating_curves  by setting, what `analysis.operating_curve` gives, to draw on its surfaces

    A stored file that cannot be read is told in a warning, and the figure made of it is left out.
    """
    given = {run.key: run for run in runs}
    points, curves = operating_points or {}, operating_curves or {}
    made: dict[str, Display] = {}

    def keep(display: Display | None, *parts: str) -> None:
        if display is not None:
            made[unused(as_file_name(*parts), made)] = display

    for setting in evidence.settings:
        objectives, point = readable(evidence, setting), points.get(evidence.place(setting))
        keep(reliability_diagrams(evidence, setting, objectives=objectives), "reliability", setting)
        keep(reliability_diagrams(evidence, setting, objectives=objectives, temperature=True), "temperature", setting)
        keep(confidence_histograms(evidence, setting, objectives=objectives), "confidence", setting)
        keep(epoch_curves(evidence, setting, objectives=objectives), "epochs", setting)
        for objective in evidence.losses:
            for metric in SURFACES:
                grid = surface(
                    evidence, setting, metric, objective=objective, operating_point=point, curve=curves.get(setting, ())
                )
                keep(None if grid is None else SurfaceFigure(grid), "surface", metric, setting)
        keep(gamma_history(evidence, setting), "gammas", setting)
        own = {run.key: run.objective for run in evidence.runs if run.setting == setting and run.key in given}
        scatter = partial(posterior_scatter, [given[key] for key in own], own, objectives=objectives)
        keep(_if_readable(scatter, f"the known posterior of {setting}"), "posterior", setting)
        for key, objective in own.items():
            seed = str(given[key].settings["seed"])
            looked = partial(saliency_maps, given[key], objective=objective)
            keep(_if_readable(looked, f"the saliency of {given[key]!r}"), "saliency", setting, objective, seed)
    return made


def save(display: Display, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write folder/name.pdf and folder/name.png, each whole or not at all; the folder is made if it is not there."""
    if not name or name != os.path.basename(name) or name.startswith("."):
        raise ValueError(f"name must be that of a file, without folder and ending, got {name!r}; choose a plain one")
    figure, made = display.plot(), []
    Path(folder).mkdir(parents=True, exist_ok=True)
    for form in FORMS:
        made.append(Path(folder) / f"{name}.{form}")
        write_atomically(made[-1], rendered(figure, form))
    return made


def as_file_name(*parts: str) -> str:
    """Names from outside as that of a file, with letters, digits and a few signs; runs of others are a dash.

    >>> as_file_name("ece", "digits/small cnn")
    'ece-digits-small-cnn'
    """
    return "-".join(re.sub(r"[^A-Za-z0-9_.=]+", "-", part).strip("-.") or "unnamed" for part in parts)


def unused(name: str, taken: Iterable[str]) -> str:
    """The name, with a number if another has it: `a/b` and `a b` look alike in a file's name.

    >>> unused("a-b", ["A-b", "a-b-2"])
    'a-b-3'
    """
    wanted, number, others = name[:_LONGEST], 2, {other.lower() for other in taken}
    free = wanted
    while free.lower() in others:
        free, number = f"{wanted}-{number}", number + 1
    return free


def _if_readable(made: Callable[[], Display | None], what: str) -> Display | None:
    """The display, or a warning if a file it is made from is damaged: the other figures can still be shown."""
    try:
        return made()
    except (OSError, ValueError) as error:
        warnings.warn(f"there is no figure of {what}: {error}", stacklevel=3)
        return None


def readable(evidence: Evidence, setting: str) -> list[str]:
    """The setting's objectives; of more than MOST_OBJECTIVES, without those with most variants, which surfaces show."""
    families: dict[str, list[str]] = {}
    for run in evidence.runs:
        if run.setting == setting:
            family = families.setdefault(run.spec["objective"], [])
            if run.objective not in family:
                family.append(run.objective)
    kept = set(families)
    while sum(len(families[name]) for name in kept) > MOST_OBJECTIVES and kept:
        kept.remove(max(kept, key=lambda name: (len(families[name]), name)))
    return [label for name in families if name in kept for label in families[name]]
