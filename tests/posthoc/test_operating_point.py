"""The lam to train with next: recovered where the truth is known, honest where there is none, clear about bad input."""

import json
import math
import re
import sys

import numpy as np
import pytest
import torch

import focalcal
from focalcal.posthoc import TemperatureScaling, operating_point
from focalcal.posthoc.operating_point import HeldOut
from focalcal.theory import MatchStatus, effective_temperature, matching_lam, minimise

ROWS, CLASSES = 4000, 5


@pytest.fixture(scope="module")
def truth():
    """Posteriors and labels drawn from them."""
    draws = np.random.default_rng(0)
    eta = draws.dirichlet(np.full(CLASSES, 0.4), size=ROWS).clip(1e-9)
    eta /= eta.sum(1, keepdims=True)
    labels = (eta.cumsum(1) < draws.random((ROWS, 1))).sum(1).clip(max=CLASSES - 1)
    return eta, labels


def test_after_cross_entropy(truth):
    """Logits inflated by 1.4: within the interval is the lam that cancels 1.4 over the true posteriors."""
    eta, labels = truth
    point = operating_point(1.4 * np.log(eta), labels)
    exact = matching_lam(eta, 1.4, gamma=3.0).unwrap()
    assert point.helps
    assert point.status is MatchStatus.MATCHED
    assert point.temperature == point.overfitting == TemperatureScaling().fit(1.4 * np.log(eta), labels).temperature_
    assert point.overfitting_interval[0] < 1.4 < point.overfitting_interval[1]
    assert point.interval[0] < exact < point.interval[1]
    assert point.interval[0] < point.lam < point.interval[1]
    reached = effective_temperature(point.posteriors, gamma=3.0, lam=point.lam)
    assert reached * point.temperature == pytest.approx(1.0, abs=1e-4)
    assert [match.gamma for match in point.matches] == [1.0, 2.0, 3.0, 5.0]
    assert point.matches[2].lam == point.lam < point.matches[3].lam


def test_after_fcl_the_distortion_of_its_own_is_taken_out(truth):
    """The same overfitting on top of FCL(2, 0.5)'s own minimisers leads to the same lam, from other logits."""
    eta, labels = truth
    q = minimise(eta, gamma=2.0, lam=0.5).q
    refined = operating_point(1.4 * np.log(q), labels, trained_with=(2.0, 0.5), resamples=100)
    plain = operating_point(1.4 * np.log(eta), labels, resamples=100)
    assert refined.temperature < 1.15
    assert refined.overfitting == pytest.approx(plain.overfitting, rel=0.01)
    assert refined.lam == pytest.approx(plain.lam, rel=0.05)
    np.testing.assert_allclose(refined.posteriors, plain.posteriors, atol=0.01)
    assert refined.overfitting == pytest.approx(
        refined.temperature / effective_temperature(refined.posteriors, gamma=2.0, lam=0.5), rel=0.01
    )


@pytest.mark.parametrize("trained_with", [(0.0, 0.0), (2.0, 0.5)])
def test_the_interval_is_that_of_refitted_resamples(truth, trained_with):
    eta, labels = truth
    eta, labels = eta[:800], labels[:800]
    logits = 1.4 * np.log(minimise(eta, gamma=trained_with[0], lam=trained_with[1]).q)
    point = operating_point(logits, labels, trained_with=trained_with)
    draws, refitted = np.random.default_rng(1), []
    for _ in range(40 if trained_with[0] else 150):
        rows = draws.integers(len(labels), size=len(labels))
        held_out = HeldOut(logits[rows], labels[rows], trained_with)
        refitted.append(held_out.overfitting())
    width = point.overfitting_interval[1] - point.overfitting_interval[0]
    assert width == pytest.approx(2 * 1.96 * np.std(refitted), rel=0.3)
    assert np.mean(refitted) == pytest.approx(sum(point.overfitting_interval) / 2, abs=0.2 * width)


def test_without_overconfidence(truth):
    eta, labels = truth
    below = operating_point(0.8 * np.log(eta), labels, resamples=50)
    assert not below.helps
    assert (below.status, below.lam, below.interval) == (MatchStatus.NOT_OVERCONFIDENT, math.inf, (math.inf, math.inf))
    assert below.sentence.startswith("Keep cross-entropy")
    assert below.paste == "CrossEntropyLoss()"
    doubtful = operating_point(1.01 * np.log(eta)[:500], labels[:500], resamples=200)
    assert doubtful.overfitting_interval[0] < 1 < doubtful.overfitting_interval[1]
    assert not doubtful.helps
    assert doubtful.interval[1] == math.inf
    assert "Keep cross-entropy" in doubtful.sentence


