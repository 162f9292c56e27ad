"""One cell of a study's page: what its scripts read of the runs of a setting and an objective, seeds side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from focalcal.lab.evidence.evidence import RunEvidence
from focalcal.metrics.reliability import Reliability

SPLITS = ("train", "val", "test")
CURVES = ("loss", "error", "nll", "brier", "ece", "adaptive_ece", "smooth_ece")
_POINTS = 250  # of the cloud of a known posterior


def cell_data(runs: Sequence[RunEvidence], every: int, every_bins: int, *, classes: bool) -> dict[str, Any]:
    """Of the runs of one cell by seed; one epoch in `every`, and one diagram in `every_bins` of those of the epochs."""
    return {
        "seeds": [run.seed for run in runs],
        "keys": [run.key for run in runs],
        "splits": _splits(runs),
        "rows": _intervals(runs),
        "scaled": _scaled(runs),
        "bins": {
            state: _pooled(diagrams)
            for state, diagrams in (
                ("whole", [run.reliability for run in runs]),
                ("before", [run.optimum.reliability_before for run in runs if run.optimum]),
                ("after", [run.optimum.reliability_after for run in runs if run.optimum]),
            )
            if any(diagram is not None for diagram in diagrams)
        },
        "classes": _classes(runs) if classes else [],
        "epoch_bins": _epoch_bins(runs, every_bins),
        "epochs": _curves(runs, every),
        "posterior": _posterior(runs),
    }


def _splits(runs: Sequence[RunEvidence]) -> dict[str, dict[str, list[float | None]]]:
    """By split and metric, a value per seed; None where a run has none."""
    splits: dict[str, dict[str, list[float | None]]] = {}
    for split in dict.fromkeys(split for run in runs for split in run.metrics):
        names = dict.fromkeys(name for run in runs for name in run.metrics.get(split, {}))
        splits[split] = {name: [run.metrics.get(split, {}).get(name) for run in runs] for name in names}
    return splits


def _intervals(runs: Sequence[RunEvidence]) -> dict[str, dict[str, float | None]]:
    """The ends of the intervals over rows, and what chance gives, averaged over the seeds that have them.

    Seeds share their test rows, so that the average of the ends is no narrower than the interval of the mean.
    """
    known = [run.details.intervals for run in runs if run.details is not None]
    means = {}
    for name in dict.fromkeys(name for intervals in known for name in intervals):
        several = [intervals[name] for intervals in known if name in intervals]
        chances = [interval.chance for interval in several if interval.chance is not None]
        means[name] = {
            "low": _short(float(np.mean([interval.low for interval in several]))),
            "high": _short(float(np.mean([interval.high for interval in several]))),
            "chance": _short(float(np.mean(chances))) if chances else None,
        }
    return means


def _scaled(runs: Sequence[RunEvidence]) -> dict[str, Any] | None:
    """Before and after temperature scaling by metric and seed; without a finite optimum there is no after."""
    fitted, usable = [run.scaled for run in runs], [run.optimum for run in runs]
    if not any(fitted):
        return None
    names = next(list(scaling.before) for scaling in fitted if scaling is not None)
    return {
        "temperature": [scaling and scaling.temperature for scaling in fitted],
        "bounded": [scaling is not None and scaling.at_bound for scaling in fitted],
        "before": {name: [scaling and scaling.before[name] for scaling in fitted] for name in names},
        "after": {name: [scaling and scaling.after[name] for scaling in usable] for name in names},
    }


def _pooled(diagrams: Iterable[Reliability | None]) -> dict[str, Any]:
    """Rows, summed confidence and right predictions of each bin, over the seeds; `seeds` says of how many."""
    known = [diagram for diagram in diagrams if diagram is not None]
    return {
        "seeds": len(known),
        "count": np.sum([diagram.count for diagram in known], axis=0).astype(int),
        "confidence": _digits(np.sum([_sums(diagram, diagram.confidence) for diagram in known], axis=0)),
        "correct": np.rint(np.sum([_sums(diagram, diagram.accuracy) for diagram in known], axis=0)).astype(int),
    }


def _sums(diagram: Reliability, means: np.ndarray) -> np.ndarray:
    return diagram.count * np.where(diagram.count > 0, means, 0.0)


def _classes(runs: Sequence[RunEvidence]) -> list[dict[str, Any]]:
    known = [run.details.classes for run in runs if run.details is not None]
    counts = {len(classes) for classes in known}
    return [_pooled(several) for several in zip(*known, strict=True)] if len(counts) == 1 else []


def _epoch_bins(runs: Sequence[RunEvidence], every: int) -> dict[str, Any] | None:
    """Epoch by epoch what `_pooled` gives, of the epochs that every seed has; None where they were not stored."""
    stored = [{int(epoch["epoch"]): epoch["bins"] for epoch in run.epochs if epoch.get("bins")} for run in runs]
    common = sorted(set.intersection(*map(set, stored))) if stored and all(stored) else []
    if not common:
        return None
    kept = [epoch for at, epoch in enumerate(common) if at % every == 0 or at == len(common) - 1]

    def total(name: str) -> list[list[float]]:
        return [_digits(np.sum([epochs[epoch][name] for epochs in stored], axis=0)) for epoch in kept]

    return {"seeds": len(runs), "epoch": kept} | {name: total(name) for name in ("count", "confidence", "correct")}


def _curves(runs: Sequence[RunEvidence], every: int) -> dict[str, list[Any]]:
    """The epochs that any seed has, then `test nll` and the like: a list per seed, five digits of it."""
    numbered = sorted({int(epoch.get("epoch", at)) for run in runs for at, epoch in enumerate(run.epochs, 1)})
    kept = [epoch for at, epoch in enumerate(numbered) if at % every == 0 or at == len(numbered) - 1]
    by_epoch = [{int(epoch.get("epoch", at)): epoch for at, epoch in enumerate(run.epochs, 1)} for run in runs]
    columns: dict[str, list[Any]] = {"epoch": kept}
    for split in SPLITS:
        for metric in CURVES:
            values = [[_measured(epochs.get(epoch, {}).get(split), metric) for epoch in kept] for epochs in by_epoch]
            if any(value is not None for seed in values for value in seed):
                columns[f"{split} {metric}"] = values
    return columns


def _measured(values: Any, metric: str) -> float | None:
    value = values.get(metric) if isinstance(values, Mapping) else None
    return _short(value) if isinstance(value, float) else value


def _posterior(runs: Sequence[RunEvidence]) -> dict[str, Any] | None:
    """The lowest seed's cloud and means; distances averaged over the seeds."""
    panels = [run.details.posterior for run in runs if run.details is not None and run.details.posterior is not None]
    if not panels:
        return None
    first = panels[0]
    at = first.count > 0
    step = max(1, math.ceil(len(first.points) / _POINTS))
    return {
        "seed": first.seed,
        "points": [_digits(column, 4) for column in first.points[::step].T],
        **{name: _digits(getattr(first, name)[at]) for name in ("eta", "p", "low", "high", "q")},
        "to_truth": [panel.to_truth for panel in panels],
        "to_theory": [panel.to_theory for panel in panels],
    }


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _digits(values: np.ndarray, digits: int = 5) -> list[float]:
    listed = np.asarray(values, float).tolist()
    return [value if math.isnan(value) else float(f"{value:.{digits}g}") for value in listed]
