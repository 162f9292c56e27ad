"""The bounds on |q* - eta|_2 against the solver, by hand, and where they promise nothing."""

from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.drawn_posteriors import GAMMAS, LAMS, distance, flat_posteriors, posteriors

from focalcal.theory.bounds import (
    entropy_bound,
    global_bound,
    interior_bound,
    interior_constant,
    interior_threshold,
    log_classes_bound,
    simplex_bound,
    simplex_constant,
    slope_bound,
)

ROUNDING = 1e-14  # of a displacement that is 0 in theory


def at_most(small, large):
    return small <= large * (1 + 1e-9) + ROUNDING


@given(eta=posteriors(), gamma=GAMMAS, lam=LAMS)
@settings(max_examples=100)
def test_the_chain_of_the_global_bound(eta, gamma, lam):
    chain = [
        distance(eta, gamma=gamma, lam=lam),
        global_bound(eta, gamma=gamma, lam=lam),
        entropy_bound(eta, lam=lam),
        log_classes_bound(len(eta), lam=lam),
    ]
    assert all(at_most(small, large) for small, large in pairwise(chain)), chain


@given(eta=posteriors(), gamma=GAMMAS, times=st.floats(1.0, 1e4))
@settings(max_examples=100)
def test_the_interior_bound_on_every_face(eta, gamma, times):
    lam = max(interior_threshold(eta, gamma=gamma) * times, 1e-3)
    bound = interior_bound(eta, gamma=gamma, lam=lam)
    assert np.isfinite(bound)
    assert at_most(distance(eta, gamma=gamma, lam=lam), bound)


@given(eta=posteriors(), gamma=GAMMAS, lam=LAMS)
@settings(max_examples=100)
def test_the_first_order_term_bounds_the_distance(eta, gamma, lam):
    slope = slope_bound(eta, gamma=gamma, lam=lam)
    assert at_most(distance(eta, gamma=gamma, lam=lam), slope + ROUNDING / lam)
    assert at_most(slope, simplex_bound(gamma=gamma, lam=lam) + ROUNDING / lam)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0, 5.0])
def test_the_slope_bound_is_sharp_for_large_lam(gamma):
    eta = flat_posteriors(5, 50, smallest=1e-2)
    share = distance(eta, gamma=gamma, lam=1e6) / slope_bound(eta, gamma=gamma, lam=1e6)
    np.testing.assert_allclose(share, 1.0, atol=2e-4)
    assert (share <= 1).all()


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_the_bound_over_the_simplex_does_not_grow_with_the_classes(classes):
    eta = np.random.default_rng(0).dirichlet(np.full(classes, 0.1), size=200)
    for gamma in (0.5, 1.0, 3.0, 5.0):
        for lam in (0.1, 1.0, 1000.0):
            assert (distance(eta, gamma=gamma, lam=lam) <= simplex_bound(gamma=gamma, lam=lam)).all()


@pytest.mark.parametrize(
    ("gamma", "many", "share"),
    [
        (1.0, 1, 1.0),
        (2.0, 1, 0.977),
        (2.2, 1, 0.966),
        (2.41, 1, 0.953),
        (2.6, 29, 1.0),
        (3.0, 31, 1.0),
        (20.0, 103, 1.0),
    ],
)
def test_the_constant_over_the_simplex_is_nearly_attained(gamma, many, share):
    def ratio(t):
        minus_psi = (1 - t) ** gamma - gamma * t * np.log(t) * (1 - t) ** (gamma - 1)
        return np.abs(1 - minus_psi) / np.sqrt(t)

    largest = ratio(np.exp(np.linspace(-12, 0, 200_001))).max()
    assert simplex_constant(gamma) == pytest.approx(largest, rel=1e-7, abs=0)
    assert ratio(1 / np.arange(1, 400)).argmax() + 1 == many
    tiny, rest = 1e-12, 2000 * many
    eta = np.append(np.full(many, (1 - rest * tiny) / many), np.full(rest, tiny))
    attained = slope_bound(eta, gamma=gamma, lam=0.5) / simplex_constant(gamma)
    assert share - 5e-4 < attained < min(share + 5e-4, 1)


