"""The audit: its verdict on models whose calibration is known, and that every number is the library's own."""

import json

import numpy as np
import pytest
import torch
from scipy.special import softmax

from focalcal._native import threads
from focalcal.auditing import Gate, audit
from focalcal.auditing.parts import parts_of
from focalcal.auditing.rows import rows_of
from focalcal.auditing.verdict import Finding
from focalcal.metrics import METRICS, ece, reliability
from focalcal.posthoc import TemperatureScaling
from focalcal.predictions import Predictions


def sample(rows=3000, classes=5, *, temperature=1.0, seed=0, **more):
    """Labels drawn from softmax(logits / temperature): above 1 the logits are over-confident."""
    draws = np.random.default_rng(seed)
    logits = 2 * draws.normal(size=(rows, classes))
    labels = np.argmax(logits / temperature + draws.gumbel(size=logits.shape), axis=1)
    return Predictions(logits=logits, labels=labels, split="test", **more)


@pytest.fixture(scope="module")
def overconfident():
    return audit(sample(temperature=2.0), trained_with="ce", resamples=200)


@pytest.mark.parametrize(
    ("temperature", "rows", "finding"),
    [
        (1.0, 4000, Finding.CALIBRATED),
        (1.5, 4000, Finding.OVERCONFIDENT),
        (0.6, 4000, Finding.UNDERCONFIDENT),
        (1.0, 60, Finding.TOO_FEW),
    ],
)
def test_the_verdict_on_models_whose_calibration_is_known(temperature, rows, finding):
    found = audit(sample(rows, temperature=temperature), calibrate=None, resamples=200)
    assert found.verdict.finding is finding
    assert f"{rows:,} rows" in found.verdict.sentence
    assert found.verdict.low < found.verdict.gap < found.verdict.high


def test_errors_that_cancel_are_not_called_calibrated():
    draws = np.random.default_rng(0)
    confidence = np.where(np.arange(6000) % 2, 0.9, 0.6)
    right = draws.random(6000) < np.where(np.arange(6000) % 2, 0.8, 0.7)
    probs = np.stack([confidence, 1 - confidence], 1)
    uneven = Predictions(probs=probs, labels=np.where(right, 0, 1), split="test")
    found = audit(uneven, calibrate=None, resamples=200)
    assert found.verdict.finding is Finding.UNEVEN
    assert abs(found.verdict.gap) < 0.02


def test_metrics_are_the_library_functions(overconfident):
    rows = sample(temperature=2.0)
    for name, interval in overconfident.metrics.items():
        assert interval.estimate == pytest.approx(METRICS[name](rows.probs, rows.labels), abs=1e-12)
        assert interval.low <= interval.estimate <= interval.high
    bins = reliability(rows.probs, rows.labels)
    np.testing.assert_allclose(overconfident.reliability.accuracy, bins.accuracy, atol=1e-12)
    assert overconfident.frame()["metric"] == list(overconfident.metrics)


def test_what_would_fix_it(overconfident):
    fixes = overconfident.fixes
    assert fixes.recommended == "temperature", "of maps that cannot be told apart the simplest"
    assert fixes.calibrator.temperature_ == pytest.approx(2.0, abs=0.15)
    assert "recovery" in fixes.left_out
    order = [fix.nll for fix in fixes.tried]
    assert order == sorted(order)
    by_name = {fix.name: fix for fix in fixes.tried}
    rows = sample(temperature=2.0)
    in_sample = TemperatureScaling().fit(rows.logits, rows.labels).predict_proba(rows.logits)
    assert by_name["temperature"].nll == pytest.approx(METRICS["nll"](in_sample, rows.labels), abs=0.005)
    assert by_name["temperature"].nll > METRICS["nll"](in_sample, rows.labels), "judged on rows it was not fitted on"
    assert overconfident.operating_point.temperature == pytest.approx(2.0, abs=0.15)


def test_calibrators_of_few_rows_are_fitted_by_one_thread(monkeypatch):
    counts, before = [], torch.get_num_threads()
    fit = TemperatureScaling.fit
    monkeypatch.setattr(TemperatureScaling, "fit", lambda *args, **more: counts.append(threads()) or fit(*args, **more))
    torch.set_num_threads(2)
    try:
        audit(sample(200), calibrate="temperature", resamples=100)
        assert set(counts[:5]) == {1}, "one per fold"
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_probabilities_called_logits_are_refused():
    given = sample(200)
    with pytest.raises(ValueError, match="logits must not be probabilities"):
        audit(logits=given.probs, labels=given.labels)


def test_nothing_is_worth_it_for_a_calibrated_model():
    fixes = audit(sample(1500), resamples=100).fixes
    assert fixes.recommended is None
    assert fixes.calibrator is None
    assert fixes.sentence.startswith("No calibrator is worth it")


