"""The distance between a posterior and its minimiser, and the largest of all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal.theory import propriety
from focalcal.theory.minimiser import minimise
from focalcal.theory.propriety import _best, _Problem, largest_distortion, propriety_error


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 20), lam=st.floats(0, 100))
def test_proper_only_without_focusing(seed, classes, lam):
    eta = np.random.default_rng(seed).dirichlet(np.ones(classes), 5)
    assert propriety_error(eta, gamma=0.0, lam=lam).max() < 1e-15
    assert propriety_error(eta, gamma=0.5, lam=lam).max() > 1e-6
    np.testing.assert_allclose(propriety_error(np.full(classes, 1 / classes), gamma=2.0, lam=lam), 0, atol=1e-16)
    assert propriety_error(np.eye(classes), gamma=2.0, lam=lam).max() == 0


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("classes", [2, 4, 20])
@pytest.mark.parametrize(("gamma", "lam"), [(0.5, 0.0), (2.0, 0.0), (2.0, 1.0), (5.0, 10.0), (0.01, 1e8), (20.0, 1e-3)])
def test_the_largest_distortion_is_real_and_beats_random_posteriors(norm, classes, gamma, lam):
    worst = largest_distortion(classes, gamma=gamma, lam=lam, norm=norm, starts=2)
    order = 2 if norm == "l2" else np.inf
    solved = minimise(worst.posterior, gamma=gamma, lam=lam)
    np.testing.assert_allclose(solved.unwrap(), worst.prediction, atol=1e-12)
    assert np.linalg.norm(solved.displacement, order) == pytest.approx(worst.distortion, rel=1e-7, abs=0)
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
    assert worst.distortion == pytest.approx(distortions.max(), rel=1e-7, abs=0)
    assert worst.posterior[0] == pytest.approx(top[distortions.argmax()], abs=1e-4)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize(("gamma", "lam"), [(0.3, 0.0), (1.0, 0.0), (2.0, 1.0), (5.0, 1e4), (0.01, 3.0), (40.0, 1e6)])
def test_the_ascents_gradient_is_that_of_the_distortion(norm, gamma, lam):
    problem = _Problem(gamma, lam, norm)
    for logits in np.random.default_rng(0).normal(size=(5, 6)) * 3:
        _, gradient = problem.distortion_and_gradient(logits)
        moves = 1e-5 * np.eye(6)
        ends = [[problem.distortion_and_gradient(logits + sign * move)[0] for sign in (1, -1)] for move in moves]
        differences = np.array([(up - down) / 2e-5 for up, down in ends])
        np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-7 * np.abs(differences).max())


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize(("classes", "gamma", "lam"), [(5, 2.0, 1.0), (5, 0.5, 10.0), (8, 5.0, 0.3)])
def test_a_wider_search_finds_nothing_better(norm, classes, gamma, lam):
    """One leading class whose probability is too low, equal others, zeros: also after ten ascents."""
    two_levels = largest_distortion(classes, gamma=gamma, lam=lam, norm=norm, starts=0)
    wider = largest_distortion(classes, gamma=gamma, lam=lam, norm=norm, starts=10, seed=1)
    assert wider.distortion == pytest.approx(two_levels.distortion, rel=1e-9, abs=0)
    assert two_levels.posterior[0] > two_levels.prediction[0]
    others = two_levels.prediction[1:]
    np.testing.assert_allclose(others[others > 0], others.max(), rtol=1e-9)


def test_several_classes_lead_where_gamma_and_lam_are_large():
    """To first order in 1 / lam the shift is psi's deviation from its mean, largest with psi = 0 for half of them."""
    worst = largest_distortion(6, gamma=90.0, lam=4e6)
    assert (worst.prediction > 0.3).sum() == 3
    one_leads = _best(_Problem(90.0, 4e6, "l2"), [(1, m) for m in range(1, 6)])
    assert worst.distortion > one_leads.distortion * 1.01


def test_the_ascents_find_three_levels_where_lam_is_large():
    two_levels = largest_distortion(9, gamma=2.0, lam=1e5, starts=0)
    worst = largest_distortion(9, gamma=2.0, lam=1e5)
    assert worst.distortion > two_levels.distortion * 1.0008
    assert [int((worst.prediction > least).sum()) for least in (0.5, 0.01, 1e-4)] == [1, 6, 9]
    solved = minimise(worst.posterior, gamma=2.0, lam=1e5)
    assert np.linalg.norm(solved.displacement) == pytest.approx(worst.distortion, rel=1e-9, abs=0)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize(("gamma", "lam"), [(3.0, 1.0), (90.0, 4e6)])
def test_many_classes(monkeypatch, norm, gamma, lam):
    """The pattern search finds the best of all families; more classes distort no less; a thousand are feasible."""
    found = [largest_distortion(k, gamma=gamma, lam=lam, norm=norm, starts=0) for k in (2, 3, 40, 60, 1000)]
    assert (np.diff([worst.distortion for worst in found]) >= -1e-20).all()
    monkeypatch.setattr(propriety, "_EVERY_FAMILY", 60)
    every = largest_distortion(60, gamma=gamma, lam=lam, norm=norm, starts=0)
    assert found[3].distortion == pytest.approx(every.distortion, rel=1e-12, abs=0)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("lam", [1e165, 1e200, 1e300])
def test_an_anchor_whose_square_is_beyond_float64(norm, lam):
    """lam times the largest distortion has a limit."""
    limit = 1e100 * largest_distortion(4, gamma=2.0, lam=1e100, norm=norm, starts=2).distortion
    assert limit > 0.4
    worst = largest_distortion(4, gamma=2.0, lam=lam, norm=norm, starts=2)
    assert lam * worst.distortion == pytest.approx(limit, rel=1e-6, abs=0)


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_a_small_gamma_distorts_in_proportion(lam):
    unit = largest_distortion(3, gamma=1e-8, lam=lam, starts=0).distortion / 1e-8
    for gamma, error in ((1e-6, 1e-5), (1e-12, 5e-3)):  # the relative error is about 1e-15 / gamma
        found = largest_distortion(3, gamma=gamma, lam=lam, starts=0).distortion
        assert found == pytest.approx(unit * gamma, rel=error, abs=0)
    with pytest.raises(ValueError, match="gamma must be 0 or at least 1e-12, got 1e-15: the distortion is below"):
        largest_distortion(3, gamma=1e-15, lam=lam)


def test_nothing_is_distorted_without_focusing_or_with_one_class():
    for classes, gamma in ((4, 0.0), (1, 3.0)):
        worst = largest_distortion(classes, gamma=gamma, lam=0.0)
        assert worst.distortion == 0
        np.testing.assert_array_equal(worst.posterior, worst.prediction)