def in_fifty_digits(gamma):
    """max |psi(t) + 1| / sqrt(t), by golden section around the best of a grid."""
    with mp.workdps(50):
        g = mp.mpf(gamma)

        def ratio(x):
            t = mp.exp(x)
            return abs(1 - mp.exp(g * mp.log1p(-t)) * (1 - g * t * x / (1 - t))) / mp.exp(x / 2)

        grid = mp.linspace(-mp.log1p(g) - 3, -mp.log1p(g) + 5, 400)
        at = max(range(400), key=lambda i: ratio(grid[i]))
        low, high = grid[at - 1], grid[at + 1]
        for _ in range(80):
            left, right = low + (high - low) * 0.4, low + (high - low) * 0.6
            low, high = (low, right) if ratio(left) > ratio(right) else (left, high)
        return ratio(low)


@pytest.mark.parametrize("gamma", [1e3, 1e6, 1e9, 1e12])
def test_the_constant_at_huge_gamma(gamma):
    assert simplex_constant(gamma) == pytest.approx(float(in_fifty_digits(gamma)), rel=1e-12, abs=0)


def test_by_hand():
    half = [0.5, 0.5]
    # Phi = 2 * 1/2 * (1 - 1/2) log 2 = log(2) / 2, and H = log 2
    assert global_bound(half, gamma=1.0, lam=2.0) == pytest.approx(np.sqrt(np.log(2) / 4))
    assert entropy_bound(half, lam=2.0) == pytest.approx(np.sqrt(np.log(2) / 2))
    assert log_classes_bound(8, lam=3.0) == pytest.approx(np.sqrt(np.log(2)))  # log 8 = 3 log 2
    # A: 1; 1 + 1/2 sqrt 2; 1 + 1; 1 + 3
    np.testing.assert_allclose(interior_constant([0.0, 0.5, 1.0, 3.0]), [1.0, 1 + np.sqrt(0.5), 2.0, 4.0])
    # lam0 = 4 * log(2) / 2 / (1/4) = 8 log 2 = 5.545; 2 A sqrt 2 / 8 = sqrt 2 / 2
    assert interior_threshold(half, gamma=1.0) == pytest.approx(8 * np.log(2))
    np.testing.assert_allclose(interior_bound(half, gamma=1.0, lam=[5.5, 8.0]), [np.inf, np.sqrt(0.5)])
    # psi(t) = t log t - 1 + t for gamma = 1, and 1/2 log 1/2 = 1/4 log 1/4: psi differs by 1/4.
    # psi_bar - psi = (-1/6, 1/12, 1/12), of norm sqrt(4/144 + 2/144); divided by 2 lam = 4
    assert slope_bound([0.5, 0.25, 0.25], gamma=1.0, lam=2.0) == pytest.approx(np.sqrt(6) / 48)
    # gamma = 1: sqrt(t) |1 + log t| is 1 at t = 1 and less elsewhere (2 e^-1.5 = 0.446 at e^-3)
    assert simplex_constant(1.0) == 1.0
    assert simplex_bound(gamma=1.0, lam=4.0) == 0.125
    assert simplex_constant(0.0) == 0.0


def test_the_ends():
    vertex = [0.0, 1.0, 0.0]
    assert interior_threshold(vertex, gamma=2.0) == 0
    assert global_bound(vertex, gamma=2.0, lam=1.0) == slope_bound(vertex, gamma=2.0, lam=1.0) == 0
    assert interior_threshold([1.0, 1e-310], gamma=1.0) == np.inf
    assert interior_bound([1.0, 1e-310], gamma=1.0, lam=1e300) == np.inf
    assert interior_bound([0.5, 0.5], gamma=1.0, lam=1e-308) == np.inf
    assert np.isfinite(global_bound([0.5, 0.5], gamma=1.0, lam=1e-308))
