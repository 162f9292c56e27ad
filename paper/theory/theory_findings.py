"""What the theory study found, in sentences that carry their numbers and depend on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focalcal.pages.tables import number
from focalcal.theory.minimiser import TOLERANCE
from paper.theory.theory_tables import injection_note, slope_text

if TYPE_CHECKING:
    from paper.theory.frames import Columns
    from paper.theory.theory_study import TheoryStudy

_DISTORTION_BOUNDS = ("global_bound", "entropy_bound", "log_classes_bound", "interior_bound", "slope_bound")
_CALIBRATION_BOUNDS = ("potential_bound", "log_classes_bound", "interior_bound", "slope_bound")


def findings(study: TheoryStudy) -> list[tuple[str, str]]:
    """What each paragraph is about, and the paragraph, in the order of the study."""
    return [
        ("Accuracy", _solver(study)),
        ("Rate", f"{_slopes(study)} {_delay(study)}"),
        ("Constant", _constant(study)),
        ("Calibration", _calibration(study.calibration_slopes)),
        ("Bounds", _bounds(study)),
        ("Predictions", _predictions(study.distortion)),
        ("Slopes at K = 100", injection_note(study)),
    ]


def _solver(study: TheoryStudy) -> str:
    records = study.distortion, study.states
    stationarity, feasibility = (
        float(np.concatenate([part[key] for part in records]).max()) for key in ("stationarity", "feasibility")
    )
    weights, states = len(study.calibration["lam"]), len(study.population)
    verdict = (
        f"the solutions are exact to rounding, as neither exceeds {TOLERANCE:g}"
        if stationarity <= TOLERANCE and feasibility <= TOLERANCE
        else f"not all are within {TOLERANCE:g}, so the solutions are not exact to rounding"
    )
    return (
        f"In {len(study.distortion['lam'])} solves, and {weights} x {states} more over a population of {states} "
        f"states, the worst relative residual is {_figure(stationarity)} and the worst relative departure "
        f"from the simplex {_figure(feasibility)}: {verdict}. {_cross_check(records)}"
    )


def _figure(value: float) -> str:
    return "unknown" if np.isnan(value) else number(value, digits=2)


def _cross_check(records: tuple[Columns, ...]) -> str:
    difference = np.concatenate([part["slsqp_difference"] for part in records])
    checked = difference[~np.isnan(difference)]
    if len(checked) == 0:
        return "The cross-check with SLSQP was left out."
    of = "" if len(checked) == len(difference) else f", run on {len(checked)} of {len(difference)} problems"
    return f"SLSQP, an independent solver{of}, differs from them by {number(checked.max(), digits=2)} at most."


def _slopes(study: TheoryStudy) -> str:
    cases = study.cases
    late, latest, whole = cases["slope_from_128"], cases["slope_from_1024"], cases["slope_all"]
    least = study.distortion["lam"].min()
    claim = (
        "The distortion falls like 1/lam once lam is large"
        if abs(np.median(latest) + 1) < 0.01
        else "The distortion does not yet fall like 1/lam at the lam of the study"
    )
    return (
        f"{claim}: over lam >= 128 the median slope is {np.median(late):.3f} "
        f"(range {late.min():.3f} to {late.max():.3f}), over lam >= 1024 {np.median(latest):.3f}. "
        f"Over all lam from {least:g} it is {np.median(whole):.3f} (range {whole.min():.3f} to {whole.max():.3f})."
    )


def _delay(study: TheoryStudy) -> str:
    """What makes the slopes shallow; the case of the largest kappa beside that of the smallest eta."""
    cases = study.cases
    kappa = cases["delay"]
    slowest, smallest = cases["posterior"][kappa.argmax()], cases["posterior"][cases["eta_min"].argmin()]

    def described(name: str) -> str:
        own = cases["posterior"] == name
        slopes = cases["slope_from_128"][own]
        return (
            f"{name} (smallest eta {number(cases['eta_min'][own][0], digits=2)}) has kappa from {kappa[own].min():.0f} "
            f"to {kappa[own].max():.0f} and slopes from {slopes.min():.3f} to {slopes.max():.3f} over lam >= 128"
        )

    examples = described(slowest)
    if smallest != slowest:
        examples = f"not the smallest eta: {examples}, but {described(smallest)}"
    else:
        examples = f"largest where eta is smallest: {examples}"
    return (
        "The largest |q*_k - eta_k| falls short of its limit C / lam by about kappa / (2 lam) of itself, kappa = "
        "c_m - mean(c b) / b_m with the focal curvature c_k = eta_k phi''(eta_k), which is about 1/eta_k for small "
        "eta_k, the first-order bias b and the class m of its largest entry. So what delays the asymptote is the "
        f"curvature of the classes that carry the distortion, {examples}."
    )


def _constant(study: TheoryStudy) -> str:
    error = 100 * study.cases["constant_error"]
    return (
        f"At the largest lam, {study.distortion['lam'].max():g}, lam times the distortion differs from the first-order "
        f"constant by a median relative error of {np.median(error):.3f} % (worst {error.max():.3f} %)."
    )


def _calibration(slopes: Columns) -> str:
    keys = ("gamma", "slope_from_128", "error_from_128", "slope_all")
    each = [
        f"{slope_text(late, error)} for gamma = {gamma:g} (over all lam {whole:.3f})"
        for gamma, late, error, whole in zip(*(slopes[key] for key in keys), strict=True)
    ]
    return (
        f"The slope of the exact squared calibration error over lam >= 128 is {' and '.join(each)}; "
        "\N{PLUS-MINUS SIGN} is the standard error of the line, which measures bend and not noise."
    )


def _bounds(study: TheoryStudy) -> str:
    distortion, calibration = study.distortion, study.calibration
    size = distortion["distortion_l2"]
    kept = [size <= distortion[name] for name in _DISTORTION_BOUNDS]
    kept += [calibration["cal2"] <= calibration[name] for name in _CALIBRATION_BOUNDS]
    broken = sum(int((~one).sum()) for one in kept)  # NaN keeps no bound
    verdict = (
        "No solve breaks a bound, nor does a calibration error" if broken == 0 else f"A bound is broken {broken} times"
    )
    promised = np.isfinite(distortion["interior_bound"])
    interior = f"the interior bound applies to {promised.sum()} of {len(size)} solves"
    if promised.any():
        factor = np.median((distortion["interior_bound"] / size)[promised])
        interior += f" and exceeds it by a median factor of {number(factor, digits=2)}"
    loose, sharp = (np.median(distortion[name] / size) for name in ("global_bound", "slope_bound"))
    return (
        f"{verdict}. The global bound exceeds the distortion by a median factor of {number(loose, digits=2)}; "
        f"{interior}; the norm of the first-order bias, which is a bound for every lam and posterior, by {sharp:.2f}."
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
