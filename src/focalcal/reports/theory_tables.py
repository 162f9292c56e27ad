"""The tables of the theory study, as they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focalcal.reports.tables import Table

if TYPE_CHECKING:
    from focalcal.theory.study import Study

_WINDOWS = {"all": "all lam"}  # the others, from_16 for example, are written as lam >= 16

CASES_IN_LATEX = {
    "classes": "$K$",
    "eta_min": r"$\min_k\eta_k$",
    "gamma": r"$\gamma$",
    "constant": r"$C(\eta,\gamma)$",
    "recovered": r"$\lambda\|q^*-\eta\|_\infty$",
    "constant_error": "rel. error",
    "slope_all": r"slope, all $\lambda$",
    "slope_from_1": r"$\lambda\ge1$",
    "slope_from_16": r"$\lambda\ge16$",
    "slope_from_128": r"$\lambda\ge128$",
    "slope_from_1024": r"$\lambda\ge1024$",
    "worst_stationarity": "stationarity",
    "worst_feasibility": "feasibility",
    "worst_slsqp_difference": "SLSQP",
}


def cases_table(study: Study) -> Table:
    """A row for each posterior and gamma: the constant, slopes over windows of lam, the worst figures of the solver."""
    headings = {
        "classes": "K",
        "eta_min": "smallest eta",
        "constant": "C",
        "recovered": "C recovered",
        "constant_error": "relative error",
        "worst_stationarity": "stationarity",
        "worst_feasibility": "feasibility",
        "worst_slsqp_difference": "SLSQP differs by",
    }
    slopes = {name: f"slope, {_window(name[6:])}" for name in study.cases if name.startswith("slope_")}
    return Table(study.cases, headings | slopes)


def paper_table(study: Study) -> Table:
    """What the paper reports beside what was found here."""
    shown = {name: [f"{value:.3f}" for value in study.paper[name]] for name in ("paper", "ours")}
    return Table({name: shown.get(name, list(values)) for name, values in study.paper.items()})


def injection_table(study: Study) -> Table:
    """The slopes at K = 100 after exact solutions were spoilt on purpose."""
    windows = np.array([_window(name) for name in study.injection["window"]], dtype=object)
    kinds = {"residual": "residual of 3e-6", "error": "error of 3e-6 in q"}
    kind = np.array([kinds.get(name, name) for name in study.injection["kind"]], dtype=object)
    headings = {
        "kind": "spoilt by",
        "window": "fitted over",
        "slope_exact": "exact slope",
        "slope_low": "steepest",
        "slope_high": "shallowest",
    }
    return Table(study.injection | {"kind": kind, "window": windows}, headings, digits=4)


def slopes_table(study: Study) -> Table:
    """The slopes of the exact calibration error over windows of lam, with their standard errors."""
    columns = study.calibration_slopes
    shown = {
        _window(name[6:]): [
            f"{slope:.3f} \N{PLUS-MINUS SIGN} {error:.3f}"
            for slope, error in zip(columns[name], columns[f"error_{name[6:]}"], strict=True)
        ]
        for name in columns
        if name.startswith("slope_")
    }
    return Table({"gamma": columns["gamma"], **shown})


def _window(name: str) -> str:
    return _WINDOWS.get(name, name.replace("from_", "lam >= "))
