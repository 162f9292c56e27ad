"""Every name of `focalcal.theory`, a few cases each."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from golden.inputs import posteriors, row_weights, single_label, softmax
from golden.values import Case

from focalcal import theory

POINTS = [(0.0, 1.0), (0.5, 0.2), (1.0, 1.0), (3.0, 0.0), (3.0, 1.0), (5.0, 100.0)]  # (gamma, lam)
SOLVED = (1e-9, 1e-12)


def _solution(found: Any) -> dict[str, Any]:
    """What was found, but how many steps it took and what rounding left."""
    return {name: getattr(found, name) for name in ("q", "displacement", "multiplier", "status", "converged")}


def _of_posteriors(name: str, *arguments: str) -> dict[str, Any]:
    function, eta = getattr(theory, name), posteriors()
    points = [point for point in POINTS if name not in _POSITIVE or point[1] > 0]
    kept = {tuple(one for one, at in zip(point, ("gamma", "lam"), strict=True) if at in arguments) for point in points}
    return {str(one): function(eta, **dict(zip(arguments, one, strict=True))) for one in sorted(kept)}


_OF_POSTERIORS = {
    "first_order_bias": ("gamma", "lam"),
    "first_order_constant": ("gamma",),
    "asymptote_delay": ("gamma",),
    "pre_asymptotic_bias": ("gamma", "lam"),
    "global_bound": ("gamma", "lam"),
    "entropy_bound": ("lam",),
    "interior_threshold": ("gamma",),
    "interior_bound": ("gamma", "lam"),
    "slope_bound": ("gamma", "lam"),
    "keeps_decision": ("gamma", "lam"),
    "decision_gap": ("gamma", "lam"),
    "propriety_error": ("gamma", "lam"),
    "focal_potential": ("gamma",),
    "effective_temperature": ("gamma", "lam"),
    "small_distortion_temperature": ("gamma", "lam"),
}
_POSITIVE = ("first_order_bias", "global_bound", "entropy_bound", "interior_bound", "slope_bound", "lam_for")


def _minimise() -> dict[str, Any]:
    eta = posteriors()
    found = {str(point): _solution(theory.minimise(eta, gamma=point[0], lam=point[1])) for point in POINTS}
    found["each its own"] = _solution(theory.minimise(eta, gamma=np.arange(6.0), lam=np.arange(6.0)[::-1]))
    found["one"] = _solution(theory.minimise([0.7, 0.2, 0.1], gamma=3, lam=1))
    found["many classes"] = _solution(theory.minimise(posteriors(2, 100), gamma=3, lam=0.1))
    return found


def _minimise_l1() -> dict[str, Any]:
    eta = posteriors()
    found = {str(point): _solution(theory.minimise_l1(eta, gamma=point[0], lam=point[1])) for point in POINTS}
    found["anchor alone"] = theory.l1_anchor_minimisers([0.4, 0.4, 0.2])
    return found


def _recover() -> dict[str, Any]:
    logits = single_label(6, 4)[0]
    return {str((g, lam)): theory.recover(softmax(logits), gamma=g, lam=lam) for g, lam in POINTS}


def _potential() -> dict[str, Any]:
    u = np.array([1e-9, 0.01, 0.2, 0.5, 0.9, 1 - 1e-9])
    eta, q = posteriors(), softmax(single_label(6, 4)[0])
    found: dict[str, Any] = {
        f"{name} {gamma}": getattr(theory, name)(u, gamma)
        for name in ("phi", "phi_slope", "phi_curvature", "psi")
        for gamma in (0.0, 0.5, 1.0, 3.0)
    }
    found["potential at q"] = theory.focal_potential(eta, q, gamma=2.0)
    found["entropy"] = theory.entropy(eta)
    found["risk"] = [theory.conditional_risk(q, eta, gamma=g, lam=lam) for g, lam in POINTS]
    found["differences"] = [theory.decreasing_differences(u, gamma=g, lam=lam) for g, lam in POINTS]
    return found


def _constants() -> dict[str, Any]:
    gammas = (0.0, 0.5, 1.0, 3.0, 5.0)
    return {
        "interior": [theory.interior_constant(g) for g in gammas],
        "simplex": [theory.simplex_constant(g) for g in gammas],
        "simplex bound": [theory.simplex_bound(gamma=g, lam=2.0) for g in gammas],
        "log classes": [theory.log_classes_bound(k, lam=2.0) for k in (2, 10, 1000)],
        "degenerate": [theory.degenerate_posterior(k, gamma=g) for k, g in ((5, 1.0), (10, 3.0))],
    }


def _population(tolerance: float) -> dict[str, Any]:
    logits = single_label(60, 4)[0]
    eta, weights = softmax(logits / 3), row_weights(60) / row_weights(60).sum()
    probs = softmax(logits).round(1 if tolerance > 1e-6 else 9)
    probs /= probs.sum(1, keepdims=True)
    given: dict[str, Any] = {"probs": probs, "eta": eta, "weights": weights}
    kept = theory.best_score_map(**given, tolerance=tolerance)
    return {
        "cal2": theory.exact_cal2(**given, tolerance=tolerance),
        "chain": theory.calibration_chain(**given, tolerance=tolerance),
        "ece": theory.population_ece(**given, n_bins=10),
        "ece chain": theory.ece_chain(**given, edges=[0.0, 0.3, 0.7, 1.0]),
        "murphy": theory.murphy_population(**given, tolerance=tolerance),
        "headroom": theory.posthoc_headroom(**given, tolerance=tolerance),
        "map": kept,
        "mapped": kept([0.1, 0.5, 0.99]),
        "brier": theory.expected_brier(**given),
        "bounds": [theory.calibration_bounds(eta, weights, gamma=g, lam=lam) for g, lam in POINTS if lam > 0],
        "temperature": [theory.effective_temperature(eta, gamma=g, lam=lam, weights=weights) for g, lam in POINTS],
    }


def _gradients() -> dict[str, Any]:
    eps = np.array([1e-12, 1e-6, 1e-3, 0.1, 0.5])
    return {
        "pull": [theory.true_logit_gradients(eps, gamma=g, classes=k) for g, k in ((0.0, 2), (1.0, 10), (3.0, 100))],
        "range": [theory.l2_gradient_range(eps, classes=k) for k in (2, 10)],
        "exponents": [theory.scaling_exponents(gamma=g) for g in (0.0, 1.0, 3.0)],
        "share": [theory.anchor_share(eps, gamma=g, lam=2.0) for g in (0.5, 3.0)],
    }


def _matching() -> list[Any]:
    eta = posteriors(40, 4)
    return [
        theory.matching_lam(eta, temperature, gamma=gamma, weights=weights)
        for temperature in (0.9, 1.2, 1.6, 3.0)
        for gamma in (1.0, 3.0)
        for weights in (None, np.linspace(0.5, 1.5, 40) / 40)
    ]


def _lam_for() -> dict[str, Any]:
    return {
        "these": [theory.lam_for(t, posteriors(), gamma=g) for t in (0.01, 0.1) for g in (1.0, 3.0)],
        "all": [theory.lam_for(t, gamma=g, classes=10) for t in (0.01, 0.1) for g in (1.0, 3.0)],
    }


def _distortion() -> list[Any]:
    # Equal classes may change places, so only the value and the sorted posteriors are pinned.
    found = [theory.largest_distortion(k, gamma=g, lam=lam, starts=2) for k, g, lam in ((3, 3.0, 1.0), (10, 1.0, 0.1))]
    return [{"value": one.distortion, "posterior": np.sort(one.posterior)} for one in found]


def cases() -> dict[str, Case]:
    """By name."""
    found = {name: Case(partial(_of_posteriors, name, *arguments)) for name, arguments in _OF_POSTERIORS.items()}
    return found | {
        "minimise": Case(_minimise, *SOLVED),
        "minimise_l1": Case(_minimise_l1, *SOLVED),
        "recover": Case(_recover),
        "potential": Case(_potential, atol=0.0),
        "constants": Case(_constants),
        "population": Case(partial(_population, 1e-9)),
        "population, coarse": Case(partial(_population, 1e-3)),
        "gradients": Case(_gradients, 1e-9, 0.0),
        "matching_lam": Case(_matching, 1e-8, 1e-9),
        "lam_for": Case(_lam_for, 1e-8),
        "largest_distortion": Case(_distortion, 1e-6, 1e-6),
    }
