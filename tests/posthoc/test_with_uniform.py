"""A uniform part in any calibrator: the optimal share, on rows that the map was not fitted on."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from focalcal.posthoc import (
    HistogramBinning,
    IsotonicCalibration,
    SplineCalibration,
    TemperatureScaling,
    WithUniform,
    load_calibrator,
)
from focalcal.posthoc.mixture import uniform_part

ZEROS = [HistogramBinning(), IsotonicCalibration(), SplineCalibration()]


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    logits = 4 * rng.normal(size=(count, 6))
    labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(1)
    labels[::50] = rng.integers(6, size=len(labels[::50]))  # some at random, as labels are
    return logits, labels


def nll(calibrator, logits, labels):
    with np.errstate(divide="ignore"):
        return -np.log(calibrator.predict_proba(logits)[np.arange(len(labels)), labels]).mean()


def test_the_share_has_the_largest_likelihood():
    rng = np.random.default_rng(0)
    own, weights = rng.beta(2, 0.3, size=300), rng.uniform(0.5, 2, size=300)
    own[:6] = 0.0

    def loss(share):
        return -(weights @ np.log((1 - share) * own + share / 7) + 0.1 * np.log(share / 7))

    best = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    assert uniform_part(own, weights, 7) == pytest.approx(best.x, abs=1e-6)


@pytest.mark.parametrize("calibrator", ZEROS, ids=lambda calibrator: type(calibrator).__name__)
def test_no_wrong_row_costs_an_infinite_loss(calibrator):
    fit, held = rows(1500), rows(4000, seed=1)
    mixed = WithUniform(calibrator).fit(*fit)
    probs = mixed.predict_proba(held[0])
    assert probs.min() >= mixed.uniform_ / 6 > 0
    np.testing.assert_allclose(probs.sum(1), 1)
    raw = calibrator.fit(*fit)
    assert nll(mixed, *held) < nll(raw, *held) + 0.001
    np.testing.assert_array_equal(probs.argmax(1), raw.predict_proba(held[0]).argmax(1))


def test_the_share_is_nearly_as_good_as_the_best_for_new_rows():
    fit, held = rows(1500), rows(20_000, seed=1)
    mixed = WithUniform(IsotonicCalibration()).fit(*fit)
    own = mixed.calibrator_.predict_proba(held[0])[np.arange(20_000), held[1]]
    best = uniform_part(own, np.ones(20_000), 6)
    assert nll(mixed, *held) < -np.log((1 - best) * own + best / 6).mean() + 0.002


def test_files_modules_and_arguments(tmp_path):
    logits, labels = rows(400)
    names = np.array(list("abcdef"))[labels]
    mixed = WithUniform(HistogramBinning(bins=7)).fit(logits, names, classes=list("abcdef"))
    mixed.save(tmp_path / "mixed.json")
    for twin in (WithUniform.load(tmp_path / "mixed.json"), load_calibrator(tmp_path / "mixed.json")):
        np.testing.assert_array_equal(twin.predict_proba(logits), mixed.predict_proba(logits))
        np.testing.assert_array_equal(twin.predict(logits), mixed.predict(logits))
        assert twin.calibrator.bins == 7
    module = mixed.to_module()
    np.testing.assert_allclose(module(torch.tensor(logits)), mixed.predict_proba(logits), atol=1e-12)
    exported = torch.export.export(module, (torch.tensor(logits),), strict=False)
    np.testing.assert_allclose(exported.module()(torch.tensor(logits)), mixed.predict_proba(logits), atol=1e-12)
    with pytest.raises(ValueError, match="holds a WithUniform"):
        HistogramBinning.load(tmp_path / "mixed.json")


def test_weights_are_copies():
    logits, labels = rows(300)
    times = 1 + np.arange(300) % 3
    weighted = WithUniform(TemperatureScaling()).fit(logits, labels, times.astype(float))
    copied = WithUniform(TemperatureScaling()).fit(np.repeat(logits, times, 0), np.repeat(labels, times))
    np.testing.assert_allclose(weighted.predict_proba(logits), copied.predict_proba(logits), atol=1e-9)


@pytest.mark.parametrize("wrong", [3, WithUniform(TemperatureScaling()), TemperatureScaling])
def test_only_a_calibrator_is_mixed(wrong):
    with pytest.raises(TypeError, match="calibrator must be one such as"):
        WithUniform(wrong).fit(*rows(50))
