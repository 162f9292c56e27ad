"""`recover` is the exact inverse of the map from a posterior to FCL's minimiser."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal.core.numerics import softmax
from focalcal.posthoc import PosteriorRecovery
from focalcal.theory.minimiser import minimise
from focalcal.theory.potential import phi_slope
from focalcal.theory.recovery import log_posterior, recover

GAMMAS = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0, 20.0]), st.floats(0.0, 20.0))
LAMS = st.one_of(st.just(0.0), st.floats(-8.0, 8.0).map(lambda power: 10.0**power))
KINDS = ("interior", "boundary", "near a vertex", "hundreds of orders of magnitude", "uniform")


def simplex_points(kind, seed, classes):
    generator = np.random.default_rng(seed)
    points = generator.dirichlet(np.ones(classes), 8)
    if kind == "boundary":
        points[:, generator.integers(0, classes, classes - 1)] = 0.0
        points[:, 0] += 0.1
    elif kind == "near a vertex":
        points *= 10.0 ** -generator.uniform(3, 280, (8, 1))
        points[:, 0] = 1.0
    elif kind == "hundreds of orders of magnitude":
        points = 10.0 ** -generator.uniform(0, 280, (8, classes))
    elif kind == "uniform":
        points[:] = 1.0
    return points / points.sum(1, keepdims=True)


def assert_same(found, expected, *, normal=1e-290):
    """Relative to each entry, where float64 holds all its digits; a number below the normal ones is only small."""
    digits = expected > normal
    np.testing.assert_allclose(found[digits], expected[digits], rtol=1e-10)
    assert (found[~digits] <= 2 * normal).all()
    assert (found[expected == 0] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 30), gamma=GAMMAS, lam=LAMS)
def test_the_posterior_comes_back(kind, seed, classes, gamma, lam):
    eta = simplex_points(kind, seed, classes)
    assert_same(recover(minimise(eta, gamma=gamma, lam=lam).unwrap(), gamma=gamma, lam=lam), eta)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 30), gamma=GAMMAS, lam=LAMS)
def test_the_prediction_comes_back(kind, seed, classes, gamma, lam):
    """Where the posterior is not below what float64 holds: at lam = 0 it is of the order of q (1 - q_max)^gamma."""
    q = simplex_points(kind, seed, classes)
    eta = recover(q, gamma=gamma, lam=lam)
    held = ((eta > 1e-290) | (q == 0)).all(1)
    assert_same(minimise(eta[held], gamma=gamma, lam=lam).unwrap(), q[held])


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("lam", [0.0, 1.0, 1e8])
def test_subnormal_entries_stay_harmless(gamma, lam):
    q = np.array([[1.0, 5e-324, 1e-310], [0.5, 0.5, 3e-320]])
    eta = recover(q, gamma=gamma, lam=lam)
    assert (eta >= 0).all()
    np.testing.assert_allclose(eta, q.round(1), atol=1e-300)
    back = recover(minimise(q, gamma=gamma, lam=lam).unwrap(), gamma=gamma, lam=lam)
    np.testing.assert_allclose(back, q, atol=1e-300)


@given(seed=st.integers(0, 10_000), classes=st.integers(2, 30), gamma=st.floats(0.0, 20.0))
def test_without_an_anchor_it_is_the_focal_transform(seed, classes, gamma):
    """eta_k proportional to 1 / -phi'(q_k), Charoenphakdee et al. (2021)."""
    q = np.random.default_rng(seed).dirichlet(np.ones(classes), 8)
    expected = 1 / -phi_slope(q, gamma)
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(recover(q, gamma=gamma, lam=0.0), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 30), lam=LAMS)
def test_gamma_zero_is_the_identity(kind, seed, classes, lam):
    q = simplex_points(kind, seed, classes)
    np.testing.assert_allclose(recover(q, gamma=0.0, lam=lam), q, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 30), gamma=GAMMAS, lam=LAMS)
def test_classes_are_exchangeable_and_keep_their_order(kind, seed, classes, gamma, lam):
    q = simplex_points(kind, seed, classes)
    eta = recover(q, gamma=gamma, lam=lam)
    order = np.random.default_rng(seed).permutation(classes)
    np.testing.assert_allclose(recover(q[:, order], gamma=gamma, lam=lam), eta[:, order], rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(eta.sum(1), 1, atol=1e-14)
    rising = np.take_along_axis(eta, q.argsort(1), 1)
    assert (np.diff(rising) >= -1e-12 * rising[:, 1:]).all()


@pytest.mark.parametrize("gamma", [0.0, 0.5, 3.0, 1e9])
@pytest.mark.parametrize("lam", [0.0, 1.0, 1e308])
def test_corners(gamma, lam):
    vertices = np.eye(3)
    np.testing.assert_array_equal(recover(vertices, gamma=gamma, lam=lam), vertices)
    np.testing.assert_array_equal(recover([1.0], gamma=gamma, lam=lam), [1.0])
    np.testing.assert_allclose(recover([0.5, 0.0, 0.5], gamma=gamma, lam=lam), [0.5, 0.0, 0.5], rtol=1e-14)
    assert recover(np.empty((0, 3)), gamma=gamma, lam=lam).shape == (0, 3)


def test_the_calibrator_is_the_same_map():
    logits = 5 * torch.randn(50, 7, dtype=torch.float64)
    expected = recover(logits.softmax(1), gamma=2.0, lam=0.7)
    np.testing.assert_allclose(PosteriorRecovery(2.0, 0.7).predict_proba(logits), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_logits_may_be_an_array_or_a_tensor(dtype, gamma):
    logits = 5 * np.random.default_rng(0).normal(size=(50, 7)).astype(dtype)
    column = np.linspace(0.0, 3.0, 50)[:, None]
    rtol = 1e-11 if dtype is np.float64 else 1e-4
    expected = recover(softmax(logits.astype(np.float64)), gamma=gamma, lam=column[:, 0])
    found = log_posterior(logits, gamma=gamma, lam=column)
    assert type(found) is np.ndarray
    assert found.dtype == dtype
    np.testing.assert_allclose(np.exp(found), expected, rtol=rtol)
    as_tensor = log_posterior(torch.from_numpy(logits), gamma=gamma, lam=torch.from_numpy(column))
    assert as_tensor.dtype == (torch.float64 if dtype is np.float64 else torch.float32)
    np.testing.assert_allclose(as_tensor.exp(), expected, rtol=rtol)
