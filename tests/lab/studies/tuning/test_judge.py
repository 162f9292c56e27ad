"""Judgements of validation rows: raw, and with a temperature of other rows."""

import math

import numpy as np
import pytest

from focalcal.core.numerics import softmax
from focalcal.lab.studies.tuning import judge
from focalcal.metrics import brier, error, nll
from focalcal.posthoc import TemperatureScaling
from focalcal.predictions import Predictions


def held_out(factor=2.0, rows=2000, seed=0):
    draws = np.random.default_rng(seed)
    logits = 2 * draws.normal(size=(rows, 5))
    labels = np.argmax(logits + draws.gumbel(size=logits.shape), axis=1)
    return Predictions(logits=factor * logits, labels=labels, split="val")


def test_raw_means_are_the_metrics():
    rows = held_out()
    scores = judge(rows)
    probs = softmax(rows.logits)
    assert scores.mean("nll", scaled=False) == pytest.approx(nll(probs, rows.labels), rel=1e-12)
    assert scores.mean("brier", scaled=False) == pytest.approx(brier(probs, rows.labels), rel=1e-12)
    assert scores.error == pytest.approx(error(probs, rows.labels), rel=1e-12)
    assert scores.temperature == pytest.approx(TemperatureScaling().fit(rows.logits, rows.labels).temperature_)


def test_scaling_is_judged_on_rows_it_was_not_fitted_on():
    rows = held_out()
    scores = judge(rows)
    fitted = TemperatureScaling().fit(rows.logits, rows.labels)
    best = nll(fitted.predict_proba(rows.logits), rows.labels)
    assert best < scores.mean("nll", scaled=True) < best + 0.002
    assert scores.best("nll") == scores.mean("nll", scaled=True)


def test_scaling_what_needs_none_does_not_help_on_average():
    scores = [judge(held_out(1.0, rows=200, seed=seed)) for seed in range(30)]
    helps = [each.best("nll") < each.mean("nll", scaled=False) for each in scores]
    assert np.mean(helps) < 0.6, "cross-fitted, a needless temperature costs more often than not"


def test_a_given_temperature_is_used_as_it_is():
    rows = held_out()
    scores = judge(rows, temperature=2.0)
    assert scores.temperature == 2.0
    assert scores.mean("nll", scaled=True) == pytest.approx(nll(logits=rows.logits / 2, labels=rows.labels))


def test_probabilities_and_labels_that_are_all_predicted():
    rows = held_out()
    probs = Predictions(probs=softmax(rows.logits), labels=rows.labels, split="val")
    assert judge(probs).mean("nll", scaled=True) == pytest.approx(judge(rows).mean("nll", scaled=True), rel=1e-6)
    perfect = Predictions(logits=rows.logits, labels=rows.logits.argmax(1), split="val")
    scores = judge(perfect)
    assert math.isnan(scores.temperature)
    assert scores.mean("nll", scaled=True) == scores.mean("nll", scaled=False)
    assert not scores.wrong.any()
