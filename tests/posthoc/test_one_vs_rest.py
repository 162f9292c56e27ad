"""Platt, beta, histogram and isotonic maps of one class against the rest, each against an independent one."""

import numpy as np
import pytest
import torch
from references.golden import single_label
from scipy.optimize import minimize
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

from focalcal.core.numerics import log_probs_and_complements, softmax
from focalcal.posthoc import BetaCalibration, HistogramBinning, IsotonicCalibration, PlattScaling
from focalcal.posthoc.one_vs_rest import below

EVERY = [PlattScaling(), BetaCalibration(), HistogramBinning(), HistogramBinning(strategy="equal_mass")]
EVERY += [IsotonicCalibration()]


@pytest.fixture(scope="module")
def problem():
    logits, labels = single_label()
    return logits.numpy(), labels.numpy(), *log_probs_and_complements(logits.numpy())


def class_probs(calibrator, logits):
    """Each class's own calibrated probability, before normalisation."""
    return calibrator._class_probs(np.asarray(logits), **calibrator._arrays())


@pytest.mark.parametrize("calibrator", EVERY, ids=repr)
def test_the_class_maps_are_normalised(problem, calibrator):
    logits, labels, *_ = problem
    calibrator.fit(logits, labels)
    each = class_probs(calibrator, logits)
    assert ((each >= 0) & (each <= 1)).all()
    np.testing.assert_allclose(calibrator.predict_proba(logits), each / each.sum(1, keepdims=True))


def test_platt_is_scikit_learns_sigmoid_on_the_log_odds(problem):
    logits, labels, log_p, log_not_p = problem
    fitted = PlattScaling().fit(logits, labels)
    for k in range(10):
        odds = log_p[:, k] - log_not_p[:, k]
        peer = _SigmoidCalibration().fit(odds, (labels == k).astype(float))
        np.testing.assert_allclose([fitted.slope_[k], fitted.intercept_[k]], [-peer.a_, -peer.b_], rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(class_probs(fitted, logits)[:, k], peer.predict(odds), atol=1e-5)


def test_beta_is_the_constrained_optimum(problem):
    logits, labels, log_p, log_not_p = problem
    fitted = BetaCalibration().fit(logits, labels)
    for k in range(10):
        features = np.stack([log_p[:, k], -log_not_p[:, k], np.ones(len(labels))], 1)
        target = (labels == k).astype(float)

        def loss(w, features=features, target=target):
            margin = features @ w
            return np.mean(np.logaddexp(0, margin) - target * margin)

        bounds = [(0, None), (0, None), (None, None)]
        peer = minimize(loss, [1.0, 1.0, 0.0], bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
        found = np.array([fitted.a_[k], fitted.b_[k], fitted.c_[k]])
        assert found[:2].min() >= 0
        assert loss(found) <= peer.fun + 1e-9
        np.testing.assert_allclose(found, peer.x, atol=2e-2)


@pytest.mark.parametrize("strategy", ["equal_width", "equal_mass"])
@pytest.mark.parametrize("bins", [1, 7, 15])
def test_histogram_against_brute_force(problem, strategy, bins):
    logits, labels, *_ = problem
    probs = softmax(logits)
    fitted = HistogramBinning(bins, strategy=strategy).fit(logits, labels)
    found = class_probs(fitted, logits)
    for k in range(10):
        edges = np.arange(bins + 1) / bins if strategy == "equal_width" else fitted.edges_[k]
        for lo, hi, first in zip(edges[:-1], edges[1:], [True] + [False] * (bins - 1), strict=True):
            inside = ((probs[:, k] > lo) | (first & (probs[:, k] >= lo))) & (probs[:, k] <= hi)
            if inside.any():
                np.testing.assert_allclose(found[inside, k], np.mean(labels[inside] == k))
        if strategy == "equal_mass":
            counts = np.histogram(probs[:, k], edges)[0]
            assert counts.max() - counts.min() <= 2


def test_histogram_bins_without_rows_predict_their_middle():
    logits = np.log([[0.05, 0.95], [0.95, 0.05], [0.92, 0.08]])
    fitted = HistogramBinning(10).fit(logits, np.array([1, 0, 0]))
    np.testing.assert_allclose(fitted.predict_proba(np.log([[0.45, 0.55]])), [[0.45, 0.55]])
    np.testing.assert_allclose(fitted.values_[0][[0, 9]], [0, 1])


def test_isotonic_is_scikit_learns(problem):
    logits, labels, *_ = problem
    probs = softmax(logits)
    fitted = IsotonicCalibration().fit(logits[:1000], labels[:1000])
    found = class_probs(fitted, logits)
    for k in range(10):
        peer = IsotonicRegression(out_of_bounds="clip").fit(probs[:1000, k], labels[:1000] == k)
        np.testing.assert_allclose(found[:, k], peer.predict(probs[:, k]), atol=1e-12)


def test_a_row_that_every_map_sends_to_zero_keeps_its_softmax():
    logits = np.log([[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.6, 0.3, 0.1], [0.3, 0.6, 0.1]])
    fitted = IsotonicCalibration().fit(logits, np.array([0, 1, 0, 1]))
    outside = np.log([[0.2, 0.2, 0.6]])
    np.testing.assert_allclose(fitted.predict_proba(outside), [[0.2, 0.2, 0.6]])


@pytest.mark.parametrize("calibrator", EVERY, ids=repr)
def test_a_class_that_no_label_names(calibrator):
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(200, 4))
    labels = generator.integers(0, 3, 200)
    probs = calibrator.fit(logits, labels).predict_proba(logits)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(1), 1)
    each = class_probs(calibrator, logits)[:, 3]
    if isinstance(calibrator, (PlattScaling, BetaCalibration)):
        np.testing.assert_allclose(each, 1 / 202, rtol=1e-6)
    elif isinstance(calibrator, IsotonicCalibration):
        assert not each.any()


