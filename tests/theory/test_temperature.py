"""The effective temperature of FCL's distortion: identities, an independent minimiser, and what holds of its course."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from support.drawn_posteriors import GAMMAS, LAMS, flat_posteriors, posteriors

from focalcal.theory import effective_temperature, minimise, small_distortion_temperature

LAM_GRID = np.r_[0.0, 2.0 ** np.arange(-6, 12)]


def by_scipy(eta, gamma, lam, weights=None):
    q = minimise(eta, gamma=gamma, lam=lam).unwrap()
    weights = np.full(len(eta), 1 / len(eta)) if weights is None else weights

    def loss(log_t):
        return -weights @ (eta * log_softmax(np.log(q) / np.exp(log_t), axis=1)).sum(1)

    return np.exp(minimize_scalar(loss, bounds=(-3.0, 2.0), method="bounded", options={"xatol": 1e-10}).x)


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
@pytest.mark.parametrize(("gamma", "lam"), [(0.5, 0.0), (3.0, 1.0), (5.0, 0.1), (2.0, 30.0)])
def test_agrees_with_a_general_minimiser(classes, gamma, lam):
    eta = flat_posteriors(classes, 50, smallest=1e-5)
    weights = np.random.default_rng(1).dirichlet(np.ones(50))
    for given_weights in (None, weights):
        found = effective_temperature(eta, gamma=gamma, lam=lam, weights=given_weights)
        assert found == pytest.approx(by_scipy(eta, gamma, lam, given_weights), rel=1e-6)


def test_the_slope_vanishes_to_rounding():
    """The derivative in 1/T of the mean cross-entropy, from its definition, with probabilities down to 1e-30."""
    logits = np.random.default_rng(0).normal(size=(200, 20)) * 12
    eta = np.exp(log_softmax(logits, axis=1))
    b = 1 / effective_temperature(eta, gamma=3.0, lam=0.7)
    log_q = np.log(minimise(eta, gamma=3.0, lam=0.7).q)
    slopes = ((np.exp(log_softmax(b * log_q, axis=1)) - eta) * log_q).sum(1)
    assert abs(slopes.sum()) < 1e-13 * np.abs(slopes).sum()


@given(eta=posteriors(), lam=st.just(0.0) | LAMS)
def test_without_focusing_nothing_is_distorted(eta, lam):
    assert effective_temperature(eta, gamma=0.0, lam=lam) == 1.0


def test_the_closed_form_is_right_to_first_order():
    eta = flat_posteriors(5, 200, smallest=1e-3)
    lams = np.array([10.0, 100.0, 1000.0])
    exact = effective_temperature(eta, gamma=2.0, lam=lams)
    close = np.array([small_distortion_temperature(eta, gamma=2.0, lam=lam) for lam in lams])
    errors = np.abs(close - exact)
    assert (errors[1:] < errors[:-1] / 50).all()  # falls with 1 / lam^2
    assert errors[-1] < 0.002 * (1 - exact[-1])
    assert small_distortion_temperature([0.5, 0.5], gamma=2.0, lam=1.0) == 1.0


@given(p=st.floats(0.501, 1 - 1e-9), gamma=st.floats(0.1, 8.0), lam=st.just(0.0) | LAMS)
def test_of_one_pair_of_classes_it_is_the_ratio_of_log_odds(p, gamma, lam):
    eta = np.array([p, 1 - p])
    q = minimise(eta, gamma=gamma, lam=lam).q
    expected = np.log(q[0] / q[1]) / np.log(p / (1 - p))
    found = effective_temperature(eta, gamma=gamma, lam=lam)
    assert found == pytest.approx(expected, rel=1e-9)
    assert found < 1 + 1e-12


@settings(max_examples=40)
@given(p=st.lists(st.floats(0.02, 0.98), min_size=1, max_size=6), gamma=st.floats(0.1, 8.0))
def test_of_two_classes_it_rises_with_lam(p, gamma):
    """Proven for one posterior, checked for several."""
    eta = np.stack([p, 1 - np.array(p)], 1)
    course = effective_temperature(eta, gamma=gamma, lam=LAM_GRID)
    assert (np.diff(course) > -1e-12).all()


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10_000),
    classes=st.sampled_from([3, 10, 30]),
    scale=st.floats(3.0, 12.0),
    gamma=st.floats(0.5, 6.0),
)
def test_of_confident_posteriors_it_rises_with_lam(seed, classes, scale, gamma):
    """Posteriors such as networks have: softmax of Gaussian logits, with a class that leads."""
    logits = np.random.default_rng(seed).normal(size=(100, classes)) * scale
    logits[:, 0] += scale
    course = effective_temperature(np.exp(log_softmax(logits, axis=1)), gamma=gamma, lam=LAM_GRID)
    assert (course < 1).all()
    assert (np.diff(course) > 0).all()


def test_it_does_not_rise_everywhere():
    """Two classes that nearly tie beside a rare one: a weak anchor moves the rare class first."""
    course = effective_temperature([0.5129, 0.4870, 0.0001], gamma=5.0, lam=[0.0, 0.25, 64.0])
    assert course[1] < course[0] - 1e-3
    assert course[2] > course[0]


@pytest.mark.parametrize(
    ("classes", "gamma", "edge"),
    [(10, 1.0, 0.186), (20, 3.0, 0.135), (100, 1.0, 0.340), (100, 3.0, 0.217), (100, 5.0, 0.158), (1000, 3.0, 0.247)],
)
def test_between_the_uniform_and_a_degenerate_posterior_it_exceeds_one(classes, gamma, edge):
    """The table in docs/math/operating_point.md: one class has p, the others share the rest equally."""
    for p, exceeds in ((edge - 0.001, True), (edge + 0.001, False)):
        eta = np.r_[p, np.full(classes - 1, (1 - p) / (classes - 1))]
        assert ((effective_temperature(eta, gamma=gamma, lam=[0.0, 1.0, 30.0]) > 1) == exceeds).all()


def test_under_a_strong_anchor_the_sign_of_the_first_order_decides_from_which_side_it_nears_one():
    for p, side in ((0.1, 1), (0.8, -1)):  # a flat posterior (A < 0) and a confident one (A > 0)
        eta = np.r_[p, np.full(19, (1 - p) / 19)]
        gaps = effective_temperature(eta, gamma=3.0, lam=[1e2, 1e3, 1e4]) - 1
        assert (side * gaps > 0).all()
        assert (side * np.diff(gaps) < 0).all()


@given(eta=posteriors(), gamma=GAMMAS, lam=st.just(0.0) | LAMS)
def test_any_posterior_has_one(eta, gamma, lam):
    """Absent classes, vertices and ties included; the order and the number of absent classes do not matter."""
    found = effective_temperature(eta, gamma=gamma, lam=lam)
    assert 0 < found < np.inf
    present = eta[eta > 0]
    if present.max() - present.min() < 1e-6:  # uniform: every temperature will do, and rounding chooses
        return
    padded = np.r_[0.0, eta[::-1]]
    assert effective_temperature(padded, gamma=gamma, lam=lam) == pytest.approx(found, rel=1e-6)


def test_weights_repeat_rows():
    eta = flat_posteriors(4, 3, smallest=1e-3)
    weighted = effective_temperature(eta, gamma=3.0, lam=1.0, weights=[0.5, 0.25, 0.25])
    repeated = effective_temperature(eta[[0, 0, 1, 2]], gamma=3.0, lam=1.0)
    assert weighted == pytest.approx(repeated, rel=1e-13)
    alone = effective_temperature(eta, gamma=3.0, lam=1.0, weights=[0.0, 1.0, 0.0])
    assert alone == pytest.approx(effective_temperature(eta[1], gamma=3.0, lam=1.0), rel=1e-13)


@pytest.mark.parametrize("classes", [2, 3, 7, 49, 1000])
@pytest.mark.parametrize("present", [1.0, 0.6])
def test_posteriors_that_no_temperature_changes(classes, present):
    """Uniform on their supports, but for rounding: T = 1 by convention."""
    draws = np.random.default_rng(classes)
    eta = (draws.random((20, classes)) < present) | (np.arange(classes) == 0)
    eta = eta / eta.sum(1, keepdims=True) * (1 + 1.1e-16 * draws.integers(-2, 3, eta.shape))
    for lam in (0.0, 1.0, 1e3):
        assert effective_temperature(eta, gamma=3.0, lam=lam) == 1.0
        assert small_distortion_temperature(eta, gamma=3.0, lam=lam) == 1.0
    mixed = np.concatenate([eta, np.r_[0.5, np.full(classes - 1, 0.5 / (classes - 1))][None]])  # not uniform for K > 2
    alone = effective_temperature(mixed[-1], gamma=3.0, lam=1.0)
    assert effective_temperature(mixed, gamma=3.0, lam=1.0) == pytest.approx(alone, rel=1e-12)
