"""The tables of the theory study, as they are shown, and what must be said beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from focalcal.pages.numbers import Printed
from focalcal.pages.tables import Table, number
from paper.theory.frames import WINDOWS

if TYPE_CHECKING:
    from paper.theory.theory_study import TheoryStudy

_FITTED = ("from_16", "from_128")  # the windows at K = 100 that are spoken of
STANDARD_ERROR = "± is the standard error of the least-squares line: it measures how the curve bends, not noise."


def cases_table(study: TheoryStudy) -> Table:
    """A row for each posterior and gamma: the constant, slopes over windows of lam, the worst figures of the solver."""
    shown = {name: values for name, values in _cases(study).items() if name != "classes"}  # the posterior's name has it
    headings = {
        "eta_min": "smallest eta",
        "constant": "C",
        "recovered": f"C recovered at lam = {_largest_lam(study):g}",
        "constant_error_percent": "error, %",
        "delay": "kappa",
        "worst_stationarity": "stationarity",
        "worst_feasibility": "feasibility",
        "worst_slsqp_difference": "SLSQP differs by",
    }
    slopes = {name: f"slope, {_window(name[6:])}" for name in shown if name.startswith("slope_")}
    return Table(shown, headings | slopes)


def cases_csv(study: TheoryStudy) -> str:
    """The same with every digit, and the number of classes."""
    return Table(_cases(study)).csv()


def cases_note(study: TheoryStudy) -> str:
    """What the columns of the cases are."""
    return (
        "C is the first-order constant, to which lam |q* - eta|_inf tends; the column beside it has that product at "
        f"lam = {_largest_lam(study):g}, and its relative error is in percent, which is about kappa / (2 lam). "
        "A slope is that of the least-squares "
        "line of log |q* - eta|_inf on log lam, over all lam and from the lam that the heading names. Stationarity and "
        "feasibility are the worst relative residuals of the solves, and the last column is the largest absolute "
        "difference of any q_k from that of SLSQP."
    )


def paper_table(study: TheoryStudy) -> Table:
    """What the paper reports, with its digits, beside what was found here."""
    figures = study.paper["figure"]
    printed = [
        Printed(f"{value:.2f}" if "%" in figure else f"{value:.3f}")
        for figure, value in zip(figures, study.paper["paper"], strict=True)
    ]
    ours = [Printed(f"{value:.3f}") for value in study.paper["ours"]]
    return Table({"figure": figures, "paper": printed, "ours": ours})


def paper_note(study: TheoryStudy) -> str:
    """What must be known to compare the two."""
    closest = _closest_window(study)
    why = (
        "the paper names no window, and of those tried this one comes closest"
        if closest == "from_128"
        else f"the paper names no window; its slopes are closest over {_window(closest)}"
    )
    slopes = np.concatenate([study.cases[f"slope_{name}"] for name in WINDOWS])
    steeper = int((~(slopes >= -1)).sum())
    steepest = (
        f"None of our cases is steeper than -1 over any window (the steepest is {slopes.min():.4f})"
        if steeper == 0
        else f"{steeper} of our {len(slopes)} slopes over all cases and windows are not at least -1"
    )
    return (
        f"Ours are the slopes over lam >= 128: {why}. The errors are at lam = {_largest_lam(study):g}. The posteriors "
        "are ours, because the paper's are not printed in it; they have the shapes and the numbers of classes that it "
        f"names. {steepest}."
    )


def injection_table(study: TheoryStudy) -> Table:
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


def slopes_table(study: TheoryStudy) -> Table:
    """The slopes of the exact calibration error over windows of lam, with their standard errors (`STANDARD_ERROR`)."""
    columns = study.calibration_slopes
    shown = {
        _window(name[6:]): [
            slope_text(slope, error) for slope, error in zip(columns[name], columns[f"error_{name[6:]}"], strict=True)
        ]
        for name in columns
        if name.startswith("slope_")
    }
    return Table({"gamma": columns["gamma"], **shown})


def slope_text(slope: float, error: float) -> str:
    """A slope and its standard error, which is left out where its three decimals are 0."""
    return f"{slope:.3f}" + (f" \N{PLUS-MINUS SIGN} {error:.3f}" if error >= 0.0005 else "")


def moved_slopes(study: TheoryStudy, kind: str) -> float:
    """By how much at most the injection of that kind moves a slope."""
    own = study.injection["kind"] == kind
    exact = study.injection["slope_exact"][own]
    return float(max(np.abs(study.injection[name][own] - exact).max() for name in ("slope_low", "slope_high")))


def injection_note(study: TheoryStudy) -> str:
    """What the injection tests, and what came of it."""
    (paper,) = study.paper["paper"][study.paper["figure"] == "shallowest slope"]
    exact = study.injection["slope_exact"]
    fitted = np.isin(study.injection["window"], _FITTED)
    residual = moved_slopes(study, "residual")
    # Half the last digit printed.
    cause = "so it does not explain such a slope" if residual < 0.0005 else "so it may explain such a slope"
    shallow = "slopes like it occur among" if exact[fitted].max() >= paper - 0.005 else "steeper are all"
    ranges = []
    for window in _FITTED:
        for name in dict.fromkeys(study.injection["posterior"]):
            own = exact[(study.injection["window"] == window) & (study.injection["posterior"] == name)]
            ranges.append(f"{name.partition(',')[0]} {own.min():.3f} to {own.max():.3f} over {_window(window)}")
    return (
        f"The paper puts the slope of {paper:.3f} of its heterogeneous posterior at K = 100, which it does not print, "
        f"down to its solver's residual of 3e-6. A residual of that size, injected into our exact solutions, moves no "
        f"slope by more than {number(residual, digits=2)}, {cause}; {shallow} exact solutions ({', '.join(ranges)}). "
        "An error of 3e-6 in q itself, which is not what a residual is, moves slopes by up "
        f"to {number(moved_slopes(study, 'error'), digits=2)}."
    )


def _cases(study: TheoryStudy) -> dict[str, np.ndarray]:
    """The columns with the one relative error in percent, as everywhere."""
    return {
        ("constant_error_percent" if name == "constant_error" else name): (
            100 * values if name == "constant_error" else values
        )
        for name, values in study.cases.items()
    }


def _closest_window(study: TheoryStudy) -> str:
    """The window over which median, steepest and shallowest slope are nearest to the paper's."""
    paper = dict(zip(study.paper["figure"], study.paper["paper"], strict=True))

    def distance(name: str) -> float:
        slopes = study.cases[f"slope_{name}"]
        ours = {
            "median slope of the distortion": np.median(slopes),
            "steepest slope": slopes.min(),
            "shallowest slope": slopes.max(),
        }
        return float(max(abs(value - paper[figure]) for figure, value in ours.items()))

    return min(WINDOWS, key=distance)


def _largest_lam(study: TheoryStudy) -> float:
    return float(study.distortion["lam"].max())


def _window(name: str) -> str:
    return "all lam" if name == "all" else name.replace("from_", "lam >= ")
