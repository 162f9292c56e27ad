"""The compiled Newton method against the one on NumPy arrays: the same answers and the same verdicts.

`make sanitize` runs this file once more with AddressSanitizer watching every access.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal import _native
from focalcal.theory.newton import solve_natively, solve_with_numpy

pytestmark = pytest.mark.skipif(not _native.available(), reason="the native kernel was not built here")

GAMMAS = np.array([0, 1e-12, 1e-3, 0.1, 0.5, 0.999, 1, 1.5, 2, 3, 5, 10, 50, 1000])
LAMS = np.array([0, 5e-324, 1e-300, 1e-6, 0.1, 1, 10, 1e6, 1e10, 1e20, 1e100, 1e300, 1.7e308])
HARD = {
    "subnormal": [1.0, 5e-324, 1e-320],
    "several units": [1.0, 15 * 5e-324, 15 * 5e-324, 2 * 5e-324],
    "almost a vertex": [1.0, 1e-300],
    "a tie, nearly": [0.5, 0.5 - 1e-9, 1e-9],
    "near one-hot": [1 - 1e-12, 5e-13, 5e-13],
    "on the boundary": [0.0, 0.3, 0.0, 0.6, 0.1, 0.0],
    "wide": [1e-200, 0.6, 0.4 - 1e-9, 1e-9],
    "one class": [1.0],
    "a vertex": [0.0, 0.0, 1.0],
    "uniform": [0.5, 0.5],
    "uniform over 1000": [1e-3] * 1000,
}


def accepted(roots):
    return (roots.stationarity <= 1e-12) | (roots.excess <= 1e-12)


def assert_agree(eta, gamma, lam, *, absolute):
    """To 1e-11, or to what the rounding floor leaves of it."""
    here, there = (
        solve(eta, gamma, lam, max_steps=200, absolute=absolute) for solve in (solve_natively, solve_with_numpy)
    )
    for part in (here.q, here.displacement, here.stationarity, here.floor, here.excess):
        assert not np.isnan(part).any()
    # The same verdicts, but for rows whose figure lies at the limit, where rounding decides.
    figures = [np.minimum(roots.stationarity, roots.excess) for roots in (here, there)]
    clear = np.all([(figure < 1e-13) | (figure > 1e-11) for figure in figures], axis=0)
    np.testing.assert_array_equal(accepted(here)[clear], accepted(there)[clear])
    assert ((here.q >= 0) & (here.q <= 1)).all()
    assert (here.q[eta == 0] == 0).all()
    known = accepted(here) & accepted(there) & (there.floor < 1e-9)
    slack = (1e-11 + 100 * there.floor)[known, None]
    q, d, e = there.q[known], there.displacement[known], eta[known]
    unit = 5e-324 * 4  # the spacing of subnormal numbers, and what it does to their sums
    assert (np.abs(here.q[known] - q) <= slack * q + unit).all()
    # Rounding within the floor moves q by about as much of itself, and d with it, however small d is by cancellation.
    rounding = 10 * there.floor[known, None] * np.maximum(q, e)
    assert (np.abs(here.displacement[known] - d) <= 1e-11 * np.abs(d) + rounding + unit).all()
    finite = known & np.isfinite(there.log_multiplier)
    np.testing.assert_array_equal(here.log_multiplier[known & ~finite], there.log_multiplier[known & ~finite])
    logs, others = here.log_multiplier[finite], there.log_multiplier[finite]
    # s is of the size of (1 - q_m)^gamma: gamma times the relative error of 1 - q_m
    assert (np.abs(logs - others) <= 1e-11 + 10 * ((1 + gamma) * there.floor)[finite]).all()


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("name", HARD)
def test_hard_posteriors_at_any_gamma_and_lam(name, absolute):
    eta = np.array(HARD[name]) / np.sum(HARD[name])
    gamma, lam = (part.ravel() for part in np.meshgrid(GAMMAS, LAMS))
    assert_agree(np.tile(eta, (len(gamma), 1)), gamma, lam, absolute=absolute)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 4, 10, 30, 1000])
def test_posteriors_of_every_spread(classes, absolute):
    rng = np.random.default_rng(classes)
    count = 1000 if classes < 1000 else 20
    weight = 10.0 ** -rng.uniform(0, rng.choice([1, 4, 12, 300], size=(count, 1)), size=(count, classes))
    weight[:, 1:][rng.random((count, classes - 1)) < 0.1] = 0.0
    gamma, lam = 10 ** rng.uniform(-2, 3 if classes < 1000 else 1, count), 10 ** rng.uniform(-4, 5, count)
    assert_agree(weight / weight.sum(1, keepdims=True), gamma, lam, absolute=absolute)


@settings(max_examples=100)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(0, 1), st.floats(-320, 0).map(lambda p: 10.0**p)), min_size=1).filter(
        lambda weights: sum(weights) > 1e-300
    ),
    st.one_of(st.just(0.0), st.floats(0, 20)),
    st.one_of(st.just(0.0), st.floats(-300, 300).map(lambda p: 10.0**p)),
    st.booleans(),
)
def test_anything(weights, gamma, lam, absolute):
    eta = np.array([weights]) / np.sum(weights)
    assert_agree(eta / eta.sum(), np.array([gamma]), np.array([lam]), absolute=absolute)


@pytest.mark.parametrize("max_steps", [1, 2, 3])
def test_max_steps_is_the_most_there_are(max_steps):
    rng = np.random.default_rng(0)
    eta, parameters = rng.dirichlet(np.ones(5), size=50), np.full((2, 50), 2.0)
    here, there = (solve(eta, *parameters, max_steps=max_steps) for solve in (solve_natively, solve_with_numpy))
    assert here.steps.max() == max_steps
    np.testing.assert_allclose(here.q, there.q, rtol=1e-12)
    np.testing.assert_allclose(here.stationarity, there.stationarity, rtol=1e-6, atol=1e-12)


def test_any_layout_and_no_rows():
    rng = np.random.default_rng(0)
    eta, gamma, lam = rng.dirichlet(np.ones(4), size=6), rng.uniform(0, 5, 6), rng.uniform(0, 5, 6)
    expected = solve_natively(eta, gamma, lam).q
    np.testing.assert_allclose(solve_natively(np.asfortranarray(eta), gamma, lam).q, expected, rtol=1e-11)
    np.testing.assert_allclose(solve_natively(eta[::2], gamma[::2], lam[::2]).q, expected[::2], rtol=1e-11)
    assert solve_natively(eta[:0], gamma[:0], lam[:0]).q.shape == (0, 4)


def test_what_does_not_fit_together_is_refused():
    eta, two, three = np.full((2, 2), 0.5), np.ones(2), np.ones(3)
    for gamma, lam in ((three, two), (two, three), (np.ones((2, 1)), two)):
        with pytest.raises(ValueError, match="gamma and lam"):
            solve_natively(eta, gamma, lam)
    with pytest.raises(ValueError, match="inconsistent"):
        solve_natively(np.zeros((2, 0)), two, two)
    with pytest.raises(ValueError, match="inconsistent"):
        solve_natively(eta, two, two, max_steps=0)
    with pytest.raises(TypeError, match="takes 11 arguments"):
        _native.kernel().minimisers(1, 2)


@pytest.mark.parametrize("junk", [np.nan, np.inf, -1.0])
def test_junk_ends(junk):
    """What `minimise` refuses has no right answer here, but an end."""
    eta = np.array([[0.5, 0.5, junk], [0.7, 0.2, 0.1], [0.7, 0.2, 0.1]])
    gamma, lam = np.array([2.0, junk, 2.0]), np.array([1.0, 1.0, junk])
    for absolute in (False, True):
        assert solve_natively(eta, gamma, lam, absolute=absolute).steps.max() <= 200


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment, check=False
    )
    return done.stdout.strip() or done.stderr


@pytest.mark.once
def test_it_can_be_turned_off():
    code = "from focalcal import _native; from focalcal.theory import minimise; print(_native.available())"
    assert run(code + "; minimise([.7, .3], gamma=2, lam=1).unwrap()", FOCALCAL_NATIVE="0") == "False"


@pytest.mark.once
def test_the_theory_needs_no_torch():
    code = """
import sys
from focalcal import _native, theory
every = [getattr(theory, name) for name in theory.__all__]
theory.minimise([0.7, 0.3], gamma=2, lam=1)
theory.largest_distortion(3, gamma=2.0, lam=1.0)
theory.ece_chain([[0.7, 0.3]], [[0.6, 0.4]])
theory.recover([0.7, 0.3], gamma=2, lam=1)
print(_native.available(), "focalcal._native._kernel" in sys.modules, "torch" in sys.modules)
"""
    assert run(code, FOCALCAL_NATIVE="1") == "True True False"
