"""The figure of the theory study: distortion, its first-order constant, and the exact calibration error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.core.extras import required
from focalcal.pages.style import COLOURS, GUIDE, STYLE, TEXT_WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from paper.theory.frames import Columns
    from paper.theory.theory_study import TheoryStudy

_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.2)), (0, (4, 1.2, 1, 1.2)), (0, (1, 1)))  # by gamma
_CALIBRATION: dict[str, tuple[str, dict[str, Any]]] = {  # what is drawn in the right panel: its column, its look
    r"exact $\mathrm{Cal}_2^2$": ("cal2", {"marker": "o", "markersize": 2.4, "linewidth": 0.9}),
    r"bound $E[\Phi_\gamma(\eta)]/\lambda$": ("potential_bound", {"linestyle": (0, (4, 1.2))}),
    r"bound $E\|\bar\psi-\psi(\eta)\|_2^2/4\lambda^2$": ("slope_bound", {"linestyle": (0, (4, 1.2, 1, 1.2))}),
    r"bound $4A_\gamma^2K/\lambda^2$": ("interior_bound", {"linestyle": (0, (1, 1)), "linewidth": 1.4}),
}


def theory_figure(study: TheoryStudy) -> Figure:
    """Three panels over lam.

    Left: |q* - eta|_inf of every posterior (colour) and gamma (dashes) with a guide of slope -1. Middle: the same times
    lam over the first-order constant C, which tends to 1. Right: exact Cal2^2 with a guide of slope -2 and bounds.
    """
    matplotlib = required("matplotlib", purpose="The theory figure")
    figure_class = required("matplotlib.figure", purpose="The theory figure").Figure
    with matplotlib.rc_context(STYLE):
        figure: Figure = figure_class(figsize=(TEXT_WIDTH, 3.9))
        left, middle, right = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.085, right=0.985, top=0.935, bottom=0.43, wspace=0.4)
        _distortion(left, study)
        _constant(middle, study)
        _calibration(right, study.calibration)
        for axes, letter in zip((left, middle, right), "abc", strict=True):
            axes.set_xscale("log")
            axes.set_xlabel(r"anchor weight $\lambda$")
            axes.set_title(letter, loc="left", fontweight="bold")
            axes.set_xticks(10.0 ** np.arange(0, 5))
            axes.minorticks_off()
        _legends(figure, study)
    return figure


def _distortion(axes: Axes, study: TheoryStudy) -> None:
    for _, own, look in _curves(study):
        axes.plot(own["lam"], own["distortion_inf"], **look)
    axes.set_yscale("log")
    axes.set_ylabel(r"distortion $\|q^*_\lambda-\eta\|_\infty$")
    _guide(axes, study.distortion["lam"], study.distortion["distortion_inf"], power=-1)


def _constant(axes: Axes, study: TheoryStudy) -> None:
    constant = {
        (name, gamma): value
        for name, gamma, value in zip(*(study.cases[key] for key in ("posterior", "gamma", "constant")), strict=True)
    }
    for case, own, look in _curves(study):
        axes.plot(own["lam"], own["lam"] * own["distortion_inf"] / constant[case], **look)
    axes.axhline(1.0, color=GUIDE, linestyle="--", linewidth=0.9, zorder=0)
    axes.set_ylim(0, 1.12)
    axes.annotate("first-order constant", (0.25, 1.0), (0, 2), textcoords="offset points").set_color(GUIDE)
    axes.set_ylabel(r"$\lambda\,\|q^*_\lambda-\eta\|_\infty\;/\;C(\eta,\gamma)$")


def _calibration(axes: Axes, columns: Columns) -> None:
    for gamma, colour in _calibration_colours(columns).items():
        own = {key: values[columns["gamma"] == gamma] for key, values in columns.items()}
        for key, look in _CALIBRATION.values():
            holds = np.isfinite(own[key])  # the interior bound promises nothing for small lam
            axes.plot(own["lam"][holds], own[key][holds], color=colour, label=f"{key}, gamma = {gamma:g}", **look)
    axes.set_yscale("log")
    axes.set_ylabel(r"$\mathrm{Cal}_2^2$ and bounds")
    _guide(axes, columns["lam"], columns["cal2"], power=-2)


def _curves(study: TheoryStudy) -> Iterator[tuple[tuple[str, float], Columns, dict[str, Any]]]:
    """Each posterior and gamma: which it is, its rows in the order of lam, and how it is drawn."""
    columns = study.distortion
    gammas = list(np.unique(columns["gamma"]))
    for name, colour in _colours(study).items():
        for gamma in gammas:
            at = np.flatnonzero((columns["posterior"] == name) & (columns["gamma"] == gamma))
            at = at[np.argsort(columns["lam"][at])]
            own = {key: values[at] for key, values in columns.items()}
            yield (name, gamma), own, {"color": colour, "linestyle": _DASHES[gammas.index(gamma) % len(_DASHES)]}


def _colours(study: TheoryStudy) -> dict[str, str]:
    names = list(dict.fromkeys(study.distortion["posterior"]))
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def _guide(axes: Axes, lam: np.ndarray, values: np.ndarray, *, power: int) -> None:
    """A line of that slope below the data, ending where the lowest curve does."""
    ends = np.array([lam.max() / 256, lam.max() / 2])
    heights = values[lam == lam.max()].min() / 4 * (ends / lam.max()) ** power
    axes.plot(ends, heights, color=GUIDE, linewidth=0.9, linestyle="--", label="guide")
    middle = np.sqrt(ends.prod()), np.sqrt(heights.prod())
    text = f"slope {power}".replace("-", "\N{MINUS SIGN}")
    axes.annotate(text, middle, (-3, -3), textcoords="offset points", ha="right", va="top").set_color(GUIDE)


def _calibration_colours(columns: Columns) -> dict[float, str]:
    return dict(zip(np.unique(columns["gamma"]), (COLOURS[0], COLOURS[4], COLOURS[2], COLOURS[3]), strict=False))


def _legends(figure: Figure, study: TheoryStudy) -> None:
    line = required("matplotlib.lines", purpose="The theory figure").Line2D
    names = [line([], [], color=colour, label=name, linewidth=2) for name, colour in _colours(study).items()]
    gammas = [
        line([], [], color="black", linestyle=_DASHES[i % len(_DASHES)], label=rf"$\gamma={gamma:g}$")
        for i, gamma in enumerate(np.unique(study.distortion["gamma"]))
    ]
    kinds = [line([], [], color=GUIDE, label=name, **look) for name, (_, look) in _CALIBRATION.items()]
    kinds += [
        line([], [], color=colour, label=rf"$\gamma={gamma:g}$", linewidth=2)
        for gamma, colour in _calibration_colours(study.calibration).items()
    ]
    placed = {
        "posterior (a, b)": (0.085, names, 2),
        "focusing (a, b)": (0.52, gammas, 1),
        "calibration (c)": (0.745, kinds, 1),
    }
    layout: dict[str, Any] = {"loc": "upper left", "borderaxespad": 0.0, "borderpad": 0.0, "alignment": "left"}
    layout |= {"handlelength": 2.8, "columnspacing": 1.4}
    for title, (left, handles, columns) in placed.items():
        figure.legend(handles=handles, title=title, ncols=columns, bbox_to_anchor=(left, 0.305), **layout)
