"""AUROC and AURC with the ties that saturated networks are full of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import brute_force

from focalcal import metrics
from focalcal.metrics.detection import binary_aurc


@given(rows=st.lists(st.tuples(st.integers(-2, 3), st.booleans()), min_size=2, max_size=40))
def test_auroc_counts_pairs(rows):
    scores, positive = np.array([s for s, _ in rows], dtype=float), np.array([p for _, p in rows])
    if positive.all() or not positive.any():
        with pytest.raises(ValueError, match="must hold both outcomes"):
            metrics.auroc(scores, positive)
        return
    pairs = [(s > t) + 0.5 * (s == t) for s in scores[positive] for t in scores[~positive]]
    assert metrics.auroc(scores, positive) == pytest.approx(np.mean(pairs))
    assert metrics.auroc(-scores, positive) == pytest.approx(1 - np.mean(pairs))
    assert metrics.auroc(np.exp(scores), positive) == pytest.approx(np.mean(pairs))


def test_auroc_takes_scores_of_any_scale():
    assert metrics.auroc([-900.0, 3.0, 1e300], [0, 1, 1]) == 1.0
    masked = [-np.inf, -np.inf, 3.0, np.inf]  # scores of what was ruled out tie with each other
    assert metrics.auroc(masked, [0, 1, 1, 1]) == pytest.approx((0.5 + 1 + 1) / 3)
    assert metrics.bootstrap(metrics.auroc, masked * 20, [0, 1, 1, 1] * 20, resamples=20).estimate > 0.8


@settings(max_examples=10)
@given(rows=st.lists(st.tuples(st.sampled_from([0.5, 0.7, 0.9]), st.booleans()), min_size=1, max_size=8))
def test_aurc_is_the_mean_over_the_orders_of_ties(rows):
    confidence, wrong = np.array([c for c, _ in rows]), np.array([w for _, w in rows])
    expected = brute_force.aurc_of(confidence.tolist(), wrong.tolist())
    assert binary_aurc(confidence, ~wrong) == pytest.approx(expected, abs=0.02)


def test_aurc_without_ties_is_the_mean_risk():
    probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    assert metrics.aurc(probs, [0, 1, 0, 1]) == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)
    assert metrics.aurc(probs, [0, 0, 0, 0]) == 0.0
    assert metrics.aurc(probs, [1, 1, 1, 1]) == 1.0


def test_aurc_of_constant_confidence_is_the_error_rate():
    probs = np.full((50, 2), 0.5)
    labels = (np.arange(50) % 5 == 0).astype(int)
    assert metrics.aurc(probs, labels) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("scores", "positives", "message"),
    [
        ([0.1, float("nan")], [0, 1], "scores must be numbers or infinite, got nan in row 1"),
        ([0.1, 0.2], [0, 2], "positives must be 0 or 1, got 2 in row 1"),
        ([0.1, 0.2], [0, 1, 1], r"must be \(n,\), one of each, got \(2,\) and \(3,\)"),
        ([], [], "at least one positive and one negative"),
    ],
)
def test_bad_ranking_input(scores, positives, message):
    with pytest.raises(ValueError, match=message):
        metrics.auroc(np.array(scores, dtype=float), np.array(positives, dtype=float))
