"""What a diagram would draw."""

import numpy as np
import pytest
import torch
from scipy import stats

from focalcal import metrics
from focalcal.metrics.reliability import wilson


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_wilson_against_scipy(level):
    for trials in (1, 2, 10, 500):
        for successes in {0, 1, trials // 3, trials - 1, trials}:
            expected = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
            low, high = wilson(np.array([successes]), np.array([trials]), level)
            assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_bins_and_empty_bins():
    probs = np.array([[0.9, 0.1], [0.92, 0.08], [0.55, 0.45]])
    found = metrics.reliability(probs, [0, 1, 0], n_bins=10)
    assert found.count.tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 1, 1]
    assert found.confidence[[5, 8, 9]] == pytest.approx([0.55, 0.9, 0.92])
    assert found.accuracy[[5, 8, 9]] == pytest.approx([1, 1, 0])
    assert np.isnan(found.accuracy[0])
    assert (found.low[0], found.high[0]) == (0, 1)
    assert found.gap[9] == pytest.approx(0.92)
    assert "(0.900, 1.000]         1" in str(found)


def test_ece_is_the_weighted_gap():
    generator = torch.Generator().manual_seed(0)
    probs = (torch.randn(3000, 6, generator=generator) * 2).softmax(1)
    labels = torch.randint(6, (3000,), generator=generator)
    found = metrics.reliability(probs, labels)
    assert np.nansum(found.count * np.abs(found.gap)) / 3000 == pytest.approx(metrics.ece(probs, labels), abs=1e-12)
    mass = metrics.reliability(probs, labels, binning="equal_mass")
    assert np.nansum(mass.count * np.abs(mass.gap)) / 3000 == pytest.approx(metrics.adaptive_ece(probs, labels))
    classes = [metrics.reliability(probs, labels, class_index=k) for k in range(6)]
    errors = [np.nansum(c.count * np.abs(c.gap)) / 3000 for c in classes]
    assert np.mean(errors) == pytest.approx(metrics.classwise_ece(probs, labels))


def test_a_calibrated_network_surprises_as_often_as_it_should():
    generator = np.random.default_rng(0)
    surprises = bins = 0
    for _ in range(200):
        probs = generator.dirichlet(np.ones(3), size=500)
        labels = (generator.random((500, 1)) > probs.cumsum(1)).sum(1).clip(max=2)
        found = metrics.reliability(probs, labels)
        bins += int((found.count > 20).sum())
        surprises += int((found.surprising & (found.count > 20)).sum())
    assert 0.02 < surprises / bins < 0.08
