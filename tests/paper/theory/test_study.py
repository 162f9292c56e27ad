"""The paper's numerical study on exact solutions: what it must contain, and what it says."""

import numpy as np
import pytest
from paper.theory import theory_study as study_module
from paper.theory.cross_check import slsqp, stationarity_of
from paper.theory.frames import slopes
from paper.theory.theory_study import LAMS, population, posteriors, run_study


@pytest.fixture(scope="module")
def study():
    return run_study(cross_check=False)


def test_the_papers_grid(study):
    assert [len(eta) for eta in study.posteriors.values()].count(100) == 2
    assert {len(eta) for eta in study.posteriors.values()} == {3, 10, 100}
    for eta in study.posteriors.values():
        assert eta.sum() == pytest.approx(1, abs=1e-15)
        assert eta.min() > 0
    assert (LAMS[0], LAMS[-1], len(LAMS)) == (0.25, 32768, 18)
    assert len(study.distortion["lam"]) == len(study.solved_q) == 504
    assert len(study.cases["gamma"]) == 28
    assert len(study.calibration["lam"]) == 36
    assert len(study.states["lam"]) == 36 * 40
    assert study.population.shape == (40, 5)
    assert study.population.min() >= 0.02
    np.testing.assert_allclose(study.population.sum(1), 1, atol=1e-15)


def test_every_solve_is_exact(study):
    for records in (study.distortion, study.states):
        assert records["stationarity"].max() < 1e-14
        assert records["feasibility"].max() < 1e-15
        assert set(records["status"]) == {"converged"}


def test_rows_belong_together(study):
    """Each record's distortion is that of its own posterior and q*; each state's that of the population's."""
    for row in (0, 100, 300, 503):
        eta = study.posteriors[study.distortion["posterior"][row]]
        gamma, lam = study.distortion["gamma"][row], study.distortion["lam"][row]
        assert np.abs(study.solved_q[row] - eta).max() == pytest.approx(
            study.distortion["distortion_inf"][row], abs=1e-15
        )
        assert stationarity_of(study.solved_q[row], eta, gamma=gamma, lam=lam) < 1e-9
    row = 1234
    eta = study.population[study.states["state"][row]]
    q = slsqp(eta, gamma=study.states["gamma"][row], lam=study.states["lam"][row])
    assert np.linalg.norm(q - eta) == pytest.approx(study.states["distortion_l2"][row], rel=1e-3, abs=0)


def test_no_bound_is_broken(study):
    size = study.distortion["distortion_l2"]
    for bound in ("global_bound", "entropy_bound", "log_classes_bound", "interior_bound", "slope_bound"):
        assert (size <= study.distortion[bound] * (1 + 1e-12)).all()
    for bound in ("confidence_error", "posterior_error", "potential_bound", "interior_bound", "slope_bound"):
        assert (study.calibration["cal2"] <= study.calibration[bound] * (1 + 1e-12)).all()


def test_the_rate_and_the_constant(study):
    assert (study.cases["constant_error"] < 0.002).all()
    assert (np.abs(study.cases["slope_from_1024"] + 1) < 0.02).all()
    assert (np.abs(study.calibration_slopes["slope_from_1024"] + 2) < 0.005).all()


def test_slopes_are_shallow_before_the_asymptote_and_get_steeper(study):
    """Exact solutions have slopes as shallow as the paper's -0.942 over lam >= 128, and steeper ones further out."""
    windows = [study.cases[f"slope_{name}"] for name in ("all", "from_1", "from_16", "from_128", "from_1024")]
    for narrow, wide in zip(windows[1:], windows[:-1], strict=True):
        assert (narrow < wide).all()
    assert windows[3].max() == pytest.approx(-0.9435, abs=5e-4)
    assert windows[-1].min() > -1


def test_a_residual_of_3e_6_does_not_explain_the_slope(study):
    injection, residual = study.injection, study.injection["kind"] == "residual"
    moved = np.maximum(
        np.abs(injection["slope_low"] - injection["slope_exact"]),
        np.abs(injection["slope_high"] - injection["slope_exact"]),
    )
    assert moved[residual].max() < 2e-4
    assert moved[~residual].max() > 0.1  # an error of that size in q itself would


def test_slopes_are_those_of_polyfit():
    lam, values = (
        np.array([1.0, 2.0, 4.0, 8.0, 16.0]),
        np.array([[9.0, 1.0], [4.0, 3.0], [2.5, 1.0], [1.0, 0.2], [0.6, 2.0]]),
    )
    slope, error = slopes(lam, values, smallest=2.0)
    for column in (0, 1):
        fit, covariance = np.polyfit(np.log(lam[1:]), np.log(values[1:, column]), 1, cov="unscaled")
        residual = np.log(values[1:, column]) - np.polyval(fit, np.log(lam[1:]))
        assert slope[column] == pytest.approx(fit[0])
        assert error[column] == pytest.approx(np.sqrt(covariance[0, 0] * (residual**2).sum() / 2))


def test_the_cross_check_agrees_and_tells_its_progress(monkeypatch):
    small = {name: eta for name, eta in posteriors().items() if len(eta) == 3}
    monkeypatch.setattr(study_module, "posteriors", lambda: small)
    monkeypatch.setattr(study_module, "population", lambda: population()[:2])
    monkeypatch.setattr(study_module, "LAMS", LAMS[::2])
    told = []
    checked = run_study(cross_check=True, progress=lambda done, of: told.append((done, of)))
    assert len(told) == len(checked.distortion["lam"]) + len(checked.states["lam"])
    assert told[-1][0] == told[-1][1]
    assert (np.diff([done for done, _ in told]) > 0).all()
    for records in (checked.distortion, checked.states):
        assert records["slsqp_difference"].max() < 1e-6
        assert records["slsqp_stationarity"].max() < 1e-3
    assert checked.cases["worst_slsqp_difference"].max() == checked.distortion["slsqp_difference"].max()
