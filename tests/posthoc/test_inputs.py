"""Calibrators take what people have, and give the same for the same numbers in another form."""

import numpy as np
import pandas
import pytest
import torch

from focalcal import Predictions, split_half
from focalcal.posthoc import (
    CALIBRATORS,
    ConformalSets,
    EnsembleTemperatureScaling,
    PlattScaling,
    TemperatureScaling,
    load_calibrator,
)

GENERATOR = np.random.default_rng(0)
LABELS = GENERATOR.integers(0, 3, 400)
LOGITS = 2 * GENERATOR.normal(size=(400, 3)) + 2 * np.eye(3)[LABELS]
NAMES = np.array(["cat", "dog", "emu"])
POSITIVE = LABELS == 0
COLUMN = 3 * POSITIVE + 2 * GENERATOR.normal(size=400)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_predictions_tables_and_names_give_the_same(name):
    expected = CALIBRATORS[name]().fit(LOGITS, LABELS).predict_proba(LOGITS)
    predictions = Predictions(logits=LOGITS, labels=LABELS, split="val")
    fitted = CALIBRATORS[name]().fit(predictions)
    np.testing.assert_allclose(fitted.predict_proba(predictions), expected)
    assert fitted.score(predictions) == fitted.score(LOGITS, LABELS)
    table = pandas.DataFrame(LOGITS[:, [2, 0, 1]], columns=NAMES[[2, 0, 1]])
    named = CALIBRATORS[name]().fit(table, NAMES[LABELS])
    assert named.classes_.tolist() == ["emu", "cat", "dog"]
    np.testing.assert_allclose(named.predict_proba(table)[:, [1, 2, 0]], expected, atol=1e-6)
    assert named.score(table, NAMES[LABELS]) == pytest.approx(np.mean(named.predict(table) == NAMES[LABELS]))


@pytest.mark.parametrize("name", CALIBRATORS)
def test_one_column_is_two_classes(name, tmp_path):
    two = np.stack([np.zeros(400), COLUMN], 1)
    expected = CALIBRATORS[name]().fit(two, POSITIVE.astype(int)).predict_proba(two)
    words = np.where(POSITIVE, "spam", "ham")
    calibrator = CALIBRATORS[name]().fit(COLUMN, words, positive="spam")
    assert calibrator.classes_.tolist() == ["ham", "spam"]
    calibrator.save(tmp_path / "a.json")
    for each in (calibrator, load_calibrator(tmp_path / "a.json")):
        np.testing.assert_allclose(each.predict_proba(COLUMN), expected)
        np.testing.assert_allclose(each.predict_proba(COLUMN[:, None]), expected)
        assert each.predict(COLUMN).tolist() == np.array(["ham", "spam"])[expected.argmax(1)].tolist()
        assert each.score(COLUMN, words) == np.mean(each.predict(COLUMN) == words)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        CALIBRATORS[name]().fit(two, POSITIVE.astype(int)).predict_proba(COLUMN[:, None])


def test_classes_of_the_fit_and_of_predictions_must_agree():
    fitted = TemperatureScaling().fit(LOGITS, NAMES[LABELS], classes=NAMES)
    turned = Predictions(logits=LOGITS, labels=LABELS, split="test", classes=["emu", "cat", "dog"])
    with pytest.raises(ValueError, match=r"classes must be those of the fit, .*cat.* got .*emu"):
        fitted.predict_proba(turned)


def test_impossible_classes_stay_impossible_and_do_not_move_the_temperature():
    """Softmax over the possible classes is that of logits without the column."""
    rows = LABELS < 2
    masked = LOGITS[rows].copy()
    masked[:, 2] = -np.inf
    without = TemperatureScaling().fit(LOGITS[rows, :2], LABELS[rows])
    for logits in (masked, torch.from_numpy(masked).float(), torch.from_numpy(masked).half()):
        scaling = TemperatureScaling().fit(logits, LABELS[rows] if logits is masked else torch.from_numpy(LABELS[rows]))
        assert scaling.temperature_ == pytest.approx(without.temperature_, rel=1e-9 if logits is masked else 1e-2)
    scaling = TemperatureScaling().fit(masked, LABELS[rows])
    probs = scaling.predict_proba(masked)
    assert (probs[:, 2] == 0).all()
    np.testing.assert_allclose(probs[:, :2], without.predict_proba(LOGITS[rows, :2]), rtol=1e-9)
    assert split_half(masked, LABELS[rows], TemperatureScaling()).before["nll"] > 0
    for other in (PlattScaling, EnsembleTemperatureScaling):
        with pytest.raises(ValueError, match="logits must be finite, got -inf in row 0"):
            other().fit(masked, LABELS[rows])


def test_conformal_sets_take_predictions():
    predictions = Predictions(logits=LOGITS, labels=LABELS, split="val")
    sets, expected = ConformalSets().fit(predictions), ConformalSets().fit(LOGITS, LABELS)
    assert sets.threshold_ == expected.threshold_
    assert sets.evaluate(predictions) == expected.evaluate(LOGITS, LABELS)
    assert sets.predict(predictions).tolist() == expected.predict(LOGITS).tolist()


def test_split_half_takes_predictions_and_names():
    expected = split_half(LOGITS, LABELS, TemperatureScaling())
    for found in (
        split_half(Predictions(logits=LOGITS, labels=LABELS, split="val"), calibrator=TemperatureScaling()),
        split_half(LOGITS, NAMES[LABELS], TemperatureScaling(), classes=NAMES),
    ):
        assert found.after == pytest.approx(expected.after)
        assert found.before == pytest.approx(expected.before)
    assert found.calibrator.classes_.tolist() == NAMES.tolist()
    probs = torch.from_numpy(LOGITS).softmax(1)
    by_probs = split_half(Predictions(probs=probs, labels=LABELS, split="val"), calibrator=TemperatureScaling())
    assert by_probs.after == pytest.approx(expected.after)
