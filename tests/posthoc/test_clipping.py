"""Probabilities of exactly 0 and 1: what they count as, where it is said, and that predictions do as the fit did."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from focalcal.core.checks import ProbabilityWarning
from focalcal.metrics import nll
from focalcal.posthoc import (
    CALIBRATORS,
    MultilabelCalibration,
    PlattScaling,
    TemperatureScaling,
    load_calibrator,
    operating_point,
    split_half,
)
from focalcal.posthoc.calibrator_inputs import bound_of

RNG = np.random.default_rng(0)
SPOKEN = RNG.choice([0.5, 0.9, 1.0], size=600, p=[0.2, 0.4, 0.4])  # a language model's words
RIGHT = (RNG.random(600) < np.select([SPOKEN == 0.5, SPOKEN == 0.9], [0.62, 0.68], 0.78)).astype(int)


def softmax(logits):
    odds = np.exp(logits - logits.max(1, keepdims=True))
    return odds / odds.sum(1, keepdims=True)


def rows(classes, n=600):
    """Over-confident logits, twice as large as they should be, and labels."""
    generator = np.random.default_rng(classes)
    logits = 2 * generator.normal(size=(n, classes))
    labels = (softmax(logits).cumsum(1) < generator.random((n, 1))).sum(1).clip(max=classes - 1)
    return 2 * logits, labels


@pytest.mark.parametrize(
    ("probs", "bound"),
    [
        ([[0.5, 0.5], [0.1, 0.9], [0.0, 1.0]], 0.005),  # round percentages are percentages
        ([[0.25, 0.75], [0.37, 0.63], [0.0, 1.0]], 0.005),
        ([[0.125, 0.875], [0.0, 1.0]], 0.0005),
        ([[0.1234, 0.8766], [0.0, 1.0]], 0.00005),
        ([[1 / 3, 2 / 3], [2 / 7, 5 / 7], [0.0, 1.0], [0.0, 1.0]], 1 / 8),  # no printed digits
        ([[0.0, 1.0]] * 5, 1 / 10),  # nothing between 0 and 1 shows digits
        ([[1 / 3, 2 / 3], [1e-9, 1 - 1e-9], [0.0, 1.0]], 1e-9),  # 0 is below what there is
        ([[1e-9, 1 - 1e-9]] * 3, 1e-9),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_rows_show_what_zero_stands_for(probs, bound, dtype):
    assert bound_of(np.array(probs, dtype=dtype)) == pytest.approx(bound, rel=1e-6)


def test_words_of_a_language_model():
    """1.0 was the logarithm of the smallest double, which left a slope of next to nothing."""
    with pytest.warns(ProbabilityWarning, match=r"entries of 0, in \d+ of 600 rows, .* take for 0.005, and 1 for"):
        platt = PlattScaling().fit(probs=SPOKEN, labels=RIGHT)
    assert platt.clip_ == 0.005
    clipped = PlattScaling().fit(probs=SPOKEN.clip(0.005, 0.995), labels=RIGHT)
    found = platt.predict_proba(probs=SPOKEN)[:, 1]
    np.testing.assert_allclose(found, clipped.predict_proba(probs=SPOKEN.clip(0.005, 0.995))[:, 1], atol=1e-9)
    odds = np.log(SPOKEN.clip(0.005, 0.995) / (1 - SPOKEN.clip(0.005, 0.995)))[:, None]
    plain = LogisticRegression(C=np.inf, tol=1e-10).fit(odds, RIGHT).predict_proba(odds)[:, 1]
    np.testing.assert_allclose(found, plain, atol=0.005)  # Platt's targets are within 1 / n of the labels
    of_half = found[SPOKEN == 0.5][0]
    assert of_half < found[SPOKEN == 0.9][0] - 0.03 < found[SPOKEN == 1.0][0] - 0.06


@pytest.mark.parametrize("classes", [2, 10])
def test_three_printed_digits_cost_little(classes):
    """Temperature scaling finds nearly what it finds in all digits; only zeros moved."""
    logits, labels = rows(classes)
    printed = softmax(logits).round(3)
    printed[np.arange(600), printed.argmax(1)] += 1 - printed.sum(1)
    printed = printed.round(3)
    assert (printed == 0).any()
    with pytest.warns(ProbabilityWarning, match="entries of 0"):
        scaling = TemperatureScaling().fit(probs=printed, labels=labels)
    exact = TemperatureScaling().fit(logits, labels)
    assert scaling.temperature_ == pytest.approx(exact.temperature_, rel=0.1)
    expected = nll(exact.predict_proba(logits), labels)
    assert nll(scaling.predict_proba(probs=printed), labels) == pytest.approx(expected, abs=0.01)
    assert nll(printed, labels) == np.inf, "metrics never clip"


def test_a_rows_zeros_count_together():
    """A thousand classes of half a digit each would be half of the row."""
    probs = np.zeros((40, 1000))
    probs[:, 0], probs[:, 1] = 0.9, 0.1
    probs[::2, :2] = [1.0, 0.0]
    labels = np.arange(40) % 3 % 2
    with pytest.warns(ProbabilityWarning, match="in 40 of 40 rows, which calibrators take for 5.01e-06"):
        scaling = TemperatureScaling().fit(probs=probs, labels=labels)
    scaling.temperature_ = 1.0
    assert scaling.predict_proba(probs=probs)[:2, 0] == pytest.approx([0.995 / 1.0, 0.9 / 1.005], abs=1e-4)


def test_a_bound_of_ones_own():
    with pytest.warns(ProbabilityWarning):
        by_rows = PlattScaling().fit(probs=SPOKEN, labels=RIGHT)
    own = PlattScaling().fit(probs=SPOKEN, labels=RIGHT, clip=0.05)  # who says what 0 is needs no warning
    assert own.clip_ == 0.05
    assert own.slope_[1] > 1.2 * by_rows.slope_[1]
    for wrong in (0.0, 0.5, -1, "auto", True, float("nan")):
        with pytest.raises(ValueError, match=r"clip must be above 0 and below 0.5, got .*; leave it out to have it"):
            PlattScaling().fit(probs=SPOKEN, labels=RIGHT, clip=wrong)
    with pytest.raises(ValueError, match=r"clip is for probs, got 0\.1 with logits; leave it out"):
        PlattScaling().fit(*rows(3), clip=0.1)


@pytest.mark.parametrize("name", ["temperature", "isotonic", "structured"])
def test_the_bound_of_the_fit_is_kept_in_the_file(name, tmp_path):
    """One row of later data would show another bound: predictions are those of the fit's."""
    generator = np.random.default_rng(1)
    spoken = np.r_[SPOKEN[:300], generator.choice([0.1, 0.3], 100)]  # class 0 is predicted, too
    labels = np.r_[RIGHT[:300], (generator.random(100) < 0.3)].astype(int)
    calibrator = CALIBRATORS[name]()
    fitted = calibrator.fit(probs=spoken, labels=labels, clip=0.02)
    fitted.save(tmp_path / "calibrator.json")
    assert json.loads((tmp_path / "calibrator.json").read_text())["clip"] == 0.02
    same = load_calibrator(tmp_path / "calibrator.json")
    certain = np.array([0.0, 1.0])
    assert same.clip_ == 0.02
    np.testing.assert_array_equal(same.predict_proba(probs=certain), fitted.predict_proba(probs=certain))
    clipped = fitted.predict_proba(probs=certain.clip(0.02, 0.98))
    np.testing.assert_allclose(fitted.predict_proba(probs=certain), clipped, atol=1e-12)


