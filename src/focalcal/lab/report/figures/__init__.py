"""The views of a study, and figures of them for print, drawn without pyplot: the same bytes every time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from focalcal.lab.evidence.findings import study_families
from focalcal.lab.evidence.metric_names import shown_metrics
from focalcal.lab.report.figures.lanes import paired_differences, rankings
from focalcal.lab.report.figures.posterior import posterior_view
from focalcal.lab.report.figures.reliability_views import confidence_view, reliabilities, temperature_view
from focalcal.lab.report.figures.saliency_views import saliency_view
from focalcal.lab.report.figures.scaling import headline_view, scalings
from focalcal.lab.report.figures.surface_views import surface_views
from focalcal.lab.report.figures.training import gamma_view, trainings
from focalcal.lab.report.figures.view import View, as_file_name, save, unused

if TYPE_CHECKING:
    from focalcal.lab.evidence.evidence import Evidence
    from focalcal.lab.evidence.surface import Point
    from focalcal.lab.store import Run

__all__ = ["View", "figures", "save", "study_views"]

MOST_OBJECTIVES = 15  # panels or lines of a figure that can still be read
# Of the page's views, those that are drawn for print as well, by how the file's name begins.
_PRINTED = {
    "reliability": ("reliability", "whole"),
    "epochs": ("training", "test nll"),
    "posterior": ("posterior", ""),
    "ranking-ece": ("ranking", "ece"),
    "ranking-nll": ("ranking", "nll"),
    "differences-ece": ("differences", "ece"),
    "differences-nll": ("differences", "nll"),
}
_NO_CURVES: Mapping[str, Sequence[Point]] = MappingProxyType({})


def study_views(
    evidence: Evidence,
    *,
    operating_points: Mapping[str, Point] = MappingProxyType({}),
    operating_curves: Mapping[str, Sequence[Point]] = _NO_CURVES,
) -> list[View]:
    """Everything that the page of a study shows, setting by setting; the figures for print are drawn from it.

    Args:
        operating_points: (gamma, lam) by data set and network, chosen before the surface was seen.
        operating_curves: by setting, what `operating_curve` gives, to draw on its surfaces.
        evidence: what the runs say, of `gather`.

    Returns:
        The views, setting by setting.

    >>> from tempfile import TemporaryDirectory
    >>> from focalcal import Predictions
    >>> from focalcal.lab.evidence.evidence import gather
    >>> from focalcal.lab.store import Store
    >>> test = Predictions(probs=[[0.8, 0.2], [0.3, 0.7]], labels=[0, 0], split="test")
    >>> with TemporaryDirectory() as folder:
    ...     runs = [Store(folder).record(name="mine", predictions=test, seed=seed) for seed in (0, 1)]
    ...     evidence = gather(runs, title="Two runs")
    ...     print([view.kind for view in study_views(evidence)][:2])
    ['ranking', 'ranking']
    """
    metrics, families = shown_metrics(evidence), study_families(evidence)
    views: list[View] = []
    for setting in evidence.settings:
        views += rankings(evidence, setting, metrics)
        views += paired_differences(evidence, setting, families)
        views += reliabilities(evidence, setting)
        views += scalings(evidence, setting, metrics)
        views += trainings(evidence, setting)
        views += surface_views(evidence, setting, operating_points, operating_curves)
        views += [known] if (known := posterior_view(evidence, setting)) else []
    return views


def figures(
    evidence: Evidence, *, runs: Iterable[Run] = (), views: Sequence[View] | None = None, **options: Any
) -> dict[str, View]:
    """The views that are drawn for print, by a name that can be a file's: "reliability-digits-small_cnn".

    A stored file that cannot be read is told in a warning, and the figure made of it is left out.

    Args:
        runs: the stored runs of the evidence; without them there is no saliency.
        views: those of `study_views`, made with the other `options` unless they are given.
        evidence: what the runs say, of `gather`.
        options: those of `study_views`.

    Returns:
        The views by name, in the order of the page.

    >>> from tempfile import TemporaryDirectory
    >>> from focalcal import Predictions
    >>> from focalcal.lab.evidence.evidence import gather
    >>> from focalcal.lab.store import Store
    >>> test = Predictions(probs=[[0.8, 0.2], [0.3, 0.7]], labels=[0, 0], split="test")
    >>> with TemporaryDirectory() as folder:
    ...     runs = [Store(folder).record(name="mine", predictions=test, seed=seed) for seed in (0, 1)]
    ...     evidence = gather(runs, title="Two runs")
    ...     print(list(figures(evidence))[:2])
    ['reliability-custom-custom', 'ranking-ece-custom-custom']
    """
    given = {run.key: run for run in runs}
    made: dict[str, View] = {}

    def keep(view: View | None, *parts: str) -> None:
        if view is not None and view.rows:
            made[unused(as_file_name(*parts), made)] = view

    every = study_views(evidence, **options) if views is None else views
    for setting in evidence.settings:
        few = readable(evidence, setting)
        of_setting = [view for view in every if view.setting == setting]
        own = {(view.kind, view.choice): view.of(few) for view in of_setting if view.kind != "surface"}
        for name, place in _PRINTED.items():
            keep(own.get(place), name, setting)
        if whole := own.get(("reliability", "whole")):
            keep(confidence_view(whole), "confidence", setting)
        states = [own.get(("reliability", state)) for state in ("before", "after")]
        if states[0] and states[1]:
            keep(temperature_view(evidence, states[0], states[1]), "temperature", setting)
        headline = headline_view(evidence, setting, shown_metrics(evidence))
        keep(headline and headline.of(few), "headline", setting)
        keep(gamma_view(evidence, setting), "gammas", setting)
        for view in of_setting:
            if view.kind == "surface" and view.facts["metric"] in ("ece", "nll"):
                keep(view, "surface", view.facts["metric"], setting)
        for run in evidence.runs:
            if run.setting == setting and run.key in given:
                looked = _if_readable(given[run.key], run.objective)
                keep(looked, "saliency", setting, run.objective, str(run.seed))
    return made


def _if_readable(run: Run, objective: str) -> View | None:
    """Where a network looked, or a warning if the file is damaged: the other figures can still be shown."""
    try:
        return saliency_view(run, objective=objective)
    except (OSError, ValueError) as error:
        warnings.warn(f"there is no figure of the saliency of {run!r}: {error}", stacklevel=3)
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