def test_recovery_is_tried_where_the_loss_is_known():
    fixes = audit(sample(500), calibrate=["recovery", "temperature"], trained_with=(3.0, 1.0), resamples=100).fixes
    assert {fix.name for fix in fixes.tried} == {"recovery", "temperature"}


def test_classes_and_groups_worst_first():
    rows = sample(3000)
    sick = np.arange(3000) % 3 == 0
    logits = rows.logits.copy()
    logits[sick] *= 3
    groups = np.where(sick, "sick", np.where(np.arange(3000) % 3 == 1, "well", "other"))
    found = audit(
        Predictions(logits=logits, labels=rows.labels, split="test", groups=groups),
        calibrate=None, resamples=100, class_names=list("abcde"),
    )  # fmt: skip
    assert found.groups[0].name == "sick"
    assert [part.off for part in found.groups] == [True, False, False]
    worst = found.groups[0]
    mine = softmax(logits[sick], 1)
    assert worst.confidence == pytest.approx(mine.max(1).mean())
    assert worst.gap == pytest.approx(worst.confidence - worst.accuracy)
    assert worst.low < worst.gap < worst.high
    assert {part.name for part in found.classes} == set("abcde")
    assert sum(part.rows for part in found.classes) == 3000


def test_a_column_in_which_groups_agree_stays_on_the_page(tmp_path):
    found = audit(sample(300, groups=np.arange(300) % 3), calibrate=None, resamples=100)
    found.html(tmp_path / "audit.html")
    assert "Groups (rows 100)" not in (tmp_path / "audit.html").read_text()


def test_intervals_of_many_groups_are_corrected():
    flagged, names, groups = 0, [str(group) for group in range(40)], np.arange(2000) % 40
    for seed in range(40):
        rows = rows_of(sample(2000, seed=seed))
        flagged += any(part.off for part in parts_of([(names, groups)], rows.confidence, rows.correct, rows.design))
    assert flagged <= 6, "of calibrated samples about one in twenty has a group outside"


def test_thresholds_and_mistakes(overconfident):
    rows = sample(temperature=2.0)
    confidence, predicted = (rows.probs.max(1), rows.probs.argmax(1))
    right = predicted == rows.labels
    for threshold in overconfident.thresholds:
        kept = confidence >= threshold.confidence
        assert kept.mean() == pytest.approx(threshold.coverage)
        assert right[kept].mean() == pytest.approx(threshold.accuracy)
        assert threshold.accuracy >= threshold.wanted
    curve = overconfident.risk_coverage
    assert curve.coverage[-1] == 1
    assert curve.risk[-1] == pytest.approx(1 - right.mean())
    assert len(curve.risk) <= 200
    worst = overconfident.mistakes[0]
    assert worst.confidence == confidence[~right].max()
    assert not right[worst.row]


def test_ids_name_the_mistakes():
    rows = sample(200, temperature=2.0)
    named = Predictions(logits=rows.logits, labels=rows.labels, split="test", ids=[f"img{i}" for i in range(200)])
    plain = audit(rows, calibrate=None, resamples=100).mistakes
    assert [m.row for m in audit(named, calibrate=None, resamples=100).mistakes] == [
        f"img{mistake.row}" for mistake in plain
    ]


def test_against_a_baseline():
    new, old = sample(temperature=1.0), sample(temperature=1.0)
    worse = Predictions(logits=2 * old.logits, labels=old.labels, split="test")
    changes = {c.metric: c for c in audit(new, baseline=worse, calibrate=None, resamples=100).changes}
    assert {name for name, change in changes.items() if change.finding == "better"} == {"nll", "brier", "ece"}
    assert changes["error"].finding == "no difference shown"
    assert changes["ece"].new == pytest.approx(ece(new.probs, new.labels))
    assert changes["ece"].low < changes["ece"].new - changes["ece"].old < changes["ece"].high
    with pytest.raises(ValueError, match="baseline must hold the same rows in the same order"):
        audit(new, baseline=sample(100), calibrate=None, resamples=100)


def test_several_labels_per_row(tmp_path):
    draws = np.random.default_rng(0)
    p = draws.random((2000, 3))
    y = draws.random((2000, 3)) < p
    few = {"resamples": 100, "calibrate": ["temperature", "platt", "histogram"]}
    found = audit(Predictions(probs=p, labels=y, split="test", multilabel=True), **few)
    assert found.verdict.finding is Finding.CALIBRATED
    assert found.fixes.recommended is None
    assert len(found.classes) == 3
    sharp = 1 / (1 + np.exp(-3 * np.log(p / (1 - p))))
    worse = audit(sharp, y, multilabel=True, **few)
    assert worse.verdict.finding is not Finding.CALIBRATED
    assert worse.fixes.recommended == "temperature"
    assert worse.fixes.raw_nll == pytest.approx(worse.metrics["nll"].estimate)
    assert worse.fixes.calibrator.calibrators_[0].temperature_ == pytest.approx(3, rel=0.05)
    assert worse.fixes.tried[0].ece < worse.metrics["ece"].estimate / 3
    worse.html(tmp_path / "audit.html")
    assert "one for all labels" in (tmp_path / "audit.html").read_text()


