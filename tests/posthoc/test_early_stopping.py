"""Which epoch is kept: by the loss that no temperature removes, and what comes with it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from focalcal import EarlyStopping
from focalcal.metrics import nll
from focalcal.posthoc import TemperatureScaling, epoch_scores
from focalcal.posthoc.early_stopping import CROSS_FITTED_BELOW


def rows(number=400, signal=2.0, seed=0):
    generator = np.random.default_rng(seed)
    labels = generator.integers(3, size=number)
    return generator.normal(size=(number, 3)) + signal * np.eye(3)[labels], labels


@given(scale=st.floats(0.05, 20), shift=st.floats(-5, 5), seed=st.integers(0, 99))
def test_a_scale_changes_the_nll_and_the_temperature_alone(scale, shift, seed):
    logits, labels = rows(seed=seed)
    plain, scaled = epoch_scores(logits, labels), epoch_scores(scale * logits + shift, labels)
    assert scaled.refined_nll == pytest.approx(plain.refined_nll, rel=1e-9)
    assert scaled.temperature == pytest.approx(scale * plain.temperature, rel=1e-7)
    assert scaled.error == plain.error


def test_many_rows_are_scaled_by_their_own_temperature():
    logits, labels = rows(CROSS_FITTED_BELOW)
    fitted = TemperatureScaling().fit(logits, labels)
    scores = epoch_scores(logits.astype(np.float32), labels)
    assert scores.refined_nll == pytest.approx(nll(fitted.predict_proba(logits), labels), rel=1e-6)
    assert scores.nll == pytest.approx(nll(logits=logits, labels=labels), rel=1e-6)


def test_few_rows_are_scaled_by_the_temperature_of_others():
    """As scikit-learn cross-validates the one slope of a logistic regression over the same folds."""
    generator = np.random.default_rng(1)
    margin = generator.normal(size=60)
    labels = (generator.random(60) < 1 / (1 + np.exp(-3 * margin))).astype(int)
    order = np.random.default_rng(0).permutation(60)
    folds = [(np.setdiff1d(order, fold), fold) for fold in np.array_split(order, 5)]
    slope = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10)
    probs = cross_val_predict(slope, margin[:, None], labels, cv=folds, method="predict_proba")
    logits = np.stack([np.zeros(60), margin], 1)
    assert epoch_scores(logits, labels).refined_nll == pytest.approx(nll(probs, labels), rel=1e-5)


def test_rows_that_are_all_predicted_need_no_temperature():
    logits = 3.0 * np.eye(3)[[0, 1, 2] * 5]
    scores = epoch_scores(logits, np.arange(15) % 3)
    assert np.isnan(scores.temperature)
    assert scores.refined_nll == scores.nll
    stopping = EarlyStopping()
    stopping.update(logits, np.arange(15) % 3)
    assert stopping.calibrator.temperature_ == 1


@pytest.mark.parametrize(("by", "epoch"), [("nll", 1), ("error", 3), ("refined_nll", 2)])
def test_each_rule_keeps_its_epoch_with_weights_and_calibrator(by, epoch):
    """Vague, but as sure as it may be; better, and far too sure; more rows right, but alike with the wrong ones."""
    logits, labels = rows(2000, seed=3)
    noisy = logits + np.random.default_rng(0).normal(size=logits.shape)
    predicted = logits.argmax(1)
    wrong = np.flatnonzero(predicted != labels)[:20]
    predicted[wrong] = labels[wrong]
    blunt = 9 * np.eye(3)[predicted]
    stopping, network = EarlyStopping(by=by), torch.nn.Linear(1, 1)
    for number, each in enumerate([noisy, 20 * logits, blunt], start=1):
        torch.nn.init.constant_(network.weight, number)
        stopping.update(torch.from_numpy(each), torch.from_numpy(labels), network)
    assert [stopping.best_epoch, len(stopping.history)] == [epoch, 3]
    stopping.restore(network)
    assert network.weight.item() == epoch
    assert stopping.calibrator.temperature_ == stopping.best.temperature
    assert stopping.calibrator.predict_proba(logits).shape == logits.shape


def test_patience_and_ties():
    logits, labels = rows()
    stopping = EarlyStopping(by="error", patience=2)
    ended = []
    for _ in range(4):
        stopping.update(logits, labels)
        ended.append(stopping.finished)
    assert stopping.best_epoch == 1
    assert ended == [False, False, True, True]


def test_misuse_is_refused():
    logits, labels = rows(20)
    with pytest.raises(ValueError, match=r"by must be one of .*'refined_nll'.*, got 'refined'"):
        EarlyStopping(by="refined")
    stopping = EarlyStopping()
    with pytest.raises(ValueError, match="update must be called first"):
        _ = stopping.calibrator
    with pytest.raises(ValueError, match="logits must not be probabilities"):
        stopping.update(np.full((20, 3), 1 / 3), labels)
    assert stopping.history == []
    with pytest.raises(ValueError, match=r"logits must be finite, got nan"):
        stopping.update(np.full((20, 3), np.nan), labels)
    stopping.update(logits, labels)
    with pytest.raises(ValueError, match="update must be given the model"):
        stopping.restore(torch.nn.Linear(1, 1))
