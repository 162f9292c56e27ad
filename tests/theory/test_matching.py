"""The lam whose distortion cancels a temperature, and the answers where there is none."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from support.drawn_posteriors import flat_posteriors

from focalcal.losses import FocalCalibrationLoss
from focalcal.posthoc import optimal_inverse_temperature
from focalcal.theory import MatchStatus, effective_temperature, matching_lam
from focalcal.theory.minimiser import SolverError


def peaked(seed=0, classes=5, rows=60, scale=4.0):
    return np.exp(log_softmax(np.random.default_rng(seed).normal(size=(rows, classes)) * scale, axis=1))


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), gamma=st.floats(1.0, 6.0), share=st.floats(0.02, 0.98))
def test_the_distortion_cancels_the_temperature(seed, gamma, share):
    eta = peaked(seed)
    strongest = 1 / effective_temperature(eta, gamma=gamma, lam=0.0)
    temperature = 1 + share * (strongest - 1)
    match = matching_lam(eta, temperature, gamma=gamma)
    assert match.matched
    assert match.unwrap() == match.lam > 0
    assert effective_temperature(eta, gamma=gamma, lam=match.lam) == pytest.approx(1 / temperature, rel=1e-9)
    assert match.effective_temperature == pytest.approx(1 / temperature, rel=1e-9)


@pytest.mark.parametrize("lam", [1e-3, 1.0, 50.0, 1e6])
def test_finds_the_lam_that_made_the_distortion(lam):
    eta = peaked(1)
    temperature = 1 / effective_temperature(eta, gamma=3.0, lam=lam)
    assert matching_lam(eta, temperature, gamma=3.0).lam == pytest.approx(lam, rel=1e-6)
    rough = matching_lam(eta, temperature, gamma=3.0, precision=1e-3)
    assert rough.lam == pytest.approx(lam, rel=1e-3)


def test_a_network_that_is_not_overconfident():
    for temperature in (0.5, 1.0):
        match = matching_lam(peaked(), temperature, gamma=3.0)
        assert (match.status, match.lam) == (MatchStatus.NOT_OVERCONFIDENT, math.inf)
    with pytest.raises(SolverError, match=r"temperature 1 at gamma = 3: .*keep cross-entropy"):
        match.unwrap()


def test_a_gamma_that_is_too_small_and_the_one_that_is_not():
    eta = peaked()
    match = matching_lam(eta, 1.5, gamma=1.0)
    assert (match.status, match.lam) == (MatchStatus.GAMMA_TOO_SMALL, 0.0)
    assert match.effective_temperature == effective_temperature(eta, gamma=1.0, lam=0.0) > 1 / 1.5
    assert effective_temperature(eta, gamma=match.gamma_needed, lam=0.0) == pytest.approx(1 / 1.5, rel=1e-5)
    assert matching_lam(eta, 1.5, gamma=1.01 * match.gamma_needed).matched
    assert matching_lam(eta, 1.5, gamma=1.0, find_gamma=False).gamma_needed is None
    assert matching_lam(eta, 1.5, gamma=0.0).gamma_needed == pytest.approx(match.gamma_needed, rel=1e-5)
    assert matching_lam(eta, 1e4, gamma=1.0).gamma_needed == math.inf


def test_posteriors_that_focal_loss_sharpens():
    flat = np.random.default_rng(0).dirichlet(np.ones(100), size=30)
    match = matching_lam(flat, 1.2, gamma=3.0)
    assert (match.status, match.lam) == (MatchStatus.SHARPENS, math.inf)


def test_a_saturated_model_trained_at_the_matching_lam_needs_no_temperature():
    """Logits inflated by `factor`, free otherwise, and trained with the loss itself: the inflation is cancelled.

    The labels of a large sample are replaced by what they average to, the posteriors, each label with its weight.
    """
    eta, factor = torch.from_numpy(flat_posteriors(4, 40, smallest=0.01)), 1.3
    lam = matching_lam(eta, factor, gamma=3.0).unwrap()
    loss, logits = FocalCalibrationLoss(3.0, lam), eta.log().clone().requires_grad_()
    optimiser = torch.optim.LBFGS([logits], max_iter=500, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def closure():
        optimiser.zero_grad()
        value = loss(logits, eta)
        value.backward()
        return value

    optimiser.step(closure)
    counts = (eta * 2_000).round().long().flatten()
    drawn = (factor * logits.detach()).repeat_interleave(4, 0).repeat_interleave(counts, 0)
    labels = torch.arange(4).repeat(len(eta)).repeat_interleave(counts)
    assert 1 / optimal_inverse_temperature(drawn, labels).inverse_temperature == pytest.approx(1.0, abs=1e-3)
    without = (factor * eta.log()).repeat_interleave(4, 0).repeat_interleave(counts, 0)
    assert 1 / optimal_inverse_temperature(without, labels).inverse_temperature == pytest.approx(factor, abs=2e-3)
