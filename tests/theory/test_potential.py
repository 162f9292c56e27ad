"""phi, its derivatives and psi: in fifty digits, at the ends, at huge gamma, and what is refused."""

import mpmath as mp
import numpy as np
import pytest

from focalcal.theory.potential import curvature_at, minus_psi_at, phi, phi_at, phi_curvature, phi_slope, psi

US = [1e-300, 1e-20, 1e-9, 1e-6, 1e-3, 0.1, 0.3, 0.49, 0.51, 0.9, 1 - 1e-9]
GAMMAS = [0.0, 1e-12, 0.3, 1.0, 2.0, 20.0, 1e3, 1e6, 1e9, 1e15]


def in_fifty_digits(u, c, gamma):
    """phi, -u phi' and u^2 phi'' from u and c = 1 - u."""
    with mp.workdps(60):
        u, c, g = mp.mpf(u), mp.mpf(c), mp.mpf(gamma)
        log = mp.log(u) if u < 0.5 else mp.log1p(-c)
        log_c = mp.log1p(-u) if u < 0.5 else mp.log(c)
        power = mp.exp(g * log_c)
        slope = -u * g * power / c * log + power
        curvature = -g * (g - 1) * power / c**2 * log * u**2 + 2 * g * power / c * u + power
        return [-power * log, slope, curvature]


def assert_close(found, expected):
    assert float(found) == pytest.approx(float(expected), rel=2e-13, abs=1e-300)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("u", US)
def test_fifty_digits_agree_for_every_gamma(u, gamma):
    with mp.workdps(60):
        value, slope, curvature = in_fifty_digits(u, 1 - mp.mpf(u), gamma)
        assert_close(phi(u, gamma), value)
        assert_close(psi(u, gamma), -slope)
        assert_close(phi_slope(u, gamma), -slope / u)
        assert_close(phi_curvature(u, gamma), min(curvature / mp.mpf(u) ** 2, mp.inf))


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0, 2.0, 20.0])
@pytest.mark.parametrize("c", [1e-3, 1e-17, 1e-30, 1e-200])
def test_near_one_the_complement_has_the_digits(c, gamma):
    for at, expected in zip((phi_at, minus_psi_at, curvature_at), in_fifty_digits(1 - c, c, gamma), strict=True):
        assert_close(at(np.array(1 - c), np.array(c), np.array(gamma)), expected)


def test_the_ends():
    for gamma in (0.0, 0.3, 1.0, 1.5, 2.0, 1e300):
        one = float(gamma == 0)
        assert (phi(0.0, gamma), phi(1.0, gamma)) == (np.inf, 0)
        assert (psi(0.0, gamma), psi(1.0, gamma)) == (-1, -one)
        assert (phi_slope(0.0, gamma), phi_slope(1.0, gamma)) == (-np.inf, -one)
        assert phi_curvature(0.0, gamma) == np.inf
    np.testing.assert_array_equal(
        phi_curvature(1.0, [0.0, 0.3, 1.0, 1.5, 2.0, 1e300]), [1.0, np.inf, 2.0, 0.0, 0.0, 0.0]
    )


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 1e300])
def test_subnormal_probabilities_overflow_in_silence(gamma):
    assert phi_slope(5e-324, gamma) == -np.inf
    assert phi_curvature(5e-324, gamma) == np.inf
    assert psi(5e-324, gamma) == pytest.approx(-1, abs=1e-15)
    assert phi(5e-324, gamma) == pytest.approx(1074 * np.log(2))