def test_whoever_else_takes_probabilities_clips_them():
    both = np.stack([SPOKEN, SPOKEN], 1)
    answers = np.stack([RIGHT, RIGHT], 1)
    with pytest.warns(ProbabilityWarning, match="entries of 0"):
        expected = PlattScaling().fit(probs=SPOKEN, labels=RIGHT).predict_proba(probs=SPOKEN)[:, 1]
    with pytest.warns(ProbabilityWarning, match="entries of 0"):
        labelwise = MultilabelCalibration(PlattScaling()).fit(probs=both, labels=answers)
    np.testing.assert_allclose(labelwise.predict_proba(probs=both)[:, 1], expected, atol=1e-12)
    own = MultilabelCalibration(PlattScaling(), shared=True).fit(probs=both, labels=answers, clip=0.05)
    assert own.calibrators_[0].clip_ == 0.05
    with pytest.warns(ProbabilityWarning, match="entries of 0"):
        halves = split_half(probs=SPOKEN, labels=RIGHT, calibrator=TemperatureScaling())
    assert halves.before["nll"] == np.inf
    assert halves.after["nll"] < 0.7
    assert halves.calibrator.clip_ == 0.005
    with pytest.warns(ProbabilityWarning, match="entries of 0"):
        point = operating_point(probs=SPOKEN, labels=RIGHT, resamples=20)
    assert 1 < point.temperature < 20
