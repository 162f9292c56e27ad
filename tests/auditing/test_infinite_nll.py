"""One certain mistake makes the NLL infinite: the audit says which rows, and recommends what makes it finite."""

import json

import numpy as np
import pytest

from focalcal.auditing import Gate, audit
from focalcal.metrics import brier, nll
from focalcal.posthoc import PlattScaling
from focalcal.predictions import Predictions


def printed(classes, rows=600):
    """Over-confident probabilities with three digits, and labels."""
    draws = np.random.default_rng(classes)
    logits = 2 * draws.normal(size=(rows, classes))
    labels = np.argmax(logits + draws.gumbel(size=logits.shape), axis=1)
    probs = np.exp(3 * logits - (3 * logits).max(1, keepdims=True))
    probs = (probs / probs.sum(1, keepdims=True)).round(3)
    probs[np.arange(rows), probs.argmax(1)] += 1 - probs.sum(1)
    return probs.round(3), labels


def spoken(rows=500):
    """Confidences in a language model's words, and whether it was right."""
    draws = np.random.default_rng(0)
    confidence = draws.choice([0.5, 0.9, 1.0], size=rows)
    return confidence, draws.random(rows) < np.select([confidence == 0.5, confidence == 0.9], [0.5, 0.6], 0.75)


@pytest.mark.parametrize("classes", [2, 10])
def test_three_printed_digits(classes, tmp_path):
    probs, labels = printed(classes)
    certain = np.flatnonzero(probs[np.arange(600), labels] == 0)
    assert len(certain) > 5
    found = audit(probs, labels, resamples=100)  # a RuntimeWarning would be an error here
    assert found.fixes.recommended == "temperature"
    assert found.fixes.impossible == tuple(certain.tolist())
    shown = ", ".join(map(str, certain[:5]))
    assert f"infinite, since {len(certain)} of 600 rows give what happened a probability of 0 (row {shown}, ...)" in (
        found.fixes.sentence
    )
    assert found.fixes.calibrator.temperature_ == pytest.approx(3, rel=0.25)
    by_name = {fix.name: fix for fix in found.fixes.tried}
    assert found.fixes.raw_brier == pytest.approx(brier(probs, labels))
    chosen = by_name["temperature"]
    assert chosen.brier_change.mean == pytest.approx(chosen.brier - found.fixes.raw_brier)
    assert chosen.brier_change.high < 0
    order = [(fix.nll, fix.brier) for fix in found.fixes.tried]
    assert order == sorted(order)
    assert any("entries of 0, in" in note and "take for" in note for note in found.notes)
    found.html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "Use temperature: the NLL is infinite, since" in page
    record = json.loads(json.dumps(found.record()))["fixes"]
    assert record["recommended"] == "temperature"
    assert record["impossible"] == certain.tolist()
    assert record["tried"][0]["brier"] == found.fixes.tried[0].brier
    assert Gate.parse("nll > 0.7").holds(found.metrics)
    assert not found.check("nll < 100")
    assert found.metrics["nll"].estimate == np.inf == nll(probs, labels), "metrics never clip"


def test_one_mistake_that_was_called_certain():
    """A single row, named by its id where it has one."""
    probs, labels = printed(3)
    probs = np.clip(probs, 0.001, 1)
    probs[7] = np.eye(3)[(labels[7] + 1) % 3]
    probs /= probs.sum(1, keepdims=True)
    ids = [f"image {row}" for row in range(600)]
    found = audit(Predictions(probs=probs, labels=labels, ids=ids, split="test"), resamples=100)
    assert found.fixes.impossible == ("image 7",)
    assert found.fixes.recommended is not None
    assert "1 of 600 rows give what happened a probability of 0 (row image 7)" in found.fixes.sentence


def test_words_of_a_language_model():
    confidence, right = spoken()
    found = audit(confidence=confidence, correct=right, resamples=100)
    wrong = np.flatnonzero((confidence == 1) & ~right)
    assert found.fixes.impossible == tuple(wrong.tolist())
    assert found.fixes.recommended == "platt"
    assert found.fixes.calibrator.clip_ == 0.005
    zeros = int((confidence == 1).sum())
    expected = f"{zeros} entries of 0, in {zeros} of 500 rows, which calibrators take for 0.005, and 1 for 1 - 0.005"
    assert any(expected in note for note in found.notes)
    assert found.fixes.raw_brier == pytest.approx(np.mean((confidence - right) ** 2))
    clipped = PlattScaling().fit(probs=confidence.clip(0.005, 0.995), labels=right.astype(int))
    assert found.fixes.calibrator.slope_ == pytest.approx(clipped.slope_, rel=1e-6)


def test_several_labels_per_row():
    draws = np.random.default_rng(0)
    logits = 2 * draws.normal(size=(500, 3))
    answers = draws.random((500, 3)) < 1 / (1 + np.exp(-logits))
    probs = (1 / (1 + np.exp(-3 * logits))).round(3)
    found = audit(probs, answers, multilabel=True, resamples=100)
    certain = (np.where(answers, probs, 1 - probs) == 0).any(1)
    assert found.fixes.impossible == tuple(np.flatnonzero(certain).tolist())
    assert found.fixes.recommended is not None
    assert found.fixes.raw_brier == pytest.approx(np.mean((probs - answers) ** 2))


def test_a_finite_likelihood_is_not_bought_with_a_worse_brier_score():
    """A distortion undone that was never there, and one row that was called impossible."""
    draws = np.random.default_rng(0)
    probs = 1 / (1 + np.exp(-draws.normal(size=400)))
    labels = (draws.random(400) < probs).astype(int)
    probs[0] = 1 - labels[0]
    found = audit(probs, labels, calibrate="recovery", trained_with=(3.0, 0.0), resamples=100).fixes
    assert np.isfinite(found.tried[0].nll)
    assert found.tried[0].brier_change.low > 0
    assert found.recommended is None
    assert found.sentence.endswith(
        "none makes it finite without raising the Brier score of rows that it was not fitted on."
    )
