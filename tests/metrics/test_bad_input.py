"""Every error names the argument, the rule, the value received and the remedy."""

import numpy as np
import pytest
import torch

from focalcal import metrics

GOOD = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
LABELS = np.array([1, 0, 0])
ALL = list(metrics.METRICS.values())


def changed(row, column, value, base=GOOD):
    probs = base.copy()
    probs[row, column] = value
    return probs


CASES = [
    (changed(1, 0, np.nan), LABELS, ValueError, "probs must be finite, got nan in row 1;"),
    (changed(2, 1, np.inf), LABELS, ValueError, "probs must be finite, got inf in row 2;"),
    (changed(0, 0, 0.3), LABELS, ValueError, r"summing to 1 within 1e-09 over the classes, got a sum of 1.1 in row 0;"),
    (np.array([[-0.1, 1.1]]), [0], ValueError, r">= 0 and summing to 1 .* got -0.1 in row 0; pass softmax\(logits\)"),
    (GOOD, [1, 0, 2], ValueError, "labels must be from 0 to 1, got 2 at flat position 2; check the labels"),
    (GOOD, [1, -1, 0], ValueError, "labels must be from 0 to 1, got -1 at flat position 1"),
    (GOOD, [1, 0], ValueError, r"labels must have shape \(3,\) for probs of shape \(3, 2\), got \(2,\)"),
    (GOOD, [0.0, 1.0, 0.0], TypeError, "labels must be integers"),
    (GOOD[:0], LABELS[:0], ValueError, "probs must hold at least one row"),
    (GOOD[:, :1], LABELS * 0, ValueError, r"probs must have at least two classes .* got shape \(3, 1\)"),
    (GOOD[:, 0], LABELS, ValueError, r"probs must be \(N, K\) .* use the multilabel_ functions, or stack"),
    (np.array([[1, 0]]), [0], TypeError, "probs must be floating point, got torch.int64; convert them"),
    (np.array([["a", "b"]]), [0], TypeError, "probs must be an array of numbers or a tensor"),
]  # fmt: skip


@pytest.mark.parametrize("metric", ALL, ids=lambda m: m.__name__)
@pytest.mark.parametrize(("probs", "labels", "kind", "message"), CASES, ids=range(len(CASES)))
def test_metrics(metric, probs, labels, kind, message, engine):
    options = {"k": 1} if metric is metrics.top_k_accuracy else {}
    with pytest.raises(kind, match=message):
        metric(probs, labels, **options)


@pytest.mark.parametrize(
    "function", [metrics.summary, metrics.reliability, metrics.murphy, metrics.CalibrationSketch.of]
)
@pytest.mark.parametrize(("probs", "labels", "kind", "message"), CASES, ids=range(len(CASES)))
def test_the_rest(function, probs, labels, kind, message, engine):
    with pytest.raises(kind, match=message):
        function(probs, labels)


@pytest.mark.parametrize("n_bins", [0, -1, 1.5, True, "15"])
def test_bins(n_bins):
    for metric in (
        metrics.ece,
        metrics.adaptive_ece,
        metrics.classwise_ece,
        metrics.mce,
        metrics.summary,
        metrics.reliability,
    ):
        with pytest.raises(ValueError, match=r"n_bins must be a whole number >= 1, got "):
            metric(GOOD, LABELS, n_bins=n_bins)


def test_tolerances_of_the_row_sum(engine):
    single = torch.tensor([[0.5, 0.500009]], dtype=torch.float32)
    assert metrics.error(single, [1]) == 0
    for probs in (torch.tensor([[0.5, 0.50002]]), torch.tensor([[0.5, 0.500000002]], dtype=torch.float64)):
        with pytest.raises(ValueError, match="got a sum of"):
            metrics.error(probs, [1])
    assert metrics.error(torch.tensor([[0.5, 0.5000000005]], dtype=torch.float64), [1]) == 0


def test_the_row_of_the_caller_is_named(engine):
    """Also far into the array, in a map, and behind ignored rows."""
    probs = torch.full((5000, 100), 0.01)
    labels = torch.zeros(5000, dtype=torch.int64)
    labels[:100] = 255
    probs[4321, 7] = torch.nan
    with pytest.raises(ValueError, match="got nan in row 4321"):
        metrics.ece(probs, labels, ignore_index=255)
    with pytest.raises(ValueError, match="logits must be finite, got nan in row 4321"):
        metrics.nll(logits=probs, labels=labels, ignore_index=255)
    images = torch.full((6, 4, 10, 10), 0.25)
    images[3, 1, 5, 5] = 0.3
    with pytest.raises(ValueError, match=r"got a sum of 1.0[45]\d* in row 3"):
        metrics.ece(images, torch.zeros(6, 10, 10, dtype=torch.int64))


def test_an_ignored_row_may_hold_anything(engine):
    probs = changed(1, 0, np.nan)
    labels = np.array([1, -100, 0])
    assert metrics.ece(probs, labels, ignore_index=-100) == metrics.ece(GOOD[[0, 2]], LABELS[[0, 2]])
    with pytest.raises(ValueError, match="labels must leave a row to look at, got only ignore_index = -100"):
        metrics.ece(GOOD, np.full(3, -100), ignore_index=-100)


@pytest.mark.parametrize("metric", ["ece", "smooth_ece", "nll", "auroc", "aurc"])
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
def test_multilabel(metric, probs, labels, message):
    with pytest.raises(ValueError, match=message):
        metrics.MULTILABEL_METRICS[metric](np.array(probs), np.array(labels))


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