def test_more_overconfidence_than_gamma_can_cancel(truth):
    eta, labels = truth
    strong = operating_point(2.5 * np.log(eta), labels, gamma=1.0, gammas=(), resamples=50)
    assert strong.helps
    assert (strong.status, strong.lam) == (MatchStatus.GAMMA_TOO_SMALL, 0.0)
    assert effective_temperature(strong.posteriors, gamma=strong.gamma_needed, lam=0.0) == pytest.approx(
        1 / strong.overfitting, rel=1e-4
    )
    assert f"gamma = {strong.gamma_needed:.3g}" in strong.sentence
    assert strong.paste == strong.record()["paste"] == ""  # the sentence says why
    assert "FocalCalibrationLoss" not in repr(strong) + strong._repr_html_()
    assert "<pre>" not in strong._repr_html_()
    alternative = operating_point(1.4 * np.log(eta), labels, gamma=0.5, resamples=50)
    assert f"Take gamma = 2 with lam = {alternative.matches[2].lam:.3g}" in alternative.sentence
    loss = eval(alternative.paste, {"FocalCalibrationLoss": focalcal.FocalCalibrationLoss})  # what the sentence says
    assert (loss.gamma, loss.lam) == (2.0, float(f"{alternative.matches[2].lam:.3g}"))
    assert alternative.paste in repr(alternative)
    reached = effective_temperature(alternative.posteriors, gamma=loss.gamma, lam=loss.lam)
    assert reached * alternative.overfitting == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("inflated", [0.9, 1.005, 1.5, 3.0])
def test_the_line_to_paste_is_what_the_sentence_says(truth, inflated):
    eta, labels = (part[:1000] for part in truth)
    for gamma in (0.5, 3.0):
        point = operating_point(inflated * np.log(eta), labels, gamma=gamma, resamples=20)
        named = re.search(r"(?:Train with|Take) gamma = (\S+) (?:and|with) lam = ([\d.e+-]*\d)", point.sentence)
        if named:
            assert point.paste == f'FocalCalibrationLoss(gamma={named[1]}, lam={named[2]}, scale="matched")'
        else:
            assert point.paste == ("CrossEntropyLoss()" if point.sentence.startswith("Keep cross-entropy") else "")


def test_probabilities_and_shifted_logits_say_the_same(truth):
    eta, labels = (part[:1000] for part in truth)
    logits = 1.4 * np.log(eta)
    probs = np.exp(logits - logits.max(1, keepdims=True))
    probs /= probs.sum(1, keepdims=True)
    expected = operating_point(logits, labels, resamples=50)
    assert operating_point(probs=probs, labels=labels, resamples=50).lam == pytest.approx(expected.lam, rel=1e-6)
    shifted = operating_point(torch.from_numpy(logits) + 300, torch.from_numpy(labels), resamples=50)
    assert shifted.lam == pytest.approx(expected.lam, rel=1e-6)


def test_a_sample_stands_for_many_rows(monkeypatch, truth):
    eta, labels = truth
    whole = operating_point(1.4 * np.log(eta), labels, resamples=50)
    monkeypatch.setattr(sys.modules[HeldOut.__module__], "_POPULATION", 1000 * CLASSES)
    sampled = operating_point(1.4 * np.log(eta), labels, resamples=50)
    assert len(sampled.posteriors) == 1000
    assert sampled.overfitting == whole.overfitting
    assert sampled.lam == pytest.approx(whole.lam, rel=0.02)


def test_what_it_shows(truth):
    eta, labels = truth
    point = focalcal.operating_point(1.4 * np.log(eta), labels, resamples=50)
    lines = repr(point).splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 100
    assert point.paste == f'FocalCalibrationLoss(gamma=3, lam={point.lam:.3g}, scale="matched")'
    assert point.paste in repr(point)
    assert point.paste.replace('"', "&quot;") in point._repr_html_()
    frame = point.frame()
    assert frame["lam"][2] == point.lam
    assert len({len(column) for column in frame.values()}) == 1
    assert json.loads(json.dumps(point.record(), allow_nan=False))["lam"] == point.lam
