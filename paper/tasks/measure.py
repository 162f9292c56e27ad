"""One record per objective, length, task, seed and kept epoch: what test rows say, as it is, with T, and calibrated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from focalcal.core.numerics import log_softmax
from focalcal.core.rng import numpy_stream
from focalcal.lab.store import Run
from focalcal.lab.studies.tuning.judgement import scores_as_logits
from focalcal.metrics import aurc, brier, debiased_ece, smooth_ece
from focalcal.posthoc import calibrate
from focalcal.predictions import Predictions
from paper.operating_point.trial import label_temperature
from paper.record import origin

SAMPLES = 8  # of the test rows, with replacement
UNIT = 1e-4  # of the labels' entropy: in which the NLL of a sample differs from that of all rows
CALIBRATED_BY = ("temperature", "ensemble", "vector", "beta")
SECONDARY = {"brier": brier, "debiased_ece": debiased_ece, "smooth_ece": smooth_ece}


def measured(task: str, run: Run, rule: str, *, calibrated: bool) -> dict[str, Any]:
    """What the epoch that a rule keeps says about validation and test rows."""
    held_out, test = run.kept(rule, "val"), run.kept(rule, "test")
    kept = run.record["kept"][rule]
    temperature = kept["temperature"] or 1.0
    logits = scores_as_logits(test)
    samples = resamples(task, run.settings["seed"], test)
    row: dict[str, Any] = {
        "epoch": kept["epoch"],
        "rows": len(test.labels),
        "entropy": entropy(test),
        "error": float((logits.argmax(1) != test.labels).mean()),
        "aurc": float(aurc(test.probs, test.labels)),
        "temperature": kept["temperature"],
        "test_temperature": _finite(label_temperature(test)),
    }
    for name, scale in (("", 1.0), ("scaled_", temperature)):
        row |= outcomes(name, log_softmax(logits / scale), test, samples)
    if calibrated:
        calibrator = calibrate(scores_as_logits(held_out), held_out.labels, candidates=CALIBRATED_BY)
        with np.errstate(divide="ignore"):
            log_p = np.log(calibrator.predict_proba(logits))
        assert calibrator.choice_ is not None
        row |= {"calibrator": calibrator.choice_.chosen} | outcomes("calibrated_", log_p, test, samples)
    return row | origin(run)


def outcomes(prefix: str, log_p: Any, test: Predictions, samples: Any) -> dict[str, Any]:
    """NLL of all rows and of the samples, and the secondary outcomes."""
    losses = -log_p[np.arange(len(log_p)), test.labels]
    nll = float(losses.mean())
    differences = (samples @ losses / len(losses) - nll) / entropy(test) / UNIT
    row: dict[str, Any] = {
        f"{prefix}nll": nll,
        f"{prefix}samples": np.clip(differences.round(), -32768, 32767).tolist(),
    }
    if prefix == "calibrated_":
        return row
    probs = np.exp(log_p)
    row |= {prefix + name: float(metric(probs, test.labels)) for name, metric in SECONDARY.items()}
    if test.posterior is not None:
        row[f"{prefix}distance"] = float(np.abs(probs - test.posterior).sum(1).mean() / 2)
    return row


def resamples(task: str, seed: int, test: Predictions) -> Any:
    """(SAMPLES, N): how often each test row is in a sample, the same rows for every objective."""
    rows = len(test.labels)
    return numpy_stream(int(seed), "paper.tasks", task).multinomial(rows, np.full(rows, 1 / rows), size=SAMPLES)


def entropy(test: Predictions) -> float:
    """Of the frequencies of the test labels, in nats."""
    shares = np.bincount(test.labels) / len(test.labels)
    return float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
