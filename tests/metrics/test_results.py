"""Results show themselves on one screen, in notebooks, and as columns that other libraries take."""

import math
from functools import partial

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from focalcal import Predictions, ReliabilityDisplay, RiskCoverageDisplay, audit, metrics, split_half, stats
from focalcal.posthoc import ConformalSets, HistogramBinning

GENERATOR = np.random.default_rng(0)
PROBS = GENERATOR.dirichlet(np.ones(3), size=5000)
LABELS = GENERATOR.integers(0, 3, 5000)
MANY = GENERATOR.random((200, 300))
RESULTS = {
    "summary": lambda: metrics.summary(PROBS, LABELS),
    "reliability": lambda: metrics.reliability(PROBS, LABELS),
    "reliability of 1000 bins": lambda: metrics.reliability(PROBS, LABELS, n_bins=1000),
    "murphy": lambda: metrics.murphy(PROBS, LABELS),
    "corp": lambda: metrics.corp(PROBS, LABELS, resamples=20),
    "interval": lambda: metrics.bootstrap(metrics.ece, PROBS, LABELS, resamples=20),
    "multilabel summary of 300": lambda: metrics.multilabel_summary(MANY, MANY > 0.5),
    "sketch": lambda: metrics.CalibrationSketch.of(PROBS, LABELS),
    "empty sketch": lambda: metrics.CalibrationSketch.empty(3),
    "split half": lambda: split_half(probs=PROBS, labels=LABELS, calibrator=HistogramBinning()),
    "sets": lambda: ConformalSets().fit(probs=PROBS, labels=LABELS).evaluate(probs=PROBS, labels=LABELS),
    "sign flips": lambda: stats.sign_flip_test([0.1, 0.2, 0.3]),
    "paired interval": lambda: stats.bootstrap_ci([0.1, 0.2, 0.3]),
    "comparison": lambda: stats.compare({"ece": {0: 0.1, 1: 0.2}}, {"ece": {0: 0.2, 1: 0.4}}, metrics=["ece"])[0],
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_fits_a_screen_and_is_a_table(name):
    result = RESULTS[name]()
    assert repr(result) == str(result)
    assert len(str(result).splitlines()) <= 45
    page = result._repr_html_()
    assert page.startswith("<table>")
    assert page.count("<tr>") <= 45
    frame = result.frame()
    (rows,) = {len(values) for values in frame.values()}
    for table in (pandas.DataFrame, partial(polars.DataFrame, strict=False)):
        assert len(table(frame)) == rows
    assert pyarrow.table(frame).num_rows == rows


def test_frames_hold_the_numbers():
    summary, bins = metrics.summary(PROBS, LABELS), metrics.reliability(PROBS, LABELS)
    assert dict(zip(*summary.frame().values(), strict=True)) == summary.values
    assert bins.frame()["rows"] == bins.count.tolist()
    assert sum(bins.frame()["rows"]) == 5000
    parts = metrics.murphy(PROBS, LABELS)
    assert parts.frame()["uncertainty"] == [parts.uncertainty]
    halves = RESULTS["split half"]()
    assert dict(zip(halves.frame()["metric"], halves.frame()["after"], strict=True)) == halves.after
    assert "HistogramBinning() fitted on 2,500 rows, evaluated on 2,500 others" in str(halves)
    interval = RESULTS["interval"]()
    assert interval.frame()["low"] == [interval.low]


def test_the_summary_says_what_the_classes_are():
    names = np.array(["ant", "bee", "cat"])
    found = metrics.summary(PROBS, names[LABELS], classes=names.tolist())
    assert found.classes == ("ant", "bee", "cat")
    assert str(found).splitlines()[0] == "5,000 rows, 3 classes: ant, bee, cat"
    assert found.values == metrics.summary(PROBS, LABELS).values


def test_confidences_alone_give_what_they_can():
    confidence, correct = PROBS.max(1), PROBS.argmax(1) == LABELS
    found, whole = metrics.summary(confidence=confidence, correct=correct), metrics.summary(PROBS, LABELS)
    assert set(whole.values) - set(found.values) == {"classwise_ece"}
    assert found.brier == pytest.approx(np.mean((confidence - correct) ** 2))
    assert found.nll == pytest.approx(-np.mean(np.log(np.where(correct, confidence, 1 - confidence))))
    assert dict(found) == dict(found.items()) == found.values
    for name in set(found) - {"brier", "nll"}:
        value = found[name]
        assert value == pytest.approx(whole.values[name], abs=1e-12)
    assert found.n_classes is None
    assert "n_classes" not in found.as_dict()
    for binning in ("equal_width", "equal_mass"):
        bins = metrics.reliability(confidence=confidence, correct=correct, binning=binning)
        np.testing.assert_allclose(bins.accuracy, metrics.reliability(PROBS, LABELS, binning=binning).accuracy)
    decomposed = metrics.murphy(confidence=confidence, correct=correct)
    assert decomposed.calibration == pytest.approx(metrics.murphy(PROBS, LABELS).calibration)
    with pytest.raises(ValueError, match="needs the probabilities of all classes"):
        metrics.murphy(confidence=confidence, correct=correct, of="classes")
    with pytest.raises(ValueError, match="class_index needs the probabilities of all classes"):
        metrics.reliability(confidence=confidence, correct=correct, class_index=1)
    sketch = metrics.CalibrationSketch.of(confidence=confidence, correct=correct)
    assert sketch.ece() == pytest.approx(whole.values["ece"], abs=1e-12)
    with pytest.raises(ValueError, match="a function of your own needs probs and labels"):
        metrics.bootstrap(lambda p, y: 0.0, confidence=confidence, correct=correct)


def test_confidences_are_the_same_in_predictions_and_results_are_short():
    confidence, correct = PROBS.max(1), PROBS.argmax(1) == LABELS
    held = Predictions(confidence=confidence, correct=correct, split="test")
    assert dict(metrics.summary(held)) == dict(metrics.summary(confidence=confidence, correct=correct))
    assert metrics.auroc(confidence=confidence, correct=correct) == metrics.confidence_auroc(held)
    interval = metrics.bootstrap(metrics.brier, held, resamples=20)
    assert float(interval) == interval.estimate == pytest.approx(np.mean((confidence - correct) ** 2))
    found = audit(held, calibrate=["platt"], resamples=100)
    assert found.n_classes is None
    assert found.metrics["nll"].estimate == metrics.nll(held)
    shown = (found.fixes, ReliabilityDisplay.from_predictions(held), RiskCoverageDisplay.from_predictions(held))
    assert max(len(repr(each)) for each in shown) < 300
    assert "<table>" in held._repr_html_()
    assert found.verdict.finding in found.verdict._repr_html_()


def test_everything_takes_predictions():
    logits = Predictions(logits=np.log(PROBS), labels=LABELS, split="test")
    assert metrics.summary(logits).values == pytest.approx(metrics.summary(PROBS, LABELS).values, abs=1e-9)
    assert metrics.murphy(logits).brier == pytest.approx(metrics.murphy(PROBS, LABELS).brier)
    by_class = metrics.reliability(logits, class_index=2)
    np.testing.assert_allclose(by_class.accuracy, metrics.reliability(PROBS, LABELS, class_index=2).accuracy)
    assert metrics.CalibrationSketch.of(logits).ece() == pytest.approx(metrics.ece(PROBS, LABELS))
    both = [metrics.ece, metrics.nll, metrics.classwise_ece, metrics.top_k_accuracy]
    ours = metrics.bootstrap(both, logits, resamples=20)
    for name, interval in metrics.bootstrap(both, PROBS, LABELS, resamples=20).items():
        assert (ours[name].low, ours[name].high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    several = Predictions(probs=MANY[:, :4], labels=MANY[:, :4] > 0.4, split="test", multilabel=True)
    expected = metrics.multilabel_ece(MANY[:, :4], MANY[:, :4] > 0.4)
    assert metrics.multilabel_ece(several) == expected
    assert metrics.multilabel_summary(several).mean["ece"] == expected
    assert metrics.multilabel_bootstrap(metrics.multilabel_ece, several, resamples=20).estimate == expected
    with pytest.raises(TypeError, match="must be multilabel"):
        metrics.multilabel_ece(logits)


def test_an_impossible_label_has_an_infinite_nll():
    assert metrics.nll(logits=[[-math.inf, 0.0, 1.0]], labels=[0]) == math.inf
    assert metrics.nll(logits=[[-math.inf, 0.0, 0.0]], labels=[1]) == pytest.approx(math.log(2))
