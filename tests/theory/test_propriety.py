"""The distance between a posterior and its minimiser, and the largest of all."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal.theory.minimiser import minimise
from focalcal.theory.propriety import largest_distortion, propriety_error


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 20), lam=st.floats(0, 100))
def test_proper_only_without_focusing(seed, classes, lam):
    eta = np.random.default_rng(seed).dirichlet(np.ones(classes), 5)
    assert propriety_error(eta, gamma=0.0, lam=lam).max() < 1e-15
    assert propriety_error(eta, gamma=0.5, lam=lam).max() > 1e-6
    np.testing.assert_allclose(propriety_error(np.full(classes, 1 / classes), gamma=2.0, lam=lam), 0, atol=1e-16)
    assert propriety_error(np.eye(classes), gamma=2.0, lam=lam).max() == 0


def test_the_error_is_that_of_the_minimiser():
    eta = np.random.default_rng(0).dirichlet(np.ones(5), (2, 3))
    found = propriety_error(eta, gamma=2.0, lam=[0.0, 1.0, 10.0])
    assert found.shape == (2, 3)
    q = minimise(eta, gamma=2.0, lam=[0.0, 1.0, 10.0]).unwrap()
    np.testing.assert_allclose(found, np.abs(q - eta).max(-1), rtol=1e-12)
    assert np.isscalar(propriety_error([0.7, 0.2, 0.1], gamma=2.0, lam=1.0))


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("classes", [2, 3, 4, 20])
@pytest.mark.parametrize(("gamma", "lam"), [(0.5, 0.0), (2.0, 0.0), (2.0, 1.0), (5.0, 10.0), (0.01, 1e8), (20.0, 1e-3)])
def test_the_largest_distortion_is_real_and_beats_random_posteriors(norm, classes, gamma, lam):
    worst = largest_distortion(classes, gamma=gamma, lam=lam, norm=norm, starts=2)
    order = 2 if norm == "l2" else np.inf
    solved = minimise(worst.posterior, gamma=gamma, lam=lam)
    np.testing.assert_allclose(solved.unwrap(), worst.prediction, atol=1e-12)
    assert np.linalg.norm(solved.displacement, order) == pytest.approx(worst.distortion, rel=1e-7)
    generator = np.random.default_rng(0)
    rows = [generator.dirichlet(np.full(classes, c), 300) for c in (0.02, 0.1, 0.5, 1.0, 5.0)]
    near = generator.dirichlet(np.ones(classes), 100) * 10.0 ** -generator.uniform(0, 9, (100, 1))
    near[:, 0] += 1
    eta = np.concatenate([*rows, near / near.sum(1, keepdims=True)])
    distortions = np.linalg.norm(minimise(eta, gamma=gamma, lam=lam).displacement, order, axis=1)
    assert distortions.max() <= worst.distortion * (1 + 1e-9)
    if lam:
        assert worst.distortion <= np.sqrt(np.log(classes) / lam)


def test_two_classes_on_a_fine_grid():
    top = np.linspace(0.5, 1, 20_001)
    eta = np.stack([top, 1 - top], 1)
    distortions = np.linalg.norm(minimise(eta, gamma=2.0, lam=0.5).displacement, axis=1)
    worst = largest_distortion(2, gamma=2.0, lam=0.5)
    assert worst.distortion == pytest.approx(distortions.max(), rel=1e-7)
    assert worst.posterior[0] == pytest.approx(top[distortions.argmax()], abs=1e-4)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize(("classes", "gamma", "lam"), [(5, 2.0, 1.0), (5, 0.5, 10.0), (8, 5.0, 0.3)])
def test_a_wider_search_finds_nothing_better(norm, classes, gamma, lam):
    """One leading class whose probability is too low, equal others, zeros: also after thirty ascents."""
    two_levels = largest_distortion(classes, gamma=gamma, lam=lam, norm=norm, starts=0)
    wider = largest_distortion(classes, gamma=gamma, lam=lam, norm=norm, starts=30, seed=1)
    assert wider.distortion == two_levels.distortion
    assert two_levels.posterior[0] > two_levels.prediction[0]
    others = two_levels.prediction[1:]
    assert len(set(others[others > 0])) == 1


def test_more_classes_distort_no_less_and_a_thousand_are_feasible():
    found = [largest_distortion(k, gamma=3.0, lam=1.0, starts=1).distortion for k in (2, 3, 12, 13, 100, 1000)]
    assert (np.diff(found) >= -1e-12).all()
    every = largest_distortion(12, gamma=3.0, lam=30.0, starts=0).distortion
    some = largest_distortion(13, gamma=3.0, lam=30.0, starts=0).distortion
    assert every <= some * (1 + 1e-12)


def test_nothing_is_distorted_without_focusing_or_with_one_class():
    for classes, gamma in ((4, 0.0), (1, 3.0)):
        worst = largest_distortion(classes, gamma=gamma, lam=0.0)
        assert worst.distortion == 0
        np.testing.assert_array_equal(worst.posterior, worst.prediction)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="classes must be a whole number >= 1, got 0"):
        largest_distortion(0, gamma=2.0, lam=1.0)
    with pytest.raises(ValueError, match="lam must be finite and >= 0"):
        largest_distortion(3, gamma=2.0, lam=-1.0)
    with pytest.raises(ValueError, match="norm must be"):
        largest_distortion(3, gamma=2.0, lam=1.0, norm="l1")


def test_scipy_is_loaded_only_for_the_search():
    code = "import sys, focalcal.theory.propriety, focalcal.theory.consistency; print('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_docstring_examples():
    import doctest

    from focalcal.theory import propriety, recovery

    for module in (propriety, recovery):
        results = doctest.testmod(module)
        assert (results.failed, results.attempted > 0) == (0, True)
