"""`ReliabilityDisplay` and `RiskCoverageDisplay`: what they draw is what the metrics say, of whatever people have."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import focalcal
from focalcal import Predictions, ReliabilityDisplay, RiskCoverageDisplay
from focalcal.metrics import aurc, classwise_ece, corp, ece, reliability, smooth_ece
from focalcal.metrics.smooth import smooth_reliability


@pytest.fixture(scope="module")
def predictions():
    draws = np.random.default_rng(0)
    logits = 4 * draws.normal(size=(3000, 5))
    eta = np.exp(logits / 2) / np.exp(logits / 2).sum(1, keepdims=True)
    labels = (eta.cumsum(1) < draws.random((3000, 1))).sum(1).clip(max=4)
    return Predictions(logits=logits, labels=labels, split="test")


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


def test_points_intervals_band_and_bars_are_those_of_the_metric(predictions):
    probs, labels = predictions.probs, predictions.labels
    display = ReliabilityDisplay.from_predictions(probs, labels, n_bins=10, level=0.9, least=1)
    assert display.plot() is display
    bins = reliability(probs, labels, n_bins=10, level=0.9)
    filled = bins.count > 0
    line, _, (bars,) = display.ax_.containers[0]
    np.testing.assert_allclose(line.get_xdata(), bins.confidence[filled], atol=1e-6)
    np.testing.assert_allclose(line.get_ydata(), bins.accuracy[filled])
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, np.stack([bins.low, bins.high], 1)[filled])
    assert [bar.get_height() for bar in display.rows_ax_.patches] == bins.count[filled].tolist()
    low, high = bins.chance
    (band,) = [part for part in display.ax_.collections if part.get_label() == "what chance allows"]
    corners = np.concatenate([path.vertices for path in band.get_paths()])
    for b in np.flatnonzero(filled):
        for corner in ((bins.lower[b], low[b]), (bins.upper[b], high[b])):
            assert np.abs(corners - corner).sum(1).min() < 1e-9
    assert display.figure_ is display.ax_.figure is display.rows_ax_.figure
    assert display.reliability.ece == pytest.approx(ece(probs, labels, n_bins=10))
    assert f"ECE {100 * ece(probs, labels, n_bins=10):.2f} %" in display.ax_.get_legend_handles_labels()[1]


def test_an_isotonic_curve_is_the_one_of_corp(predictions):
    display = ReliabilityDisplay.from_predictions(predictions, method="corp", name="raw")
    display.plot()
    found = corp(predictions)
    (line,) = [line for line in display.ax_.lines if line.get_label().startswith("raw")]
    assert line.get_label() == f"raw (MSC {found.brier.msc:.4f}, DSC {found.brier.dsc:.4f}, UNC {found.brier.unc:.4f})"
    np.testing.assert_allclose(line.get_ydata()[::2], found.accuracy)
    np.testing.assert_allclose(line.get_xdata()[1::2], found.upper, atol=1e-6)
    assert [part for part in display.ax_.collections if part.get_label() == "what chance allows"]
    assert sum(bar.get_height() for bar in display.rows_ax_.patches) == 3000
    assert display.hidden == 0
    assert display.frame().columns.keys() == found.frame().keys()
    with pytest.raises(ValueError, match="method must be"):
        ReliabilityDisplay.from_predictions(predictions, method="pav")


def test_the_accuracy_leaves_the_band_where_the_confidence_leaves_the_interval(predictions):
    for rows in (50, 300, 3000):
        bins = reliability(predictions.probs[:rows], predictions.labels[:rows])
        low, high = bins.chance
        filled = bins.count > 0
        outside = (bins.accuracy < low) | (bins.accuracy > high)
        np.testing.assert_array_equal(outside[filled], bins.surprising[filled])
        assert np.isnan(low[~filled]).all()


def test_the_distance_of_the_smooth_curve_from_the_diagonal_is_smooth_ece(predictions):
    probs = predictions.probs
    curve = smooth_reliability(probs.max(1), probs.argmax(1) == predictions.labels)
    distance = np.abs(curve.accuracy - curve.confidence)
    inside = (curve.accuracy > 0) & (curve.accuracy < 1)  # elsewhere it is cut off
    exact = curve.density[inside].sum() / curve.density.sum()
    assert exact > 0.99
    assert np.average(distance, weights=curve.density) == pytest.approx(smooth_ece(probs, predictions.labels), abs=2e-3)
    assert curve.bandwidth == pytest.approx(smooth_ece(probs, predictions.labels), abs=1 / 1024)
    display = ReliabilityDisplay.from_predictions(predictions).plot()
    (line,) = [line for line in display.ax_.lines if str(line.get_label()).startswith("smooth")]
    drawn = np.isfinite(line.get_ydata())
    np.testing.assert_allclose(line.get_ydata()[drawn], curve.accuracy[drawn], atol=1e-6)
    assert line.get_xdata()[drawn].min() >= display.reliability.lower[display.shown].min()


def test_a_calibrated_model_has_a_smooth_curve_near_the_diagonal():
    draws = np.random.default_rng(1)
    confidence = draws.uniform(0.3, 1, 100_000)
    display = ReliabilityDisplay.from_predictions(confidence=confidence, correct=draws.random(100_000) < confidence)
    inside = (display.smooth.confidence > 0.4) & (display.smooth.confidence < 0.95)
    assert np.abs(display.smooth.accuracy - display.smooth.confidence)[inside].max() < 0.05


def test_arrays_predictions_logits_and_bins_show_the_same(predictions):
    made = [
        ReliabilityDisplay.from_predictions(predictions),
        ReliabilityDisplay.from_predictions(predictions.probs, predictions.labels.tolist()),
        ReliabilityDisplay.from_predictions(logits=predictions.logits, labels=predictions.labels),
        ReliabilityDisplay.from_reliability(reliability(predictions)),
    ]
    assert made[3].smooth is None
    for display in made[1:]:
        for name, values in made[0].frame().columns.items():
            np.testing.assert_allclose(display.frame().columns[name], values, atol=1e-6)


def test_one_class(predictions):
    probs, labels = predictions.probs, predictions.labels
    names = ["ant", "bee", "cat", "dog", "emu"]
    made = [
        ReliabilityDisplay.from_predictions(probs, [names[k] for k in labels], classes=names, class_index=k, least=1)
        for k in range(5)
    ]
    assert np.mean([display.reliability.ece for display in made]) == pytest.approx(classwise_ece(probs, labels))
    shown = made[2].plot()
    assert (shown.rows_ax_.get_xlabel(), shown.ax_.get_ylabel()) == ("probability of class cat", "share of class cat")


def test_into_axes_that_are_there(predictions):
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    placed = figure.add_axes((0.1, 0.1, 0.5, 0.5))
    for ax in (left, right, placed):
        before = ax.get_position().bounds
        display = ReliabilityDisplay.from_predictions(predictions, name="raw").plot(ax=ax)
        assert display.ax_ is ax
        above, below = ax.get_position(), display.rows_ax_.get_position()
        assert (above.x0, above.y1) == pytest.approx((before[0], before[1] + before[3]))
        assert (below.x0, below.y0) == pytest.approx(before[:2])
        assert below.y1 < above.y0
    axes = len(figure.axes)
    second = ReliabilityDisplay.from_predictions(predictions, name="again")
    second.plot(left, rows_ax=figure.axes[3], chance=False, color="red")
    assert len(figure.axes) == axes
    labels = left.get_legend_handles_labels()[1]
    assert [label.partition(" (")[0] for label in labels if "ECE" in label] == ["raw", "again"]
    assert labels.count("what chance allows") == 1
    assert plt.get_fignums() == []


def test_risk_against_coverage(predictions):
    display = RiskCoverageDisplay.from_predictions(predictions, name="net").plot()
    order = np.argsort(-predictions.probs.max(1), kind="stable")
    wrong = (predictions.probs.argmax(1) != predictions.labels)[order]
    (line,) = display.ax_.lines
    kept = (line.get_xdata() * len(wrong)).round().astype(int)
    np.testing.assert_allclose(line.get_ydata(), wrong.cumsum()[kept - 1] / kept)
    assert line.get_xdata()[-1] == 1
    assert display.aurc == pytest.approx(aurc(predictions))
    assert line.get_label() == f"net, AURC {100 * display.aurc:.2f} %"
    audited = RiskCoverageDisplay(focalcal.audit(predictions, calibrate=None).risk_coverage).plot(display.ax_)
    np.testing.assert_allclose(audited.frame().columns["risk"], display.frame().columns["risk"])
    assert len({line.get_color() for line in display.ax_.lines}) == 2


@pytest.mark.parametrize("display", [ReliabilityDisplay, RiskCoverageDisplay])
def test_what_cannot_be_shown_is_refused_by_name(display):
    with pytest.raises(ValueError, match="probs must be probabilities"):
        display.from_predictions([[2.0, 3.0]], [0])
    with pytest.raises(ValueError, match="labels is missing"):
        display.from_predictions([[0.5, 0.5]])


def test_matplotlib_is_imported_when_something_is_drawn():
    code = (
        "import sys, focalcal; d = focalcal.ReliabilityDisplay.from_predictions([[0.2, 0.8]] * 9, [1] * 9); "
        "focalcal.RiskCoverageDisplay; assert 'matplotlib' not in sys.modules; d.plot(); "
        "assert 'matplotlib' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
