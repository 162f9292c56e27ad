"""The promise of a threshold holds as often as it says, for ties too, and is not empty."""

import math

import numpy as np
import pytest

from focalcal.posthoc import selective_threshold

POPULATIONS = {
    "rising": lambda c: c,
    "just above the limit everywhere": lambda c: np.full_like(c, 0.889),
    "not monotone": lambda c: np.where((c > 0.5) & (c < 0.8), 1.0, 0.85),
    "worse at the top": lambda c: np.where(c > 0.95, 0.5, 0.93),
}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", POPULATIONS)
def test_the_promise_fails_no_more_often_than_it_says(name, ties):
    """600 draws of 400 rows; the risk above a threshold is that of a million rows. 15 % would be 4 sigma above 10 %."""
    right, risk, delta, generator = POPULATIONS[name], 0.1, 0.1, np.random.default_rng(0)

    def confidences(n):
        c = generator.beta(2, 1, n)
        return np.round(c * 10) / 10 if ties else c

    many = np.sort(confidences(1_000_000))
    wrong_above = np.append(np.cumsum((1 - right(many))[::-1])[::-1], 0.0)
    failed = answered = 0
    for _ in range(600):
        c = confidences(400)
        found = selective_threshold(c, generator.random(400) < right(c), risk=risk, delta=delta)
        if found.threshold is not None:
            at = np.searchsorted(many, found.threshold, "right")
            failed += wrong_above[at] / (len(many) - at) > risk + 1e-3
            answered += found.coverage / 600
    assert failed / 600 <= 0.15
    if name == "rising":
        assert answered > 0.02


def test_a_model_that_knows_is_answered_and_one_that_does_not_is_not():
    c = np.random.default_rng(0).random(2000)
    found = selective_threshold(c, c > 0.4, risk=0.05)
    assert 0.35 < found.threshold < 0.45
    assert found.bound <= 0.05
    assert found.accepts([0.2, 0.9]).tolist() == [False, True]
    assert "at most 5 % of the answers are wrong" in found.sentence
    always = selective_threshold(c, np.ones(2000, bool))
    assert (always.threshold, always.coverage) == (-math.inf, 1.0)
    never = selective_threshold(c, c > 2)
    assert (never.threshold, never.coverage) == (None, 0.0)
    assert not never.accepts(c).any()
    assert selective_threshold(c[:20], np.ones(20, bool)).threshold is None  # too few rows to show anything


@pytest.mark.parametrize("options", [{"risk": 0}, {"delta": 1.0}, {"candidates": 0}])
def test_promises_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        selective_threshold([0.5], [True], **options)
