"""Scores of which less is known: a temperature by hand, one column, confidences and whether predictions are right."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from focalcal.posthoc import CALIBRATORS, PlattScaling, PosteriorRecovery, TemperatureScaling, load_calibrator

DRAWS = np.random.default_rng(0)
LOGITS = 2 * DRAWS.normal(size=(600, 3))
LABELS = np.argmax(LOGITS / 2 + DRAWS.gumbel(size=LOGITS.shape), 1)
CONFIDENCE = DRAWS.uniform(0.4, 0.99, 600)
CORRECT = DRAWS.random(600) < CONFIDENCE - 0.2


def test_a_temperature_by_hand_predicts_without_a_fit_and_survives_one(tmp_path):
    scaling = TemperatureScaling(temperature=1.7)
    expected = np.exp(LOGITS / 1.7) / np.exp(LOGITS / 1.7).sum(1, keepdims=True)
    np.testing.assert_allclose(scaling.predict_proba(LOGITS), expected)
    np.testing.assert_allclose(scaling.predict_proba(LOGITS[:1]), expected[:1])
    assert clone(scaling).get_params() == {"temperature": 1.7}
    scaling.save(tmp_path / "unfitted.json")
    fitted = clone(scaling).fit(LOGITS, LABELS)
    assert (fitted.temperature_, fitted.status_, fitted.at_bound_) == (1.7, "given", False)
    fitted.save(tmp_path / "fitted.json")
    for twin in (fitted, *(load_calibrator(tmp_path / f"{name}fitted.json") for name in ("", "un"))):
        np.testing.assert_allclose(twin.predict_proba(LOGITS), expected)
        assert twin.get_params() == {"temperature": 1.7}
    for wrong in (0, -1.0, np.inf, "1"):
        with pytest.raises((ValueError, TypeError), match="temperature must be"):
            TemperatureScaling(temperature=wrong).predict_proba(LOGITS)


def test_files_of_versions_without_the_argument_are_read(tmp_path):
    fitted = TemperatureScaling().fit(LOGITS, LABELS)
    fitted.save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["params"] == {}
    assert load_calibrator(tmp_path / "a.json").temperature_ == fitted.temperature_


@pytest.mark.parametrize("name", sorted(CALIBRATORS))
def test_confidences_are_probabilities_of_being_right(name, tmp_path):
    fitted = CALIBRATORS[name]().fit(confidence=CONFIDENCE, correct=CORRECT)
    two = np.stack([1 - CONFIDENCE, CONFIDENCE], 1)
    expected = CALIBRATORS[name]().fit(probs=two, labels=CORRECT.astype(int)).predict_proba(probs=two)
    fitted.save(tmp_path / "a.json")
    for each in (fitted, load_calibrator(tmp_path / "a.json")):
        np.testing.assert_allclose(each.predict_proba(confidence=CONFIDENCE), expected, atol=1e-12)
        assert each.predict(confidence=CONFIDENCE).tolist() == expected.argmax(1).tolist()


def test_one_column_of_probabilities_is_that_of_the_second_class():
    two = np.stack([1 - CONFIDENCE, CONFIDENCE], 1)
    for calibrator in (PlattScaling().fit(probs=two, labels=CORRECT.astype(int)), TemperatureScaling(temperature=2.0)):
        expected = calibrator.predict_proba(probs=two)
        for column in (CONFIDENCE, CONFIDENCE[:, None]):
            np.testing.assert_allclose(calibrator.predict_proba(probs=column), expected, atol=1e-12)
            assert calibrator.predict(probs=column).tolist() == expected.argmax(1).tolist()
    np.testing.assert_allclose(PosteriorRecovery(0.0, 0.0).predict_proba(probs=CONFIDENCE), two)
