"""Proper scores, their decomposition, and how they look at soft edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focalcal import metrics


def random_rows(rows, classes, seed=0):
    generator = np.random.default_rng(seed)
    return generator.dirichlet(np.full(classes, 0.6), size=rows), generator.integers(classes, size=rows)


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 200), classes=st.integers(2, 8), n_bins=st.integers(1, 30))
@pytest.mark.parametrize("of", ["confidence", "classes"])
def test_murphy_adds_up(of, seed, rows, classes, n_bins):
    probs, labels = random_rows(rows, classes, seed)
    found = metrics.murphy(probs, labels, n_bins=n_bins, of=of)
    assert found.refinement == pytest.approx(found.uncertainty - found.resolution, abs=1e-12)
    assert found.brier == pytest.approx(found.calibration + found.refinement + found.within_bins, abs=1e-12)
    assert min(found.calibration, found.refinement, found.resolution, found.uncertainty) >= 0


@given(seed=st.integers(0, 10**6), rows=st.integers(2, 200))
def test_within_bins_is_the_spread_less_twice_the_covariance(seed, rows):
    probs, labels = random_rows(rows, 3, seed)
    confidence, correct = probs.max(1), probs.argmax(1) == labels
    bins = np.minimum(np.ceil(confidence * 5).astype(int) - 1, 4)
    expected = 0.0
    for b in set(bins.tolist()):
        f, a = confidence[bins == b], correct[bins == b].astype(float)
        expected += len(f) / rows * (np.var(f) - 2 * np.mean((f - f.mean()) * (a - a.mean())))
    assert metrics.murphy(probs, labels, n_bins=5).within_bins == pytest.approx(expected, abs=1e-12)


def test_murphy_of_classes_decomposes_the_multiclass_score():
    probs, labels = random_rows(500, 6)
    assert metrics.murphy(probs, labels, of="classes").brier == pytest.approx(metrics.brier(probs, labels))


def test_recalibrating_each_bin_gains_the_calibration_term():
    """No map that is constant on bins does better, and the one that predicts the accuracy gains just this."""
    generator = np.random.default_rng(0)
    score = generator.choice([0.55, 0.7, 0.85, 0.95], size=4000)  # one value per bin: nothing is hidden inside bins
    correct = generator.random(4000) < score**2
    probs, labels = np.stack([score, 1 - score], 1), np.where(correct, 0, 1)
    found = metrics.murphy(probs, labels)
    calibrated = np.array([correct[score == s].mean() for s in score])
    assert found.within_bins == pytest.approx(0, abs=1e-12)
    gain = np.mean((score - correct) ** 2) - np.mean((calibrated - correct) ** 2)
    assert gain == pytest.approx(found.calibration, abs=1e-12)


def test_the_true_posterior_has_the_best_expected_scores():
    generator = np.random.default_rng(0)
    posterior = generator.dirichlet(np.ones(4), size=200_000)
    labels = (generator.random((200_000, 1)) > posterior.cumsum(1)).sum(1).clip(max=3)
    for power in (0.5, 0.8, 1.3, 2.0):
        other = posterior**power / (posterior**power).sum(1, keepdims=True)
        assert metrics.brier(posterior, labels) < metrics.brier(other, labels)
        assert metrics.nll(posterior, labels) < metrics.nll(other, labels)
    assert metrics.ece(posterior, labels) < 0.01
