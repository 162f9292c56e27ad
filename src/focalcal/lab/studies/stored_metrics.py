"""Any metric of what stored runs have predicted, as it is or calibrated: no network, no weights, no training."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from focalcal.core.checks import ProbabilityWarning, unknown_name
from focalcal.lab.store import Run
from focalcal.metrics import METRICS
from focalcal.posthoc import CALIBRATORS, CalibrationWarning, headroom
from focalcal.predictions import Predictions

HEADROOM = ("headroom", "refinement")  # in nats: what the best map of the scores gains, and what is left then


def stored_metrics(
    run: Run, metrics: Sequence[str], *, split: str = "test", calibrator: str | None = None, keep: str | None = None
) -> dict[str, float]:
    """The metrics of a run's predictions for a split, by name: of METRICS, "headroom" or "refinement".

    calibrator  of CALIBRATORS: fitted on the validation rows of the run, and what is measured is what it makes
    keep        "last", "nll", "error" or "refined": of the epoch that this rule keeps, whatever the run has kept
    """
    for name in metrics:
        if name not in METRICS and name not in HEADROOM:
            raise ValueError(unknown_name("a metric", name, (*METRICS, *HEADROOM)))
    if calibrator is not None and calibrator not in CALIBRATORS:
        raise ValueError(unknown_name("a calibrator", calibrator, CALIBRATORS))

    def rows(name: str) -> Predictions:
        found = run.predictions(name) if keep is None else run.kept(keep, name)
        if found.multilabel:
            raise ValueError(f"run {run.key[:12]} must have one label per example to be measured so, got several")
        return found

    measured, values = rows(split), dict[str, float]()
    with warnings.catch_warnings():  # of a table with many runs
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", ProbabilityWarning)
        if calibrator is not None:
            probs = CALIBRATORS[calibrator]().fit(rows("val")).predict_proba(measured)
            measured = Predictions(probs=probs, labels=measured.labels, split=split, posterior=measured.posterior)
        if any(name in HEADROOM for name in metrics):
            parts = headroom(measured)
            values = {"headroom": parts.calibration.mean, "refinement": parts.refinement}
        return {name: values[name] if name in values else float(METRICS[name](measured)) for name in metrics}
