"""A study's numbers as the page's scripts read them: plain values, with names where JSON has no number."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from focalcal.analysis.evidence import Evidence, RunEvidence
from focalcal.metrics.reliability import Reliability

_SPLITS = ("train", "val", "test")
_CURVES = ("loss", "error", "nll", "brier", "ece", "adaptive_ece", "smooth_ece")
MOST_EPOCH_VALUES = 300_000  # about 3 MB
LEGEND_AT_MOST = 20  # objectives: more, a grid's, would leave no room for the lines
_BINS = ("lower", "upper", "count", "confidence", "accuracy", "low", "high")


def page_data(evidence: Evidence) -> dict[str, Any]:
    """{"settings", "objectives", "runs": [...]}; a run names its setting and objective by their place.

    "every_epochs" is k where one epoch in k is given, the first and the last among them, so that the page stays small.
    """
    settings, objectives = list(evidence.settings), list(evidence.objectives)
    every = _every(evidence)
    return {
        "title": evidence.title,
        "every_epochs": every,
        "legend_at_most": LEGEND_AT_MOST,
        "settings": settings,
        "objectives": objectives,
        "runs": [
            {
                "key": run.key,
                "setting": settings.index(run.setting),
                "objective": objectives.index(run.objective),
                "seed": run.seed,
                "metrics": run.metrics,
                "temperature": None if run.scaled is None else run.scaled.temperature,
                "at_bound": run.scaled is not None and run.scaled.at_bound,
                "scaled": None if run.scaled is None else {"before": run.scaled.before, "after": run.scaled.after},
                "reliability": _diagrams(run),
                "epochs": _curves(run, every),
                "spec": run.spec,
                "provenance": run.record.get("provenance", {}),
            }
            for run in evidence.runs
        ],
    }


def inert_json(data: Any) -> str:
    """JSON that cannot end the script element it stands in; NaN and the infinities are the strings JavaScript reads.

    >>> inert_json({"</script>": float("nan")})
    '{"\\\\u003c/script>":"NaN"}'
    """
    return json.dumps(_plain(data), allow_nan=False, separators=(",", ":"), default=str).replace("<", "\\u003c")


def number_or_name(value: float) -> float | str:
    """The number, or what JavaScript calls it where JSON has none."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _diagrams(run: RunEvidence) -> dict[str, dict[str, list[float]]]:
    """By state: "whole" as trained, on all test rows; "before" and "after" temperature, on the rows held out."""
    found = {"whole": run.reliability}
    if run.scaled is not None:
        found |= {"before": run.scaled.reliability_before, "after": run.scaled.reliability_after}
    return {state: _bins(one) for state, one in found.items() if one is not None}


def _bins(diagram: Reliability) -> dict[str, list[float]]:
    return {name: getattr(diagram, name).tolist() for name in _BINS}


def _every(evidence: Evidence) -> int:
    """Every how many epochs can be given without more values than a page should hold."""
    values = len(_SPLITS) * len(_CURVES) * sum(len(run.epochs) for run in evidence.runs)
    return max(1, math.ceil(values / MOST_EPOCH_VALUES))


def _curves(run: RunEvidence, every: int) -> dict[str, list[Any]]:
    """Columns: the epoch, then `test nll` and the like, six digits of it, where an epoch at least has it."""
    numbered = list(enumerate(run.epochs, 1))
    kept = [(at, one) for at, one in numbered if (at - 1) % every == 0 or at == len(numbered)]
    columns: dict[str, list[Any]] = {"epoch": [one.get("epoch", at) for at, one in kept]}
    for split in _SPLITS:
        for metric in _CURVES:
            values = [_measured(one.get(split), metric) for _, one in kept]
            if any(value is not None for value in values):
                columns[f"{split} {metric}"] = values
    return columns


def _measured(values: Any, metric: str) -> Any:
    value = values.get(metric) if isinstance(values, Mapping) else None
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return number_or_name(value) if isinstance(value, float) else value
