"""What a page shows of a run beyond its metrics: how well they are known, single classes, and the known posterior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from focalcal.analysis.posterior_panel import PosteriorPanel, posterior_panel
from focalcal.metrics import brier, ece, error, nll
from focalcal.metrics.bootstrap import Interval, bootstrap
from focalcal.metrics.reliability import Reliability, reliability

if TYPE_CHECKING:
    from focalcal.predictions import Predictions

RESAMPLES = 200  # of rows
MOST_CLASSES = 20  # of which each has a diagram
_MEASURED = {"error": error, "ece": ece, "nll": nll, "brier": brier}  # those that take milliseconds


@dataclass(frozen=True, eq=False)
class RunDetails:
    """Of the test split, as it is.

    intervals  by metric: 95 % over other rows, and for calibration errors what chance alone gives
    classes    p_k against how often k is right, a diagram per class; empty if there are more than MOST_CLASSES
    posterior  None where the true posterior is not known
    """

    intervals: dict[str, Interval]
    classes: tuple[Reliability, ...]
    posterior: PosteriorPanel | None


def run_details(test: Predictions, spec: Mapping[str, Any], label: str) -> RunDetails | None:
    """Of the run with that spec, whose objective is called `label`; None for several labels per row."""
    if test.multilabel:
        return None
    probs = test.probs
    classes = probs.shape[1]
    known = None
    if test.posterior is not None:
        known = posterior_panel(label, int(spec["seed"]), test, spec["objective"], dict(spec["objective_options"]))
    return RunDetails(
        intervals=bootstrap(_MEASURED, probs, test.labels, resamples=RESAMPLES, seed=0),
        classes=tuple(
            reliability(probs, test.labels, class_index=k) for k in range(classes if classes <= MOST_CLASSES else 0)
        ),
        posterior=known,
    )
