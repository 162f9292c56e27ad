"""What a page shows of a run beyond its metrics: how well they are known, single classes, and the known posterior."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.metrics import brier, ece, error, nll
from focalcal.metrics.bootstrap import Interval, bootstrap
from focalcal.metrics.reliability import Reliability, reliability
from focalcal.theory import minimise

if TYPE_CHECKING:
    from focalcal.predictions import Predictions

RESAMPLES = 200  # of rows
MOST_CLASSES = 20  # of which each has a diagram
BINS = 20  # of the true probabilities
POINTS = 1500  # of the cloud of a known posterior, taken at even steps
_MEASURED = {"error": error, "ece": ece, "nll": nll, "brier": brier}  # those that take milliseconds


@dataclass(frozen=True, eq=False)
class RunDetails:
    """Of the test split, as it is.

    intervals  by metric: 95 % over other rows, and for calibration errors what chance alone gives
    classes    p_k against how often k is right, a diagram per class; empty if there are more than MOST_CLASSES
    posterior  of `known_posterior`, None where the truth is not known
    """

    intervals: dict[str, Interval]
    classes: tuple[Reliability, ...]
    posterior: dict[str, Any] | None


def run_details(test: Predictions, spec: Mapping[str, Any]) -> RunDetails | None:
    """Of the run with that spec; None for several labels per row."""
    if test.multilabel:
        return None
    probs = test.probs
    classes = probs.shape[1]
    known = test.posterior is not None
    return RunDetails(
        intervals=bootstrap(_MEASURED, probs, test.labels, resamples=RESAMPLES, seed=0),
        classes=tuple(
            reliability(probs, test.labels, class_index=k) for k in range(classes if classes <= MOST_CLASSES else 0)
        ),
        posterior=known_posterior(test, spec["objective"], dict(spec["objective_options"])) if known else None,
    )


def best_probabilities(objective: str, options: dict[str, Any], eta: np.ndarray) -> np.ndarray | None:
    """q* of each posterior, (N, K), or None for an objective whose minimiser is not known here; NaN where not found.

    Label smoothing is a posterior of its own; the scale of a loss does not matter.
    """
    if smoothing := float(options.get("label_smoothing", 0.0)):
        eta = (1 - smoothing) * eta + smoothing / eta.shape[1]
    if objective in ("ce", "brier"):
        return eta
    if objective not in ("focal", "fcl"):
        return None
    different, inverse = np.unique(eta, axis=0, return_inverse=True)
    solution = minimise(different, gamma=float(options["gamma"]), lam=float(options.get("lam", 0.0)))
    q = np.where(np.asarray(solution.converged)[:, None], solution.q, math.nan)
    rows: np.ndarray = q[inverse.ravel()]
    return rows


def known_posterior(predictions: Predictions, objective: str, options: dict[str, Any]) -> dict[str, Any]:
    """Predicted against true probabilities of predictions that hold the truth, beside q* of the theory.

    An entry is a row's class k, with eta_k, p_k and q*_k.

    points            (points, 3): eta_k, p_k and q*_k of some of the entries
    eta, p, q         (bins,): means over the `count` entries with eta_k in (lower, upper]; q is NaN without a theory
    low, high         (bins,): the 10th and 90th percentile of p_k
    to_truth          mean total variation |p - eta|_1 / 2 over all rows
    to_theory         mean |p - q*|_1 / 2, NaN without a theory
    """
    assert predictions.posterior is not None
    eta = predictions.posterior.astype(np.float64)
    eta = eta / eta.sum(1, keepdims=True)
    p = predictions.probs.astype(np.float64)
    q = best_probabilities(objective, options, eta)
    theory = np.full_like(eta, math.nan) if q is None else q
    entries = np.stack([eta.ravel(), p.ravel(), theory.ravel()], 1)
    edges = np.linspace(0, 1, BINS + 1)
    at = np.clip(np.searchsorted(edges, entries[:, 0], side="left") - 1, 0, BINS - 1)
    members = [entries[at == place] for place in range(BINS)]
    means = np.array([own.mean(0) if len(own) else [math.nan] * 3 for own in members])
    spread = np.array([np.quantile(own[:, 1], (0.1, 0.9)) if len(own) else [math.nan] * 2 for own in members])
    return {
        "lower": edges[:-1],
        "upper": edges[1:],
        "count": np.array([len(own) for own in members]),
        **dict(zip(("eta", "p", "q"), means.T, strict=True)),
        **dict(zip(("low", "high"), spread.T, strict=True)),
        "points": entries[:: max(1, math.ceil(len(entries) / POINTS))],
        "to_truth": float(np.abs(p - eta).sum(1).mean() / 2),
        "to_theory": float(np.abs(p - theory).sum(1).mean() / 2),
    }
