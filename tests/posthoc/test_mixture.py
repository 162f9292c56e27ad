"""A mixture of calibrators: its weights, its probabilities, its file, and what it leads to on new rows."""

import json

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from focalcal import calibrate
from focalcal.posthoc import (
    CalibratorMixture,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
    WithUniform,
    load_calibrator,
)
from focalcal.posthoc.mixture import pooled_weights, share_of_evidence


def rows(count, seed=0):
    """Of three classes, over-confident and with a curve that no single calibrator has."""
    rng = np.random.default_rng(seed)
    truth = 2 * rng.normal(size=(count, 3))
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(1)
    return np.sinh(truth) + np.array([0.5, 0.0, -0.5]), labels


def nll(calibrator, logits, labels):
    return -np.log(calibrator.predict_proba(logits)[np.arange(len(labels)), labels]).mean()


def test_weights_are_the_mode_of_the_posterior():
    rng = np.random.default_rng(0)
    each, counts = rng.beta(2, 1, size=(200, 2)), rng.integers(1, 4, 200)

    def loss(at):  # for the best uniform part at that share of the first
        def given(uniform):
            first, second = at * (1 - uniform), (1 - at) * (1 - uniform)
            seen = counts @ np.log(first * each[:, 0] + second * each[:, 1] + uniform / 4)
            return -seen - 3 * np.log(first + 0.001 * second + uniform / 4) - 0.1 * np.log(uniform / 4)

        return minimize_scalar(given, bounds=(0, 0.5), method="bounded", options={"xatol": 1e-10}).fun

    weights = pooled_weights(each, 4, counts)
    best = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x
    assert weights[0] / weights.sum() == pytest.approx(best, abs=1e-4)
    copies = pooled_weights(np.repeat(each, counts, 0), 4)
    np.testing.assert_allclose(copies, weights, atol=1e-7)


def test_probabilities_are_the_weighted_mean(tmp_path):
    logits, labels = rows(400)
    parts = [TemperatureScaling(), WithUniform(VectorScaling())]
    mixture = CalibratorMixture(parts, [0.5, 0.4]).fit(logits, labels)
    found = mixture.predict_proba(logits)
    each = [part.fit(logits, labels).predict_proba(logits) for part in parts]
    np.testing.assert_allclose(found, 0.5 * each[0] + 0.4 * each[1] + 0.1 / 3, atol=1e-12)
    np.testing.assert_allclose(mixture.to_module()(torch.from_numpy(logits)).numpy(), found, atol=1e-12)
    mixture.save(tmp_path / "mixture.json")
    twin = load_calibrator(tmp_path / "mixture.json")
    np.testing.assert_array_equal(twin.predict_proba(logits), found)
    assert twin.weights == [0.5, 0.4]


@pytest.mark.parametrize(("change", "message"), [
    ({"weights": [0.5]}, "one for each of 1 calibrators"),
    ({"weights": ["a"]}, "is no valid CalibratorMixture"),
    ({"calibrators": []}, "calibrators must be a list of calibrators"),
    ({"calibrators": 3}, "calibrators must be a list of calibrators, got 3"),
    ({"calibrators": [1]}, "is not a saved calibrator"),
])  # fmt: skip
def test_a_file_that_is_damaged_is_refused(change, message, tmp_path):
    record = CalibratorMixture([TemperatureScaling()], [0.9]).fit(*rows(50)).record()
    if change.get("weights") == [0.5]:
        change = {"weights": [0.5, 0.5]}
    record["state"] |= change
    from focalcal.posthoc import restored_calibrator

    with pytest.raises(ValueError, match=message):
        restored_calibrator(record, "file")


def test_a_file_of_endless_calibrators_is_refused(tmp_path):
    record = WithUniform(TemperatureScaling()).fit(*rows(50)).record()
    mixture = CalibratorMixture([TemperatureScaling()], [0.9]).fit(*rows(50)).record()
    for _ in range(150):
        outer = {**mixture, "state": {"calibrators": [record], "weights": [0.9]}}
        record = {**record, "state": {"calibrator_": outer, "uniform_": 0.1}}
    (tmp_path / "deep.json").write_text(json.dumps(record["state"]["calibrator_"]))
    with pytest.raises(ValueError, match=r"deep\.json is damaged: its calibrators are nested too deeply"):
        load_calibrator(tmp_path / "deep.json")


@pytest.mark.parametrize(("calibrators", "weights", "error"), [
    ([], [], TypeError), ([1], [1.0], TypeError), ([TemperatureScaling()], [1.2], ValueError),
    ([TemperatureScaling()], [0.5, 0.5], ValueError), ([TemperatureScaling()], [-0.1], ValueError),
    ([CalibratorMixture([TemperatureScaling()], [1.0])], [1.0], TypeError),
])  # fmt: skip
def test_arguments_that_make_no_sense_are_refused(calibrators, weights, error):
    with pytest.raises(error, match=r"calibrators must be|weights must be"):
        CalibratorMixture(calibrators, weights).fit(*rows(50))


def test_a_mixture_is_better_than_the_best_single_one():
    fit, held = rows(1200), rows(10_000, seed=1)
    names = ["temperature", "structured", "quadratic", "spline", "beta"]
    best = calibrate(*fit, candidates=names, prefer="best")
    single = [nll(calibrate(*fit, candidates=name, prefer="simple"), *held) for name in names]
    assert nll(best, *held) < min(single) + 0.001
    assert nll(best, *held) < nll(StructuredScaling().fit(*fit), *held) - 0.001
    assert best.choice_.mixed == pytest.approx(nll(best, *held), abs=0.05)


def test_little_evidence_leaves_the_scores_as_they_are():
    """Odds of one to seven before any evidence, which grow e-fold with each nat; what is hardly there is not there."""
    assert share_of_evidence(np.array([2.0, 0.0])) == pytest.approx(0.5)
    assert share_of_evidence(np.array([-9.0, 4.0])) == pytest.approx(1 / (1 + np.exp(-1)))
    assert share_of_evidence(np.array([-9.0, -9.0])) == 0
    assert share_of_evidence(np.array([99.0, -9.0])) == 1


@pytest.mark.parametrize("classes", [2, 4])
def test_calibrated_scores_are_hardly_harmed(classes):
    """200 rows of the truth itself, many times: a calibrator costs what its numbers cost, the mixture a third of it."""
    harm = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = 2 * rng.normal(size=(4200, classes))
        labels = (truth + rng.gumbel(size=truth.shape)).argmax(1)
        fit, held = (truth[:200], labels[:200]), (truth[200:], labels[200:])
        none = nll(TemperatureScaling(1.0), *held)
        names = ["temperature", "structured", "vector", "beta"]
        each = [TemperatureScaling().fit(*fit), calibrate(*fit, candidates=names, prefer="best")]
        harm.append([nll(one, *held) - none for one in each])
    temperature, mixture = np.mean(harm, 0)
    assert mixture < 0.5 * temperature
    assert np.median(harm, 0)[1] < 0.001


def test_rows_of_a_group_are_one_piece_of_evidence():
    logits, labels = rows(120)
    ten = np.repeat(logits, 10, 0), np.repeat(labels, 10)
    names = ["temperature", "structured"]
    alone = calibrate(*ten, candidates=names, prefer="best").choice_.weights
    grouped = calibrate(*ten, candidates=names, prefer="best", groups=np.repeat(np.arange(120), 10)).choice_.weights
    assert grouped.get("as they are", 0) > alone.get("as they are", 0)
