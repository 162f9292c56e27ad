"""The two closed forms of q* - eta: by hand, against their definitions, and against the solver."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from support.drawn_posteriors import GAMMAS, LAMS, flat_posteriors, posteriors

from focalcal.theory.bias import asymptote_delay, first_order_bias, first_order_constant, pre_asymptotic_bias
from focalcal.theory.minimiser import minimise
from focalcal.theory.potential import phi_curvature, psi


def relative_error(bias, exact):
    return np.linalg.norm(bias - exact, axis=-1) / np.linalg.norm(exact, axis=-1)


def test_by_hand():
    eta = [0.5, 0.25, 0.25]
    # gamma = 1: psi(t) = t log t - 1 + t, and 1/2 log 1/2 = 1/4 log 1/4, so psi(1/2) = psi(1/4) + 1/4.
    # psi_bar - psi(1/2) = -2/3 * 1/4 = -1/6, halved
    np.testing.assert_allclose(first_order_bias(eta, gamma=1.0, lam=1.0), [-1 / 12, 1 / 24, 1 / 24], rtol=1e-12)
    assert first_order_constant(eta, gamma=1.0) == pytest.approx(1 / 12)
    # t phi''(t) = 2 + (1 - t) / t = 3 and 5, so h = 5 and 7 at lam = 1, with weights 1/5 : 2/7 = 7 : 10.
    # nu - psi(1/2) = 10/17 (psi(1/4) - psi(1/2)) = -10/68; divided by 5 it is -1/34
    np.testing.assert_allclose(pre_asymptotic_bias(eta, gamma=1.0, lam=1.0), [-1 / 34, 1 / 68, 1 / 68], rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("classes", [2, 3, 20])
def test_the_error_of_first_order_is_of_order_one_over_lam(gamma, classes):
    """lam (q* - eta) tends to the first-order term, lam max |q* - eta| to C; what is left falls tenfold with lam."""
    eta = flat_posteriors(classes, 30, smallest=5e-3 if classes < 20 else 1e-3)
    left, left_of_constant = [], []
    for lam in (1e6, 1e7):
        exact = minimise(eta, gamma=gamma, lam=lam).displacement
        left.append(np.linalg.norm(lam * exact - first_order_bias(eta, gamma=gamma, lam=1.0), axis=-1))
        left_of_constant.append(lam * np.abs(exact).max(-1) - first_order_constant(eta, gamma=gamma))
    np.testing.assert_allclose(left[0] / left[1], 10.0, rtol=0.02)
    np.testing.assert_allclose(left_of_constant[0] / left_of_constant[1], 10.0, rtol=0.02)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
def test_the_relative_error_of_the_newton_step_is_of_order_one_over_lam_squared(gamma):
    eta = flat_posteriors(4, 30, smallest=2e-2)
    errors = [
        relative_error(pre_asymptotic_bias(eta, gamma=gamma, lam=lam), minimise(eta, gamma=gamma, lam=lam).displacement)
        for lam in (1e4, 1e5)
    ]
    assert np.median(errors[0]) < 1e-5
    np.testing.assert_allclose(np.median(errors[0] / errors[1]), 100.0, rtol=0.1)


@pytest.mark.parametrize("gamma", [1.0, 3.0, 5.0])
@pytest.mark.parametrize("classes", [3, 10, 100])
def test_the_newton_step_beats_first_order_where_people_train(gamma, classes):
    eta = flat_posteriors(classes, 200, smallest=1e-4)
    exact = minimise(eta, gamma=gamma, lam=1.0).displacement
    newton = relative_error(pre_asymptotic_bias(eta, gamma=gamma, lam=1.0), exact)
    first = relative_error(first_order_bias(eta, gamma=gamma, lam=1.0), exact)
    assert np.median(newton) < 0.3
    assert np.median(first) > 1.0
    assert (newton < first).all()


@given(eta=posteriors(), gamma=GAMMAS, lam=LAMS)
@settings(max_examples=100)
def test_both_sum_to_zero_and_agree_for_large_lam(eta, gamma, lam):
    first, newton = (bias(eta, gamma=gamma, lam=lam) for bias in (first_order_bias, pre_asymptotic_bias))
    assert abs(first.sum()) <= 1e-13 / lam
    assert abs(newton.sum()) <= 1e-13
    assert (first[eta == 0] == 0).all()
    assert (newton[eta == 0] == 0).all()
    large = 1e6 / eta[eta > 0].min() * (1 + gamma) ** 2
    np.testing.assert_allclose(
        large * pre_asymptotic_bias(eta, gamma=gamma, lam=large), first_order_bias(eta, gamma=gamma, lam=1.0), atol=1e-4
    )


@pytest.mark.parametrize("lam", [0.0, 0.3, 10.0])
@pytest.mark.parametrize("gamma", [0.0, 0.4, 1.0, 3.0])
def test_the_newton_step_solves_the_linear_system(gamma, lam):
    eta = np.array([0.55, 0.25, 0.15, 0.05])
    system = np.zeros((5, 5))  # h_k d_k - nu = -psi(eta_k), sum d = 0
    system[:4, :4] = np.diag(eta * phi_curvature(eta, gamma) + 2 * lam)
    system[:4, 4], system[4, :4] = -1.0, 1.0
    want = np.linalg.solve(system, np.append(-psi(eta, gamma), 0.0))[:4]
    np.testing.assert_allclose(pre_asymptotic_bias(eta, gamma=gamma, lam=lam), want, rtol=1e-11, atol=1e-15)


def newton_with_digits(eta, gamma, lam):
    """(first order at lam, one Newton step) with 80 digits; the last class holds what the others leave."""
    with mp.workdps(80):
        t = [mp.mpf(v) for v in eta[:-1]]
        t.append(1 - mp.fsum(t))
        g, weight = mp.mpf(gamma), mp.mpf(lam)
        minus_psi = [(1 - v) ** g - g * v * (1 - v) ** (g - 1) * mp.log(v) for v in t]
        curvature = [
            -g * (g - 1) * v * (1 - v) ** (g - 2) * mp.log(v) + 2 * g * (1 - v) ** (g - 1) + (1 - v) ** g / v for v in t
        ]
        h = [c + 2 * weight for c in curvature]
        mean = mp.fsum(minus_psi) / len(t)
        nu = mp.fsum(m / c for m, c in zip(minus_psi, h, strict=True)) / mp.fsum(1 / c for c in h)
        first = [float((m - mean) / (2 * weight)) for m in minus_psi]
        return first, [float((m - nu) / c) for m, c in zip(minus_psi, h, strict=True)]


@pytest.mark.parametrize("gamma", [0.01, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("others", [[1e-6], [1e-20], [1e-20, 3e-9], [1e-100, 1e-30, 1e-16]])
def test_near_a_vertex_no_digits_are_lost(gamma, others):
    eta = np.append(others, 1 - np.sum(others))  # which rounds to 1 for most
    for lam in (1e-3, 1.0, 1e3):
        first, newton = newton_with_digits(eta, gamma, lam)
        np.testing.assert_allclose(first_order_bias(eta, gamma=gamma, lam=lam), first, rtol=1e-11)
        scale = np.abs(newton).max()
        np.testing.assert_allclose(
            pre_asymptotic_bias(eta, gamma=gamma, lam=lam), newton, rtol=1e-8, atol=1e-12 * scale
        )


def test_nothing_moves_at_a_vertex_or_without_focusing():
    for bias in (first_order_bias, pre_asymptotic_bias):
        assert (bias([0.0, 1.0, 0.0], gamma=[0.0, 0.5, 3.0], lam=1.0) == 0).all()
        assert (bias([0.7, 0.2, 0.1], gamma=0.0, lam=1.0) == 0).all()
    assert first_order_constant([0.7, 0.2, 0.1], gamma=0.0) == 0


@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
def test_the_delay_is_the_second_term_of_the_distortion(gamma):
    """lam |q* - eta|_inf = C (1 - kappa / (2 lam) + O(1 / lam^2)): the rest falls a hundredfold for tenfold lam."""
    eta = np.array([[0.6, 0.25, 0.1, 0.05, 0.0], [0.3, 0.3, 0.2, 0.15, 0.05]])
    constant, kappa = first_order_constant(eta, gamma=gamma), asymptote_delay(eta, gamma=gamma)
    left = [
        lam * np.abs(minimise(eta, gamma=gamma, lam=lam).displacement).max(-1) / constant - 1 + kappa / (2 * lam)
        for lam in (1e3, 1e4)
    ]
    np.testing.assert_allclose(left[0] / left[1], 100, rtol=0.1)
    assert (np.abs(kappa) > 1).all()