def test_arrays_are_taken_as_predictions_are():
    given = sample(300, temperature=2.0)
    groups = np.arange(300) % 2
    options = {"resamples": 100, "calibrate": "temperature", "class_names": list("abcde")}
    expected = audit(Predictions(logits=given.logits, labels=given.labels, groups=groups, split="test"), **options)
    names = np.array(list("abcde"))[given.labels]
    for found in (
        audit(logits=given.logits, labels=given.labels, groups=groups, **options),
        audit(given.probs, names, groups=groups, **options),
    ):
        assert found.verdict.sentence == expected.verdict.sentence
        assert found.metrics["nll"].estimate == pytest.approx(expected.metrics["nll"].estimate)
        assert [part.name for part in found.groups] == [part.name for part in expected.groups]
        assert found.fixes.tried[0].nll == pytest.approx(expected.fixes.tried[0].nll)
    with pytest.raises(TypeError, match="hold scores and labels; give nothing else beside them"):
        audit(given, given.labels)
    with pytest.raises(TypeError, match="exactly one of logits= and probs="):
        audit(labels=given.labels)


def test_the_record_is_plain(overconfident):
    record = json.loads(json.dumps(overconfident.record()))
    assert record["schema"] == 1
    assert record["verdict"]["finding"] == "over-confident"
    assert record["metrics"]["ece"]["low"] > 0
    assert record["fixes"]["recommended"] == "temperature"
    assert overconfident.verdict.sentence in repr(overconfident)


def test_gates(overconfident):
    estimate = overconfident.metrics["ece"].estimate
    low = overconfident.metrics["ece"].low
    between = (estimate + low) / 2
    assert not overconfident.check(f"ece < {low / 2}")
    assert overconfident.check(f"ece < {between}"), "chance does not break a build"
    assert not overconfident.check(f"ece < {between}", on="estimate")
    assert overconfident.check("error < 90 %")
    assert Gate.parse("nll >= 1e-2") == Gate("nll", ">=", 0.01)
    for text in ("ece", "ece > high", "ece => 0.1", "0.1 > ece"):
        with pytest.raises(ValueError, match="a gate must be a metric, >, >=, < or <=, and a number"):
            Gate.parse(text)
    with pytest.raises(ValueError, match="'ecee' is not a metric of this audit; did you mean 'ece'"):
        overconfident.check("ecee < 0.1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"calibrate": "temprature"}, "calibrate must name calibrators, got 'temprature'"),
        ({"class_names": ["a", "b"]}, "class_names must hold one name per class, 5, got 2"),
        ({"gates": [Gate("ecee", ">", 0.1)]}, "'ecee' is not a metric of this audit; did you mean 'ece'"),
        ({"baseline": sample(100)}, "baseline must hold the same rows in the same order"),
        ({"resamples": 3}, "resamples must be"),
    ],
)
def test_bad_options_are_refused_before_anything_is_computed(options, message, monkeypatch):
    monkeypatch.setattr("focalcal.auditing.auditor.rows_of", lambda _: pytest.fail("the rows were looked at"))
    with pytest.raises(ValueError, match=message):
        audit(sample(200), **options)


def test_too_few_rows_for_calibrators():
    few = audit(sample(30), resamples=100)
    assert few.fixes is None
    assert any("Too few rows" in note for note in few.notes)


def test_of_one_row_no_gap_beyond_100_points_is_called_possible():
    verdict = audit(confidence=[0.5], correct=[1], resamples=100).verdict
    assert (verdict.low, verdict.high) == (-1.0, pytest.approx(0.4799, abs=1e-3))
    assert "with 1 row confidence minus accuracy is -50.0 points" in verdict.sentence


def test_names_of_classes_and_impossible_ones():
    """Predictions that know their classes name them, and calibrators that cannot take masked logits are left out."""
    logits, labels = 2 * np.random.default_rng(0).normal(size=(400, 3)), np.random.default_rng(1).integers(0, 2, 400)
    logits[:, 2] = -np.inf
    masked = Predictions(logits=logits, labels=labels, split="test", classes=["cat", "dog", "emu"])
    found = audit(masked, calibrate=["temperature", "platt"], resamples=100)
    assert {part.name for part in found.classes} <= {"cat", "dog", "emu"}
    assert [fix.name for fix in found.fixes.tried] == ["temperature"]
    assert "-inf" in found.fixes.left_out["platt"]
    assert found._repr_html_().count("<tr>") == 1 + len(found.metrics)
