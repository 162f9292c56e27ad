"""What the theory study found, in sentences that carry their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focalcal.reports.tables import number

if TYPE_CHECKING:
    from focalcal.theory.study import Study
    from focalcal.theory.study_tables import Columns


def findings(study: Study) -> list[tuple[str, str]]:
    """What each paragraph is about, and the paragraph, in the order of the study."""
    return [
        ("Accuracy", _solver(study)),
        ("Rate", _slopes(study.cases)),
        ("Constant", _constant(study.cases)),
        ("Calibration", _calibration(study.calibration_slopes)),
        ("Bounds", _bounds(study.distortion)),
        ("Predictions", _predictions(study.distortion)),
        ("Slopes at K = 100", _injected(study.injection)),
    ]


def _solver(study: Study) -> str:
    records = study.distortion, study.calibration
    stationarity, feasibility = (max(part[key].max() for part in records) for key in ("stationarity", "feasibility"))
    difference = np.concatenate([part["slsqp_difference"] for part in records])
    checked = (
        "The cross-check with SLSQP was left out."
        if np.isnan(difference).all()
        else f"SLSQP, an independent solver, differs from them by {number(np.nanmax(difference), digits=2)} at most."
    )
    return (
        f"In {len(study.distortion['lam'])} solves, and {len(study.calibration['lam'])} more over a population, the "
        f"worst relative residual is {number(stationarity, digits=2)} and the worst relative departure from the "
        f"simplex {number(feasibility, digits=2)}: the solutions are exact to rounding. {checked}"
    )


def _slopes(cases: Columns) -> str:
    late, whole = cases["slope_from_128"], cases["slope_all"]
    return (
        f"The distortion falls like 1/lam once lam is large: over lam >= 128 the median slope is {np.median(late):.3f} "
        f"(range {late.min():.3f} to {late.max():.3f}), over lam >= 1024 {np.median(cases['slope_from_1024']):.3f}. "
        f"Over all lam from 0.25 it is {np.median(whole):.3f} (range {whole.min():.3f} to {whole.max():.3f}): until "
        "2 lam far exceeds the focal curvature eta_k phi''(eta_k) of the classes that move, that curvature resists the "
        "anchor. It is about 1/eta_k where eta_k is small, so with many equal classes the asymptote begins late."
    )


def _constant(cases: Columns) -> str:
    error = 100 * cases["constant_error"]
    return (
        "At the largest lam, lam times the distortion equals the first-order constant to a median relative "
        f"error of {np.median(error):.3f} % (worst {error.max():.3f} %)."
    )


def _calibration(slopes: Columns) -> str:
    keys = ("gamma", "slope_from_128", "error_from_128", "slope_all")
    each = [
        f"{late:.3f} \N{PLUS-MINUS SIGN} {error:.3f} for gamma = {gamma:g} (over all lam {whole:.3f})"
        for gamma, late, error, whole in zip(*(slopes[key] for key in keys), strict=True)
    ]
    return f"The slope of the exact squared calibration error over lam >= 128 is {' and '.join(each)}."


def _bounds(distortion: Columns) -> str:
    size = distortion["distortion_l2"]
    promised = np.isfinite(distortion["interior_bound"])
    broken = sum(
        int((size > distortion[name]).sum())
        for name in ("global_bound", "entropy_bound", "log_classes_bound", "interior_bound", "slope_bound")
    )
    kept = "No solve breaks a bound" if broken == 0 else f"A bound is broken {broken} times"
    loose = np.median(distortion["global_bound"] / size)
    interior = np.median((distortion["interior_bound"] / size)[promised])
    sharp = np.median(distortion["slope_bound"] / size)
    return (
        f"{kept}. The global bound exceeds the distortion by a median factor of {loose:.0f}; the interior bound "
        f"applies to {promised.sum()} of {len(size)} solves and exceeds it by a median factor of {interior:.0f}; "
        f"the norm of the first-order bias, which is a bound for every lam and posterior, by {sharp:.2f}."
    )


def _predictions(distortion: Columns) -> str:
    def errors(lam: float) -> str:
        at = distortion["lam"] == lam
        first, newton = (100 * np.median(distortion[f"{name}_error"][at]) for name in ("first_order", "pre_asymptotic"))
        return f"{number(first, digits=2)} % against {number(newton, digits=2)} % at lam = {lam:g}"

    return (
        "Median errors, relative to the displacement, of the first-order formula against those of one Newton step from "
        f"the posterior: {errors(1.0)}, {errors(32.0)}, {errors(1024.0)}."
    )


def _injected(injection: Columns) -> str:
    def moved(kind: str) -> float:
        own = injection["kind"] == kind
        exact = injection["slope_exact"][own]
        return float(max(np.abs(injection[name][own] - exact).max() for name in ("slope_low", "slope_high")))

    exact = {window: injection["slope_exact"][injection["window"] == window] for window in ("from_16", "from_128")}
    ranges = ", ".join(
        f"{slopes.min():.3f} to {slopes.max():.3f} over lam >= {window[5:]}" for window, slopes in exact.items()
    )
    return (
        f"A residual of 3e-6 in the stationarity of exact solutions moves their slopes by "
        f"{number(moved('residual'), digits=2)} at most, an error of 3e-6 in q itself by up to "
        f"{number(moved('error'), digits=2)}. The exact slopes are shallow without either: {ranges}."
    )
