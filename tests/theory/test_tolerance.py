"""The anchor weight for a tolerance: small enough, never too small, and certified without posteriors."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.drawn_posteriors import GAMMAS, distance, flat_posteriors, posteriors

from focalcal.theory.bounds import log_classes_bound, slope_bound
from focalcal.theory.tolerance import lam_for


@given(eta=posteriors(), gamma=GAMMAS, lam=st.just(0.0) | st.floats(1e-6, 1e6), times=st.floats(1.001, 100.0))
@settings(max_examples=100)
def test_the_distance_does_not_increase_with_lam(eta, gamma, lam, times):
    larger = lam * times or 1e-3
    assert distance(eta, gamma=gamma, lam=larger) <= distance(eta, gamma=gamma, lam=lam) * (1 + 1e-12) + 1e-14


@given(eta=posteriors(), gamma=GAMMAS, tolerance=st.floats(-8.0, -0.5).map(lambda e: 10.0**e))
@settings(max_examples=60)
def test_safe_and_no_larger_than_needed(eta, gamma, tolerance):
    without = distance(eta, gamma=gamma, lam=0.0)
    assume(not 0.99 < tolerance / max(without, 1e-300) < 1)  # there lam is nearly 0 and q* hardly depends on it
    lam = lam_for(tolerance, eta, gamma=gamma)
    assert distance(eta, gamma=gamma, lam=lam) <= tolerance
    if without <= tolerance:
        assert lam == 0.0
    else:
        assert distance(eta, gamma=gamma, lam=0.999999 * lam) > tolerance
        assert slope_bound(eta, gamma=gamma, lam=lam) >= tolerance * (1 - 1e-9)  # a bound needs at least this lam


@pytest.mark.parametrize("gamma", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("tolerance", [0.02, 1e-3, 1e-9])
def test_to_ten_digits_over_many_posteriors(gamma, tolerance):
    eta = flat_posteriors(10, 300, smallest=1e-6)
    lam = lam_for(tolerance, eta, gamma=gamma)
    assert distance(eta, gamma=gamma, lam=lam).max() <= tolerance
    assert distance(eta, gamma=gamma, lam=(1 - 1e-10) * lam).max() > tolerance
    alone = [lam_for(tolerance, row, gamma=gamma) for row in eta[:20]]
    assert lam_for(tolerance, eta[:20].reshape(4, 5, 10), gamma=gamma) == pytest.approx(max(alone), rel=1e-10, abs=0)


@pytest.mark.parametrize("share", [1e-16, 1e-15, 1e-12])
def test_at_the_last_digit_of_the_distance_without_an_anchor(share):
    eta = [0.7, 0.2, 0.1]
    tolerance = float(distance(eta, gamma=2.0, lam=0.0)) * (1 - share)
    lam = lam_for(tolerance, eta, gamma=2.0)
    assert lam < 1e-10
    assert distance(eta, gamma=2.0, lam=lam) <= tolerance


def test_no_anchor_needed():
    assert lam_for(1e-200, flat_posteriors(10, 300, smallest=1e-6), gamma=0.0) == 0.0
    assert lam_for(1e-12, [0.0, 1.0, 0.0], gamma=5.0) == 0.0
    assert lam_for(1e-12, [0.25] * 4, gamma=5.0) == 0.0
    assert lam_for(0.9, [0.7, 0.2, 0.1], gamma=5.0) == 0.0


def test_a_tiny_tolerance():
    # lam |q* - eta|_2 tends to |psi_bar - psi|_2 / 2 = sqrt(6) / 24 (tests/theory/test_bounds.py, by hand)
    for tolerance in (1e-200, 1e-300):
        expected = np.sqrt(6) / 24 / tolerance
        assert lam_for(tolerance, [0.5, 0.25, 0.25], gamma=1.0) == pytest.approx(expected, rel=1e-9, abs=0)
    assert lam_for(1e-300, classes=3, gamma=1.0) == pytest.approx(0.5e300)


def test_certified_by_hand():
    # gamma = 1: psi(t) + 1 = t log t + t, so |psi + 1| / sqrt(t) = sqrt(t) |1 + log t|, largest at t = 1: B = 1
    assert lam_for(1e-3, classes=10, gamma=1.0) == pytest.approx(500)
    # a coarse tolerance, where log 2 / 9 = 0.077 is below 1 / 6
    assert lam_for(3.0, classes=2, gamma=1.0) == pytest.approx(np.log(2) / 9)
    assert log_classes_bound(2, lam=lam_for(3.0, classes=2, gamma=1.0)) == pytest.approx(3.0)
    hardest = lam_for(1e-3, classes=10, gamma=5.0)
    assert lam_for(1e-3, classes=10, gamma=[1.0, 5.0]) == pytest.approx(hardest, rel=1e-12)
    assert hardest > 500
    assert lam_for(1e-3, classes=10, gamma=0.0) == 0.0
    assert lam_for(1e-3, classes=1, gamma=2.0) == 0.0


@pytest.mark.parametrize("tolerance", [0.05, 1e-3, 1e-5])
def test_the_certificate_covers_every_posterior(tolerance):
    eta = flat_posteriors(4, 200, smallest=1e-9)
    certified = lam_for(tolerance, classes=4, gamma=3.0)
    assert (distance(eta, gamma=3.0, lam=certified) <= tolerance).all()
    assert lam_for(tolerance, eta, gamma=3.0) <= certified
