"""What the study's records say: slopes over windows of lam, the first-order constant, and the paper beside ours.

A table is a dict of columns of equal length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.theory.potential import phi_curvature

if TYPE_CHECKING:
    from jaxtyping import Float

    from focalcal.theory.minimiser import Solution

Columns = dict[str, np.ndarray]

WINDOWS = {"all": 0.0, "from_1": 1.0, "from_16": 16.0, "from_128": 128.0, "from_1024": 1024.0}
PAPER_RESIDUAL = 3e-6  # where the paper's own solver stops at K = 100
_DRAWS = 400


def slopes(
    lam: Float[np.ndarray, " n"], values: Float[np.ndarray, "n *d"], *, smallest: float = 0.0
) -> tuple[Float[np.ndarray, "*d"], Float[np.ndarray, "*d"]]:
    """The least-squares slope of log values on log lam over lam >= smallest, and its standard error."""
    window = lam >= smallest
    x, y = np.log(lam[window]), np.log(values[window])
    x, y = x - x.mean(), y - y.mean(0)
    slope = np.tensordot(x, y, 1) / (x @ x)
    residual = y - np.multiply.outer(x, slope)
    return slope, np.sqrt((residual**2).sum(0) / (len(x) - 2) / (x @ x))


def case_table(distortion: Columns) -> Columns:
    """A row for each posterior and gamma of the distortion records, in their order."""
    rows = []
    for name, gamma in dict.fromkeys(zip(distortion["posterior"], distortion["gamma"], strict=True)):
        own = (distortion["posterior"] == name) & (distortion["gamma"] == gamma)
        part = {key: column[own] for key, column in distortion.items()}
        constant = part["first_order_constant"][0]
        recovered = (part["lam"] * part["distortion_inf"])[-1]  # at the largest lam
        rows.append(
            {
                "posterior": name,
                "classes": part["classes"][0],
                "eta_min": part["eta_min"][0],
                "gamma": gamma,
                "constant": constant,
                "recovered": recovered,
                "constant_error": abs(recovered / constant - 1),
                "delay": part["asymptote_delay"][0],
                **_over_windows(part["lam"], part["distortion_inf"]),
                "worst_stationarity": part["stationarity"].max(),
                "worst_feasibility": part["feasibility"].max(),
                "worst_slsqp_difference": part["slsqp_difference"].max(),
            }
        )
    return columns(rows)


def calibration_slope_table(calibration: Columns) -> Columns:
    """A row for each gamma: the slopes of Cal2^2 and their standard errors."""
    rows = []
    for gamma in dict.fromkeys(calibration["gamma"]):
        own = calibration["gamma"] == gamma
        lam, cal2 = calibration["lam"][own], calibration["cal2"][own]
        error = {f"error_{name}": slopes(lam, cal2, smallest=smallest)[1] for name, smallest in WINDOWS.items()}
        rows.append({"gamma": gamma, **_over_windows(lam, cal2), **error})
    return columns(rows)


def injection_table(
    etas: dict[str, np.ndarray], solved: dict[str, Solution], *, gammas: np.ndarray, lams: np.ndarray
) -> Columns:
    """Slopes at K = 100 after solutions were spoilt at random, in the two senses that a figure of 3e-6 can have.

    "residual": stationarity is off by up to 3e-6 in every coordinate, so that q moves by (e_k - mean) / h_k with
    h_k = eta_k phi''(q_k) + 2 lam; "error": q itself is off by up to 3e-6. Both keep the sum of q. The lowest and the
    highest slope of 400 draws are given beside the exact one.
    """
    rng = np.random.default_rng(0)
    rows = []
    for name, eta in etas.items():
        if len(eta) < 100:
            continue
        for i, gamma in enumerate(gammas):
            d, q = solved[name].displacement[i], solved[name].q[i]
            noise = rng.uniform(-PAPER_RESIDUAL, PAPER_RESIDUAL, size=(_DRAWS, *d.shape))
            stiffness = eta * phi_curvature(q, gamma) + 2 * lams[:, None]
            share = (1 / stiffness) / (1 / stiffness).sum(-1, keepdims=True)
            spoilt = {
                "residual": d + (noise - (noise * share).sum(-1, keepdims=True)) / stiffness,
                "error": d + noise - noise.mean(-1, keepdims=True),
            }
            for kind, displacement in spoilt.items():
                for window in ("all", "from_16", "from_128"):
                    exact, _ = slopes(lams, np.abs(d).max(-1), smallest=WINDOWS[window])
                    drawn, _ = slopes(lams, np.abs(displacement).max(-1).T, smallest=WINDOWS[window])
                    rows.append(
                        {
                            "posterior": name,
                            "gamma": gamma,
                            "kind": kind,
                            "window": window,
                            "slope_exact": exact,
                            "slope_low": drawn.min(),
                            "slope_high": drawn.max(),
                        }
                    )
    return columns(rows)


def paper_table(cases: Columns, calibration_slopes: Columns) -> Columns:
    """The paper's figures and ours, over lam >= 128: it does not name its window, and this one comes closest."""
    window, error = cases["slope_from_128"], 100 * cases["constant_error"]
    calibration = calibration_slopes["slope_from_128"]
    rows = [
        ("median slope of the distortion", -0.994, np.median(window)),
        ("steepest slope", -1.004, window.min()),
        ("shallowest slope", -0.942, window.max()),
        ("error of the first-order constant, median, %", 0.01, np.median(error)),
        ("error of the first-order constant, worst, %", 0.18, error.max()),
        ("slope of Cal2^2, gamma = 2", -1.990, calibration[0]),
        ("slope of Cal2^2, gamma = 3", -1.989, calibration[1]),
    ]
    return columns([{"figure": figure, "paper": paper, "ours": float(ours)} for figure, paper, ours in rows])


def columns(rows: list[dict[str, Any]]) -> Columns:
    """Rows with the same keys as columns; text as objects."""
    if not rows:
        return {}
    text = {key for key, value in rows[0].items() if isinstance(value, str)}
    return {key: np.array([row[key] for row in rows], dtype=object if key in text else None) for key in rows[0]}


def _over_windows(lam: np.ndarray, values: np.ndarray) -> dict[str, float]:
    return {f"slope_{name}": float(slopes(lam, values, smallest=smallest)[0]) for name, smallest in WINDOWS.items()}
