"""The paper's numerical study (its section 6.7) on exact solutions, and what it leaves open.

504 solves: seven interior posteriors x gamma in {1, 2, 3, 5} x 18 values of lam; 36 more for the exact calibration
error of a population of 40 states. The paper's seven posteriors are not printed in it; ours have its four shapes and
its three numbers of classes, are given by formulas, and so are the 40 states. Every table is a dict of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from focalcal.core.forty_states import population as population
from focalcal.theory.bias import asymptote_delay, first_order_bias, first_order_constant, pre_asymptotic_bias
from focalcal.theory.bounds import (
    entropy_bound,
    global_bound,
    interior_bound,
    interior_threshold,
    log_classes_bound,
    slope_bound,
)
from focalcal.theory.calibration import calibration_bounds, calibration_chain
from focalcal.theory.minimiser import Solution, minimise
from paper.theory.cross_check import slsqp, stationarity_of
from paper.theory.frames import (
    Columns,
    calibration_slope_table,
    case_table,
    columns,
    injection_table,
    paper_table,
)

if TYPE_CHECKING:
    from jaxtyping import Float

GAMMAS = np.array([1.0, 2.0, 3.0, 5.0])
CALIBRATION_GAMMAS = np.array([2.0, 3.0])
LAMS = 2.0 ** np.arange(-2, 16)


@dataclass(frozen=True, eq=False)
class TheoryStudy:
    """The records and what is made of them.

    posteriors          the seven, by name
    population          the posteriors of the 40 states
    distortion          504 rows: a solve each, with its figures, bounds, biases and cross-check
    solved_q            the q* of these rows
    states              36 x 40 rows: a solve each, with its figures and cross-check
    calibration         36 rows: exact Cal2^2 of the 40 states, its chain, its bounds and the states' worst figures
    cases               28 rows, a posterior and a gamma each: constant, slopes over windows of lam, worst figures
    calibration_slopes  2 rows: slopes of Cal2^2 and their standard errors
    injection           what a residual, or an error, of 3e-6 does to the slopes at K = 100
    paper               the paper's figures beside ours
    """

    posteriors: dict[str, Float[np.ndarray, " k"]]
    population: Float[np.ndarray, "40 5"]
    distortion: Columns
    solved_q: list[Float[np.ndarray, " k"]]
    states: Columns
    calibration: Columns
    cases: Columns
    calibration_slopes: Columns
    injection: Columns
    paper: Columns


def posteriors() -> dict[str, Float[np.ndarray, " k"]]:
    """The seven posteriors, by name: shape and number of classes."""
    rank = np.arange(100)
    shapes = {
        "near-uniform, K = 3": np.array([0.36, 0.33, 0.31]),
        "moderate, K = 3": np.array([0.5, 0.3, 0.2]),
        "peaked, K = 3": np.array([0.9, 0.07, 0.03]),
        "moderate, K = 10": 0.8 ** rank[:10],
        "peaked, K = 10": np.r_[0.9, np.linspace(1.5, 0.5, 9) / 90],
        "near-uniform, K = 100": 1 + 0.2 * np.cos(rank),
        "heterogeneous, K = 100": 1.0 / (1 + rank),
    }
    return {name: shape / shape.sum() for name, shape in shapes.items()}


def run_study(*, cross_check: bool = True, progress: Callable[[int, int], None] | None = None) -> TheoryStudy:
    """All of it. The cross-check takes minutes; `progress(done, of)` is told how much of its work is done."""
    etas, population_ = posteriors(), population()
    solved = {name: minimise(eta, gamma=GAMMAS[:, None], lam=LAMS) for name, eta in etas.items()}
    solved_states = minimise(population_[:, None, None], gamma=CALIBRATION_GAMMAS[:, None], lam=LAMS)
    for solution in (*solved.values(), solved_states):
        solution.unwrap()
    distortion, states = _distortion(etas, solved), _states(solved_states)
    solved_q = [q for solution in solved.values() for q in solution.q.reshape(-1, solution.q.shape[-1])]
    if cross_check:
        problems = [etas[name] for name in distortion["posterior"]]
        solved_by_state = np.moveaxis(solved_states.q, 0, 2).reshape(-1, population_.shape[1])
        of = sum(map(_cost, problems)) + sum(_cost(population_[state]) for state in states["state"])
        done = _cross_check(distortion, problems, solved_q, lambda done: progress and progress(done, of))
        _cross_check(
            states,
            [population_[state] for state in states["state"]],
            list(solved_by_state),
            lambda more: progress and progress(done + more, of),
        )
    calibration = _calibration(population_, solved_states, states)
    cases, calibration_slopes = case_table(distortion), calibration_slope_table(calibration)
    return TheoryStudy(
        posteriors=etas,
        population=population_,
        distortion=distortion,
        solved_q=solved_q,
        states=states,
        calibration=calibration,
        cases=cases,
        calibration_slopes=calibration_slopes,
        injection=injection_table(etas, solved, gammas=GAMMAS, lams=LAMS),
        paper=paper_table(cases, calibration_slopes),
    )


def _distortion(etas: dict[str, np.ndarray], solved: dict[str, Solution]) -> Columns:
    parts = []
    gamma, lam = np.broadcast_arrays(GAMMAS[:, None], LAMS)
    for name, eta in etas.items():
        solution = solved[name]
        exact = solution.displacement
        size = np.linalg.norm(exact, axis=-1)
        first, newton = (f(eta, gamma=gamma, lam=lam) for f in (first_order_bias, pre_asymptotic_bias))
        parts.append(
            {
                "posterior": np.full(gamma.shape, name, dtype=object),
                "classes": np.full(gamma.shape, len(eta)),
                "eta_min": np.full(gamma.shape, eta.min()),
                "gamma": gamma,
                "lam": lam,
                "distortion_inf": np.abs(exact).max(-1),
                "distortion_l2": size,
                "multiplier": solution.multiplier,
                "stationarity": solution.stationarity,
                "feasibility": solution.feasibility,
                "floor": solution.floor,
                "steps": solution.steps,
                "status": solution.status.astype(str).astype(object),
                "global_bound": global_bound(eta, gamma=gamma, lam=lam),
                "entropy_bound": entropy_bound(eta, lam=lam),
                "log_classes_bound": log_classes_bound(len(eta), lam=lam),
                "interior_threshold": interior_threshold(eta, gamma=gamma),
                "interior_bound": interior_bound(eta, gamma=gamma, lam=lam),
                "slope_bound": slope_bound(eta, gamma=gamma, lam=lam),
                "first_order_constant": np.broadcast_to(first_order_constant(eta, gamma=gamma), gamma.shape),
                "asymptote_delay": np.broadcast_to(asymptote_delay(eta, gamma=gamma), gamma.shape),
                "first_order_inf": np.abs(first).max(-1),
                "pre_asymptotic_inf": np.abs(newton).max(-1),
                "first_order_error": np.linalg.norm(first - exact, axis=-1) / size,
                "pre_asymptotic_error": np.linalg.norm(newton - exact, axis=-1) / size,
                "slsqp_difference": np.full(gamma.shape, np.nan),
                "slsqp_stationarity": np.full(gamma.shape, np.nan),
            }
        )
    return {key: np.concatenate([np.ravel(part[key]) for part in parts]) for key in parts[0]}


def _states(solution: Solution) -> Columns:
    """By gamma, then lam, then state; the solution has the states first."""
    shape = (len(CALIBRATION_GAMMAS), len(LAMS), solution.q.shape[0])
    gamma, lam, state = np.broadcast_arrays(CALIBRATION_GAMMAS[:, None, None], LAMS[:, None], np.arange(shape[2]))
    figures = {
        "multiplier": solution.multiplier,
        "distortion_l2": np.linalg.norm(solution.displacement, axis=-1),
        "stationarity": solution.stationarity,
        "feasibility": solution.feasibility,
        "floor": solution.floor,
        "steps": solution.steps,
        "status": solution.status.astype(str).astype(object),
    }
    return {
        "gamma": gamma.ravel(),
        "lam": lam.ravel(),
        "state": state.ravel(),
        **{name: np.moveaxis(values, 0, 2).ravel() for name, values in figures.items()},
        "slsqp_difference": np.full(gamma.size, np.nan),
        "slsqp_stationarity": np.full(gamma.size, np.nan),
    }


def _calibration(population_: np.ndarray, solution: Solution, states: Columns) -> Columns:
    rows = []
    for i, gamma in enumerate(CALIBRATION_GAMMAS):
        for j, lam in enumerate(LAMS):
            chain = calibration_chain(solution.q[:, i, j], population_, displacement=solution.displacement[:, i, j])
            bounds = calibration_bounds(population_, gamma=gamma, lam=lam)
            own = (states["gamma"] == gamma) & (states["lam"] == lam)
            rows.append(
                {
                    "gamma": gamma,
                    "lam": lam,
                    "cal2": chain.cal2,
                    "confidence_error": chain.confidence_error,
                    "posterior_error": chain.posterior_error,
                    "potential_bound": bounds.potential,
                    "log_classes_bound": bounds.log_classes,
                    "interior_bound": bounds.interior,
                    "slope_bound": bounds.slope,
                    **{name: states[name][own].max() for name in ("stationarity", "feasibility", "slsqp_difference")},
                }
            )
    return columns(rows)


def _cost(eta: np.ndarray) -> int:
    """Of a cross-check, in arbitrary units: SLSQP's time grows like K^2 or faster."""
    return len(eta) ** 2


def _cross_check(
    records: Columns, problems: list[np.ndarray], solved: list[np.ndarray], progress: Callable[[int], object]
) -> int:
    """Fill in what SLSQP finds for each record, and return the work done."""
    done = 0
    for row, (eta, q) in enumerate(zip(problems, solved, strict=True)):
        gamma, lam = records["gamma"][row], records["lam"][row]
        other_q = slsqp(eta, gamma=gamma, lam=lam)
        records["slsqp_difference"][row] = np.abs(other_q - q).max()
        records["slsqp_stationarity"][row] = stationarity_of(other_q, eta, gamma=gamma, lam=lam)
        done += _cost(eta)
        progress(done)
    return done
