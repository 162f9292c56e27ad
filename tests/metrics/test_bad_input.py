"""Every error names the argument, the rule, the value received and the remedy."""

import numpy as np
import pytest
import torch

from focalcal import metrics

GOOD = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
LABELS = np.array([1, 0, 0])
EVERY = [*metrics.METRICS.values(), metrics.summary, metrics.reliability, metrics.murphy, metrics.CalibrationSketch.of]


def changed(row, column, value, base=GOOD):
    probs = base.copy()
    probs[row, column] = value
    return probs


CASES = [
    (changed(1, 0, np.nan), LABELS, ValueError, "probs must be finite, got nan in row 1;"),
    (changed(2, 1, np.inf), LABELS, ValueError, "probs must be finite, got inf in row 2;"),
    (changed(0, 0, 0.3), LABELS, ValueError, r"summing to 1 within 0.001 over the classes, got a sum of 1.1 in row 0;"),
    (np.array([[-0.1, 1.1]]), [0], ValueError, r">= 0 and summing to 1 .* got -0.1 in row 0; pass softmax\(logits\)"),
    (GOOD, [1, 0, 2], ValueError, "labels must be from 0 to 1, got 2 at flat position 2; check the labels"),
    (GOOD, [1, -1, 0], ValueError, "labels must be from 0 to 1, got -1 at flat position 1"),
    (GOOD, [1, 0], ValueError, r"labels must have shape \(3,\) for probs of shape \(3, 2\), got \(2,\)"),
    (GOOD, [0.0, 0.5, 0.0], ValueError, "labels must be whole numbers, .* got 0.5 at flat position 1;"),
    (GOOD, [0.0, np.nan, 0.0], ValueError, "labels must be whole numbers, .* got nan at flat position 1;"),
    (GOOD, None, ValueError, "labels is missing; pass probs or logits=... and labels"),
    (GOOD[:0], LABELS[:0], ValueError, "probs must hold at least one row"),
    (GOOD[:, 0], [0, 1, 2], ValueError, "labels must be from 0 to 1, got 2 at flat position 2"),
    (GOOD[:, :1] + 1, LABELS, ValueError, r"probs must be probabilities from 0 to 1, got 1.2 in row 0; divide per cents"),
    (GOOD, np.ones((3, 2), dtype=int), ValueError, r"labels of the shape of probs, \(3, 2\), must be one-hot"),
    (np.array([[1, 0]]), [0], TypeError, "probs must be floating point, got int64; convert them"),
    (np.array([["a", "b"]]), [0], TypeError, "probs must be an array of numbers or a tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("probs", "labels", "kind", "message"), CASES, ids=range(len(CASES)))
def test_every_rule(probs, labels, kind, message, engine):
    with pytest.raises(kind, match=message):
        metrics.ece(probs, labels)


@pytest.mark.parametrize("function", EVERY, ids=lambda f: f.__qualname__)
def test_every_metric_checks_what_it_is_given(function, engine):
    """Values, labels, shapes and types, one rule of each."""
    for at in (0, 2, 4, 6, 14):
        probs, labels, kind, message = CASES[at]
        with pytest.raises(kind, match=message):
            function(probs, labels)


@pytest.mark.parametrize("n_bins", [0, -1, 1.5, True, "15", float("nan"), float("inf")])
def test_bins(n_bins):
    for metric in (
        metrics.ece,
        metrics.adaptive_ece,
        metrics.classwise_ece,
        metrics.mce,
        metrics.summary,
        metrics.reliability,
    ):
        with pytest.raises(ValueError, match=r"n_bins must be a whole number >= 1 .*, got "):
            metric(GOOD, LABELS, n_bins=n_bins)


def test_odd_arguments():
    for metric in (metrics.ece, metrics.top_k_accuracy):
        for value in (255.0, "255", 2**63, True):
            with pytest.raises(TypeError, match="ignore_index must be a whole number of 64 bits or None"):
                metric(GOOD, LABELS, ignore_index=value)
    for value in (True, 1.0):
        with pytest.raises(ValueError, match="class_index must be a whole number >= 0 and <= 1"):
            metrics.reliability(GOOD, LABELS, class_index=value)
    with pytest.raises(TypeError, match="labels must have no masked entries"):
        metrics.ece(GOOD, np.ma.array(LABELS, mask=[True, False, False]))
    with pytest.raises(TypeError, match=r"probs must hold numbers that NumPy has, got torch\.float8"):
        metrics.ece(torch.from_numpy(GOOD).to(torch.float8_e4m3fn), LABELS)
    with pytest.raises(ValueError, match="n_bins times the 3000 classes"):
        metrics.classwise_ece(np.full((1, 3000), 1 / 3000), [0], n_bins=100_000)
    sketch = metrics.CalibrationSketch.of(GOOD, LABELS)
    with pytest.raises(ValueError, match="norm must be one of"):
        sketch.debiased_ece("max")
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        sketch.reliability(95)


def test_numpy_numbers_are_numbers():
    for metric in (metrics.ece, metrics.adaptive_ece, metrics.classwise_ece, metrics.mce):
        for n_bins in (np.int64(7), 7.0, np.float32(7)):
            assert metric(GOOD, LABELS, n_bins=n_bins) == metric(GOOD, LABELS, n_bins=7)
    assert metrics.summary(GOOD, LABELS, n_bins=7.0).ece == metrics.ece(GOOD, LABELS, n_bins=7)
    assert len(metrics.reliability(GOOD, LABELS, n_bins=7.0).count) == 7
    assert metrics.top_k_accuracy(GOOD, LABELS, k=np.int32(2)) == 1.0
    assert metrics.reliability(GOOD, LABELS, level=np.float32(0.9)).level == pytest.approx(0.9)
    assert metrics.ece(GOOD, LABELS, ignore_index=np.int64(-1)) == metrics.ece(GOOD, LABELS)


def test_reversed_and_odd_strides():
    for n in (1, 3):
        assert metrics.ece(GOOD[:n][::-1], LABELS[:n][::-1]) == pytest.approx(metrics.ece(GOOD[:n], LABELS[:n]))
    records = np.zeros(3, dtype=[("p", "f8", 2), ("flag", "u1"), ("y", "i8")])
    records["p"], records["y"] = GOOD, LABELS
    assert metrics.ece(records["p"], records["y"]) == pytest.approx(metrics.ece(GOOD, LABELS))


def test_the_row_of_the_caller_is_named(engine):
    """Also far into the array, in a map, and behind ignored rows."""
    probs = torch.full((5000, 100), 0.01)
    labels = torch.zeros(5000, dtype=torch.int64)
    labels[:100] = 255
    probs[4321, 7] = torch.nan
    with pytest.raises(ValueError, match="got nan in row 4321"):
        metrics.ece(probs, labels, ignore_index=255)
    with pytest.raises(ValueError, match="got nan in row 4321"):
        metrics.top_k_accuracy(probs, labels, ignore_index=255)
    with pytest.raises(ValueError, match="logits must be finite, got nan in row 4321"):
        metrics.nll(logits=probs, labels=labels, ignore_index=255)
    images = torch.full((6, 4, 10, 10), 0.25)
    images[3, 1, 5, 5] = 0.3
    with pytest.raises(ValueError, match=r"got a sum of 1.0[45]\d* in row 3"):
        metrics.ece(images, torch.zeros(6, 10, 10, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"got a sum of 1.0[45]\d* in row 3"):
        metrics.top_k_accuracy(images, torch.zeros(6, 10, 10, dtype=torch.int64))


def test_an_ignored_row_may_hold_anything(engine):
    probs = changed(1, 0, np.nan)
    labels = np.array([1, -100, 0])
    assert metrics.ece(probs, labels, ignore_index=-100) == pytest.approx(metrics.ece(GOOD[[0, 2]], LABELS[[0, 2]]))
    with pytest.raises(ValueError, match="labels must leave a row to look at, got only ignore_index = -100"):
        metrics.ece(GOOD, np.full(3, -100), ignore_index=-100)


@pytest.mark.parametrize(
    ("probs", "labels", "message"),
    [
        ([[0.1, 1.2]], [[0, 1]], r"probs must be probabilities from 0 to 1, got 1.2 in row 0, column 1; pass sigmoid"),
        ([[0.1, np.nan]], [[0, 1]], "probs must be probabilities from 0 to 1, got nan in row 0, column 1"),
        ([[0.1, 0.2]], [[0, 2]], "labels must be 0 or 1, got 2 in row 0, column 1"),
        ([0.1, 0.2], [0, 1], r"must both be \(N, L\), got \(2,\) and \(2,\); for one label add a dimension"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "at least one row and one label"),
    ],
)
def test_multilabel(probs, labels, message):
    for metric in metrics.MULTILABEL_METRICS.values():
        with pytest.raises(ValueError, match=message):
            metric(np.array(probs), np.array(labels))


def test_choices():
    with pytest.raises(ValueError, match="convention must be one of 'closed', 'fc', got 'open'"):
        metrics.adaptive_ece(GOOD, LABELS, convention="open")
    with pytest.raises(ValueError, match="convention must be one of 'whole', 'relplot'"):
        metrics.smooth_ece(GOOD, LABELS, convention="fc")
    with pytest.raises(ValueError, match="norm must be one of 'l1', 'l2'"):
        metrics.debiased_ece(GOOD, LABELS, norm="max")
    with pytest.raises(ValueError, match="of must be one of 'confidence', 'classes'"):
        metrics.murphy(GOOD, LABELS, of="top")
    with pytest.raises(ValueError, match="average must be one of 'mean', None, got 'macro'"):
        metrics.multilabel_ece(GOOD, (GOOD > 0.5).astype(int), average="macro")
