"""AUROC and AURC with the ties that saturated networks are full of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import brute_force

from focalcal import metrics


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
    assert metrics.aurc(confidence=confidence, correct=~wrong) == pytest.approx(expected, abs=0.02)


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


def selected(rows=300, digits=2, seed=0):
    """Confidences with ties, right more often the surer they are."""
    generator = np.random.default_rng(seed)
    confidence = generator.random(rows).round(digits)
    return confidence, generator.random(rows) < 0.5 + 0.5 * confidence


@pytest.mark.parametrize("digits", [1, 2, 9])
def test_augrc_is_the_area_under_the_generalised_risk(digits):
    confidence, correct = selected(digits=digits)
    expected = brute_force.augrc_of(confidence.tolist(), (~correct).tolist())
    assert metrics.augrc(confidence=confidence, correct=correct) == pytest.approx(expected, abs=1e-12)


def test_augrc_of_the_best_the_worst_and_no_order():
    """Traub et al. (2024): err^2 / 2 where all mistakes come last, err (1 - err) more where they come first."""
    correct = np.arange(100) < 80
    for confidence, wanted in ((-np.arange(100), 0.02), (np.arange(100), 0.02 + 0.16), (np.zeros(100), 0.02 + 0.08)):
        found = metrics.augrc(confidence=(confidence + 100) / 200, correct=correct)
        assert found == pytest.approx(wanted)


def test_e_aurc_is_what_a_better_order_would_gain():
    confidence, correct = selected(digits=9)
    sorted_rows = np.sort(correct)[::-1]
    best = metrics.aurc(confidence=np.linspace(1, 0, 300), correct=sorted_rows)
    found = metrics.e_aurc(confidence=confidence, correct=correct)
    assert found == pytest.approx(metrics.aurc(confidence=confidence, correct=correct) - best)
    assert metrics.e_aurc(confidence=np.linspace(1, 0, 300), correct=sorted_rows) == pytest.approx(0, abs=1e-12)
    share = correct.mean()
    assert best == pytest.approx((1 - share) + share * np.log(share), abs=5e-3), "the limit that is published"


@pytest.mark.parametrize("accuracy", [0.5, 0.8, 0.9, 0.99])
def test_coverage_is_the_best_threshold_of_all(accuracy):
    confidence, correct = selected(100)
    expected = brute_force.coverage_of(confidence.tolist(), (~correct).tolist(), accuracy)
    assert metrics.coverage(confidence=confidence, correct=correct, accuracy=accuracy) == pytest.approx(expected)
    with pytest.raises(ValueError, match="accuracy must be between 0 and 1, got 95"):
        metrics.coverage(confidence=confidence, correct=correct, accuracy=95)


def test_the_auroc_of_the_confidence():
    confidence, correct = selected()
    found = metrics.confidence_auroc(confidence=confidence, correct=correct)
    assert found == metrics.auroc(confidence, correct)
    assert metrics.confidence_auroc(confidence=confidence, correct=np.ones(300, dtype=bool)) == 0.5, "nothing to rank"
