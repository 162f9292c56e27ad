"""The bounds of Cal2^2, by hand and against the exact value at the risk's minimiser."""

import math

import numpy as np
import pytest
from support.populations import ETA, WEIGHTS

from focalcal.theory.calibration import calibration_bounds, exact_cal2
from focalcal.theory.minimiser import minimise
from focalcal.theory.potential import focal_potential


@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("lam", [0.1, 1.0, 30.0, 600.0])
def test_the_minimiser_keeps_the_bounds(gamma, lam):
    generator = np.random.default_rng(1)
    eta = 0.7 * generator.dirichlet(np.ones(3), size=30) + 0.1  # eps >= .1
    weights = generator.dirichlet(np.ones(30))
    solution = minimise(eta, gamma=gamma, lam=lam)
    cal2 = exact_cal2(solution.q, eta, weights, displacement=solution.displacement)
    bounds = calibration_bounds(eta, weights, gamma=gamma, lam=lam)
    assert 0 < cal2 <= bounds.potential <= bounds.log_classes
    assert cal2 <= bounds.slope <= bounds.simplex < bounds.interior
    assert cal2 <= bounds.interior
    assert (bounds.interior < math.inf) == (lam >= bounds.interior_from)
    assert bounds.interior_from == pytest.approx(4 * math.log(3) / eta.min() ** 2)
    assert bounds.potential == pytest.approx((weights * focal_potential(eta, gamma=gamma)).sum() / lam)


@pytest.mark.parametrize(("gamma", "a"), [(0, 1.0), (0.5, 1 + 0.5 * math.sqrt(2)), (1, 2.0), (3, 4.0)])
def test_bounds_by_hand(gamma, a):
    bounds = calibration_bounds(ETA, WEIGHTS, gamma=gamma, lam=500)  # eps = .1, so from 400 log 3 = 439.4
    assert bounds.log_classes == pytest.approx(math.log(3) / 500)
    assert bounds.interior_from == pytest.approx(400 * math.log(3))
    assert bounds.interior == pytest.approx(4 * a**2 * 3 / 500**2)
    assert calibration_bounds(ETA, WEIGHTS, gamma=gamma, lam=439).interior == math.inf


def test_a_state_that_never_occurs_sets_no_bound():
    rare = np.vstack([np.eye(3)[:1], ETA])
    found = calibration_bounds(rare, [0, *WEIGHTS], gamma=1, lam=500)
    assert vars(found) == pytest.approx(vars(calibration_bounds(ETA, WEIGHTS, gamma=1, lam=500)), rel=1e-12)


def test_bounds_at_the_boundary_of_the_simplex():
    bounds = calibration_bounds([[1.0, 0.0], [0.5, 0.5]], gamma=2, lam=1e12)
    assert bounds.interior == bounds.interior_from == math.inf
    assert bounds.potential == pytest.approx(0.125e-12 * math.log(2), rel=1e-12, abs=0)  # Phi is 0 and (1/2)^2 log 2
    assert calibration_bounds([[1e-200, 1.0]], gamma=2, lam=1e12).interior_from == math.inf
    assert calibration_bounds([[0.5, 0.5]], gamma=2, lam=1e-200).log_classes == pytest.approx(math.log(2) * 1e200)
