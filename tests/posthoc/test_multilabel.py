"""Sigmoid outputs: every label is a problem of two classes."""

import json

import numpy as np
import pytest
import torch

from focalcal import Predictions
from focalcal.posthoc import (
    CALIBRATORS,
    HistogramBinning,
    MultilabelCalibration,
    PlattScaling,
    TemperatureScaling,
    load_calibrator,
)

GENERATOR = np.random.default_rng(0)
TRUE = GENERATOR.normal(size=(3000, 3)) * [1, 2, 3]
LABELS = (GENERATOR.uniform(size=TRUE.shape) < 1 / (1 + np.exp(-TRUE))).astype(int)
LOGITS = TRUE * [1, 2, 4]  # overconfident by these factors


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def test_each_label_has_its_own_temperature():
    fitted = MultilabelCalibration(TemperatureScaling()).fit(LOGITS, LABELS)
    temperatures = [calibrator.temperature_ for calibrator in fitted.calibrators_]
    np.testing.assert_allclose(temperatures, [1, 2, 4], rtol=0.1)
    np.testing.assert_allclose(fitted.predict_proba(LOGITS), sigmoid(LOGITS / temperatures), rtol=1e-9)


def test_a_shared_temperature_is_that_of_all_entries():
    fitted = MultilabelCalibration(TemperatureScaling(), shared=True).fit(LOGITS, LABELS)
    entries = TemperatureScaling().fit(LOGITS.ravel(), LABELS.ravel())
    assert fitted.calibrators_[0].temperature_ == pytest.approx(entries.temperature_)
    np.testing.assert_allclose(fitted.predict_proba(LOGITS), sigmoid(LOGITS / entries.temperature_), rtol=1e-9)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", ["temperature", "platt", "isotonic", "structured"])
def test_files_modules_probabilities_and_predictions(name, shared, tmp_path):
    logits, labels = LOGITS[:300], LABELS[:300]
    fitted = MultilabelCalibration(CALIBRATORS[name](), shared=shared).fit(logits, labels)
    expected = fitted.predict_proba(logits)
    assert expected.shape == (300, 3)
    assert fitted.predict(logits).tolist() == (expected >= 0.5).astype(int).tolist()
    fitted.save(tmp_path / "labels.json")
    np.testing.assert_array_equal(load_calibrator(tmp_path / "labels.json").predict_proba(logits), expected)
    module = fitted.to_module()
    torch.testing.assert_close(module(torch.from_numpy(logits)), torch.from_numpy(expected), atol=1e-9, rtol=1e-7)
    held = Predictions(logits=logits, labels=labels, split="val", multilabel=True)
    again = MultilabelCalibration(CALIBRATORS[name](), shared=shared).fit(held)
    np.testing.assert_allclose(again.predict_proba(held), expected)
    by_probs = MultilabelCalibration(CALIBRATORS[name](), shared=shared).fit(probs=sigmoid(logits), labels=labels)
    np.testing.assert_allclose(by_probs.predict_proba(probs=sigmoid(logits)), expected, atol=1e-4)


@pytest.mark.parametrize("shared", [False, True])
def test_a_weight_is_a_number_of_copies(shared):
    copies = GENERATOR.integers(0, 3, 300)
    logits, labels = LOGITS[:300], LABELS[:300]
    weighted = MultilabelCalibration(PlattScaling(), shared=shared).fit(logits, labels, copies)
    by_entry = MultilabelCalibration(PlattScaling(), shared=shared).fit(logits, labels, np.tile(copies[:, None], 3))
    repeated = MultilabelCalibration(PlattScaling(), shared=shared)
    repeated.fit(np.repeat(logits, copies, 0), np.repeat(labels, copies, 0))
    for fitted in (weighted, by_entry):
        np.testing.assert_allclose(fitted.predict_proba(logits), repeated.predict_proba(logits), rtol=1e-6)


def test_a_file_that_is_damaged_is_refused(tmp_path):
    calibration = MultilabelCalibration(HistogramBinning()).fit(LOGITS, LABELS)
    calibration.save(tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text())
    for change in ({"calibrators_": []}, {"labels": 2}, {"calibrators_": 3}, {"labels": "3"}):
        (tmp_path / "b.json").write_text(json.dumps(content | {"state": content["state"] | change}))
        with pytest.raises(ValueError, match="no valid MultilabelCalibration"):
            load_calibrator(tmp_path / "b.json")