@pytest.mark.parametrize("calibrator", EVERY, ids=repr)
def test_saturated_and_separated_rows_stay_finite(calibrator):
    logits = np.eye(3)[np.arange(30) % 3] * np.repeat([[5.0], [40.0], [800.0]], 10, 0)
    labels = np.arange(30) % 3
    probs = calibrator.fit(logits, labels).predict_proba(logits)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(1), 1)
    decided = logits.max(1) > 5 if isinstance(calibrator, PlattScaling) else slice(None)  # leads of 800 flatten Platt's
    np.testing.assert_array_equal(probs.argmax(1)[decided], labels[decided])


@pytest.mark.parametrize("lead", [650.0, 690.0, 700.0, 730.0, 740.0, 800.0])
def test_rows_sum_to_one_however_small_the_maps_are(lead):
    """No class 3 at fit: its map gives 0, and the others little above the smallest number there is."""
    eye = torch.eye(4, dtype=torch.float64)[:3]
    logits = torch.cat([800 * eye, -5 * eye])  # the maps of classes 0 to 2 rise from (0, 0) at once
    labels = torch.arange(3).repeat(2)
    rows = torch.tensor([[0.0, 1.0, 2.0, lead]], dtype=torch.float64)
    for kind in (IsotonicCalibration, HistogramBinning, PlattScaling, BetaCalibration):
        probs = kind().fit(logits, labels).predict_proba(rows)
        torch.testing.assert_close(probs.sum(1), torch.ones(1, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [PlattScaling, BetaCalibration])
def test_one_enormous_row_does_not_spoil_the_maps(kind):
    logits, labels = (v[:500].clone() for v in single_label())
    labels[0] = 2
    logits[0] = 0.0
    logits[0, 2] = 1e12

    def loss(fitted):
        return -fitted.predict_proba(logits[1:]).gather(1, labels[1:, None]).log().mean().item()

    assert loss(kind().fit(logits, labels)) == pytest.approx(loss(kind().fit(logits[1:], labels[1:])), abs=0.01)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 100])
def test_the_place_of_a_value_is_the_same_under_every_library(count):
    """NumPy searches each class's points by itself, tensors all at once by halves."""
    generator = np.random.default_rng(count)
    points = np.sort(generator.integers(0, 9, (4, count)) / 8, 1)  # with ties
    values = np.concatenate([generator.uniform(-0.1, 1.1, (60, 4)), generator.integers(0, 9, (60, 4)) / 8])
    expected = (points[None] < values[:, :, None]).sum(2)
    np.testing.assert_array_equal(below(points, values), expected)
    np.testing.assert_array_equal(below(points, values[:1]), expected[:1])
    np.testing.assert_array_equal(below(torch.from_numpy(points), torch.from_numpy(values)), expected)
