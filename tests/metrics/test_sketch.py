"""Sketches add up: the whole is the sum over any partition."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal import metrics
from focalcal.metrics import CalibrationSketch
from focalcal.metrics.summary import summary_of

EXACT = [name for name, metric in metrics.METRICS.items() if metric.source.holds in ("bins", "classes")]


def network(
    rows: int, classes: int, *, temperature: float = 1.0, scale: float = 2.0, seed: int = 0, dtype=torch.float32
):
    """Probabilities of a network that is overconfident by a factor, and labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, classes, generator=generator, dtype=torch.float64) * scale
    noise = -torch.log(-torch.log(torch.rand(rows, classes, generator=generator, dtype=torch.float64)))
    return logits.softmax(1).to(dtype), (logits / temperature + noise).argmax(1)


@settings(max_examples=20)
@given(
    cuts=st.lists(st.integers(0, 500), max_size=8),
    seed=st.integers(0, 100),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_the_whole_is_the_sum_over_any_partition(cuts, seed, dtype):
    probs, labels = network(500, 7, temperature=1.4, seed=seed, dtype=dtype)
    ends = [0, *sorted(cuts), 500]
    parts = [CalibrationSketch.of(probs[a:b], labels[a:b]) for a, b in pairwise(ends) if a < b]
    merged = sum(parts)
    whole = CalibrationSketch.of(probs, labels)
    np.testing.assert_array_equal(merged.bins.count, whole.bins.count)
    np.testing.assert_array_equal(merged.classes.count, whole.classes.count)
    np.testing.assert_array_equal(merged.bins.correct, whole.bins.correct)
    for name in EXACT:
        assert getattr(merged, name)() == pytest.approx(getattr(metrics, name)(probs, labels), abs=1e-12), name
    for name in ("adaptive_ece", "smooth_ece"):
        assert getattr(merged, name)() == pytest.approx(getattr(whole, name)(), abs=1e-9), name


@settings(max_examples=30)
@given(
    rows=st.sampled_from([50, 300, 3000, 20000]),
    temperature=st.sampled_from([1.0, 1.02, 1.2, 2.0]),
    scale=st.sampled_from([0.5, 2.0, 8.0, 60.0]),
    seed=st.integers(0, 1000),
)
def test_sketched_values_stay_within_their_bounds(rows, temperature, scale, seed):
    probs, labels = network(rows, 4, temperature=temperature, scale=scale, seed=seed, dtype=torch.float64)
    sketch = CalibrationSketch.of(probs, labels)
    assert abs(sketch.adaptive_ece() - metrics.adaptive_ece(probs, labels)) <= sketch.adaptive_ece_bound() + 1e-12
    exact = metrics.smooth_ece(probs, labels)
    bound = sketch.smooth_ece_bound()
    assert abs(sketch.smooth_ece() - exact) <= bound
    if exact > 0.0125:  # wide enough that the sketch's cells nest in the nodes' intervals
        assert bound <= 1e-10


def test_neighbouring_floats_do_not_break_the_bound():
    """An edge interpolated between them must not round up to the upper one, which has 90 rows."""
    f = np.concatenate([np.full(1405, 0.75), np.full(90, np.nextafter(0.75, 1))])
    probs, labels = np.stack([f, 1 - f], 1), (np.arange(1495) >= 1405).astype(int)
    sketch = CalibrationSketch.of(probs, labels)
    assert abs(sketch.adaptive_ece() - metrics.adaptive_ece(probs, labels)) <= sketch.adaptive_ece_bound() + 1e-12


def test_the_bound_is_no_excuse():
    """On data like a trained network's the bounds are small beside the values."""
    probs, labels = network(20000, 10, temperature=1.2)
    sketch = CalibrationSketch.of(probs, labels)
    assert sketch.adaptive_ece_bound() < 0.05 * sketch.adaptive_ece()
    assert sketch.smooth_ece_bound() < 0.05 * sketch.smooth_ece()


def test_summary_of_a_sketch_is_the_summary():
    probs, labels = network(3000, 5, temperature=1.5)
    sketch = CalibrationSketch.of(probs, labels)
    expected = metrics.summary(probs, labels)
    found = summary_of(sketch)
    for name, value in expected.as_dict().items():
        tolerance = sketch.adaptive_ece_bound() if name == "adaptive_ece" else 1e-9
        assert getattr(found, name) == pytest.approx(value, abs=tolerance), name
    np.testing.assert_allclose(found.reliability.accuracy, expected.reliability.accuracy)
    assert sketch.murphy().brier == pytest.approx(metrics.murphy(probs, labels).brier, abs=1e-12)
    assert sketch.murphy().calibration == pytest.approx(metrics.murphy(probs, labels).calibration, abs=1e-12)


def test_logits_and_ignored_rows_are_sketched_too():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(64, 5, generator=generator) * 3
    labels = torch.randint(5, (64,), generator=generator)
    labels[::7] = 255
    kept = labels != 255
    sketch = CalibrationSketch.of(logits=logits, labels=labels, ignore_index=255)
    assert sketch.rows == int(kept.sum())
    assert sketch.nll() == pytest.approx(metrics.nll(logits=logits[kept], labels=labels[kept]))


def test_confidences_alone_are_sketched_without_classes():
    probs, labels = network(900, 4, temperature=1.4)
    confidence, predicted = probs.max(1)
    correct = predicted == labels
    parts = [
        CalibrationSketch.of(confidence=confidence[cut], correct=correct[cut]) for cut in (slice(300), slice(300, 900))
    ]
    alone, full = sum(parts), CalibrationSketch.of(probs, labels)
    for name in ("error", "ece", "mce", "rms_ce", "confidence_gap", "adaptive_ece", "smooth_ece"):
        assert getattr(alone, name)() == pytest.approx(getattr(full, name)(), abs=1e-12), name
    for name in ("nll", "brier"):
        of_event = getattr(metrics, f"multilabel_{name}")(confidence[:, None], correct[:, None])
        assert getattr(alone, name)() == pytest.approx(float(of_event), abs=1e-12), name
    assert "classwise_ece" not in alone.frame()
    assert summary_of(alone).n_classes is None
    with pytest.raises(ValueError, match="classwise_ece needs the probabilities of all classes"):
        alone.classwise_ece()


def test_bad_use_is_refused():
    with pytest.raises(ValueError, match="empty; add at least one batch"):
        CalibrationSketch.empty(3).ece()
    with pytest.raises(ValueError, match=r"agree in classes and bins.*\(3, 15\) and \(4, 15\)"):
        _ = CalibrationSketch.empty(3) + CalibrationSketch.empty(4)
    with pytest.raises(ValueError, match=r"n_bins must be a whole number >= 1 .*, got 0"):
        CalibrationSketch.empty(3, n_bins=0)
    sketch = CalibrationSketch.of(*network(50, 3))
    with pytest.raises(ValueError, match="norm must be one of"):
        sketch.debiased_ece("max")
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        sketch.reliability(95)
