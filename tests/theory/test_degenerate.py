"""Posteriors with constant psi: q* = eta exactly for every lam; and for which K and gamma they exist."""

import numpy as np
import pytest
from scipy.optimize import brentq
from support.drawn_posteriors import distance

from focalcal.theory import degenerate
from focalcal.theory.bias import first_order_bias
from focalcal.theory.bounds import slope_bound
from focalcal.theory.degenerate import degenerate_posterior
from focalcal.theory.potential import psi

CASES = [(4, 1e-3), (4, 1.0), (5, 2.0), (5, 3.0), (6, 0.5), (7, 5.0), (10, 2.0), (10, 10.0), (100, 3.0), (1000, 5.0)]


@pytest.mark.parametrize(("classes", "gamma"), CASES)
def test_two_levels_of_one_psi(classes, gamma):
    eta = degenerate_posterior(classes, gamma=gamma)
    assert eta.shape == (classes,)
    assert eta.sum() == pytest.approx(1.0, abs=1e-14)
    assert (eta > 0).all()
    assert len(set(eta)) == 2
    assert eta[0] > 1.01 * eta[-1]
    assert np.ptp(psi(eta, gamma)) < 1e-14


@pytest.mark.parametrize(("classes", "gamma"), CASES)
def test_no_anchor_weight_distorts_them(classes, gamma):
    eta = degenerate_posterior(classes, gamma=gamma)
    lams = np.array([0.0, 1e-3, 1.0, 100.0, 1e6])
    assert distance(eta, gamma=gamma, lam=lams).max() < 1e-14
    assert slope_bound(eta, gamma=gamma, lam=1.0) < 1e-13
    assert np.abs(first_order_bias(eta, gamma=gamma, lam=1.0)).max() < 1e-14


@pytest.mark.parametrize(("classes", "gamma"), [(4, 1.0), (10, 2.0), (100, 3.0)])
def test_nearby_posteriors_are_distorted(classes, gamma):
    eta = degenerate_posterior(classes, gamma=gamma)
    moved = eta + np.where(eta == eta[0], 1.0, -(eta == eta[0]).sum() / (eta != eta[0]).sum()) * eta[-1] / 10
    assert distance(moved, gamma=gamma, lam=1.0) > 1e-5
    assert distance(eta, gamma=1.1 * gamma, lam=1.0) > 1e-5


def test_by_hand():
    # gamma = 1: psi(t) = t log t + t - 1, and psi(b) = psi(a) reads b (1 + log b) = a (1 + log a).
    # With b = r a this is log a = -1 - r log(r) / (r - 1): any r > 1 gives a pair, and 3 b + a = 1 fixes r.
    def left(r):
        return (3 * r + 1) * np.exp(-1 - r * np.log(r) / (r - 1)) - 1

    r = brentq(left, 1.01, 1e6, xtol=1e-12)
    eta = degenerate_posterior(4, gamma=1.0)
    assert eta[0] / eta[3] == pytest.approx(r, rel=1e-9, abs=0)
    np.testing.assert_allclose(eta, [r / (3 * r + 1)] * 3 + [1 / (3 * r + 1)], rtol=1e-10)


# Up to which gamma K classes have them: (K - 1) b_max = 1.
@pytest.mark.parametrize(("classes", "largest"), [(4, 1.42885), (5, 3.07023), (6, 4.85055), (10, 12.79835)])
def test_for_which_gamma_they_exist(classes, largest):
    assert distance(degenerate_posterior(classes, gamma=0.999 * largest), gamma=0.999 * largest, lam=1.0) < 1e-14
    with pytest.raises(ValueError, match=f"classes must be at least {classes + 1} for gamma = .*, got {classes}: with"):
        degenerate_posterior(classes, gamma=1.001 * largest)


# K t_0 = 1: psi has its minimum at the uniform posterior. No other n_b helps with five and six classes.
MINIMUM_AT_UNIFORM = {5: 0.0293205235231054, 6: 0.4188937344875275}


@pytest.mark.parametrize("off", [0.0, 1e-15, -1e-15, 2e-14, -2e-14, 1e-10, -1e-10, 1e-12, -1e-12, -1e-8])
@pytest.mark.parametrize("classes", [5, 6])
def test_the_two_exceptions(classes, off):
    gamma = MINIMUM_AT_UNIFORM[classes] * (1 + off)
    t = np.linspace(0.9, 1.1, 200_001) / classes
    assert t[minus_psi(t, gamma).argmax()] * classes == pytest.approx(1, abs=1e-5)
    message = rf"gamma must not be so close .* got 0\.\d+ with {classes} classes: .*; move gamma by 1e-4 of itself"
    with pytest.raises(ValueError, match=message):
        degenerate_posterior(classes, gamma=gamma)


@pytest.mark.parametrize("classes", [7, 8, 9, 10, 15, 30, 100])
def test_what_makes_seven_classes_enough(classes):
    gamma = brentq(lambda g: classes * degenerate._lowest_point(g) - 1, 1e-3, 1e3, xtol=1e-13)
    assert minus_psi(1 / ((classes - 1) // 2), gamma) > 1  # 1 / n_b < b_max


def minus_psi(t, gamma):
    return (1 - t) ** gamma - gamma * t * np.log(t) * (1 - t) ** (gamma - 1)


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0])
def test_what_excludes_the_others(gamma):
    """psi falls once and rises once; of a pair with psi(a) = psi(b), a + b < b_max < 1/2, so that
    n_a a + n_b b <= b_max + (K - 2) b < (K - 1) b_max."""
    t = np.exp(np.linspace(-30, -1e-6, 200_001))
    size = minus_psi(t, gamma)
    turn = size.argmax()
    assert (np.diff(size[: turn - 1000]) >= -1e-15).all()
    assert (np.diff(size[turn + 1000 :]) <= 1e-15).all()
    largest = brentq(lambda b: minus_psi(b, gamma) - 1, t[turn], 0.999, xtol=1e-15)
    assert largest < 0.5
    pairs = 1 / t[turn] - 1 / largest
    assert pairs > 1  # so K > 1 / t_0 has enough classes for (K - 1) b_max > 1
    for b in np.linspace(t[turn], largest, 102)[2:-1]:
        a = brentq(lambda a, b=b: minus_psi(a, gamma) - minus_psi(b, gamma), 1e-300, t[turn], xtol=1e-300)
        assert a + b < largest


@pytest.mark.parametrize("gamma", [0.01, 1.0, 3.0])
def test_three_classes_have_none(gamma):
    grid = np.arange(1, 400) / 400
    a, b = (axis.ravel() for axis in np.meshgrid(grid, grid))
    eta = np.stack([a, b, 1 - a - b], -1)[(a + b < 0.9999) & (a >= b)]
    eta = eta[np.abs(eta - 1 / 3).max(-1) > 0.01]
    assert np.ptp(psi(eta, gamma), axis=-1).min() > 1e-3 * gamma / (1 + gamma)
    with pytest.raises(ValueError, match="got 3"):
        degenerate_posterior(3, gamma=gamma)
