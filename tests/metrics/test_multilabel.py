"""Sigmoid outputs: each label is a question of its own."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import brute_force

from focalcal import metrics


def answers(rows=400, labels=4, seed=0):
    generator = np.random.default_rng(seed)
    probs = generator.random((rows, labels))
    return probs, (generator.random((rows, labels)) < probs**1.3).astype(int)


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 60))
def test_ece_and_mce_per_label(seed, rows):
    probs, labels = answers(rows, 3, seed)
    pairs = [list(zip(probs[:, at].tolist(), labels[:, at].tolist(), strict=True)) for at in range(3)]
    ece = [sum(share * abs(c - a) for share, c, a in brute_force.gaps(each, 15)) for each in pairs]
    mce = [max(abs(c - a) for _, c, a in brute_force.gaps(each, 15)) for each in pairs]
    assert metrics.multilabel_ece(probs, labels, average=None) == pytest.approx(ece, abs=1e-12)
    assert metrics.multilabel_mce(probs, labels, average=None) == pytest.approx(mce, abs=1e-12)
    assert metrics.multilabel_ece(probs, labels) == pytest.approx(np.mean(ece), abs=1e-12)


@pytest.mark.parametrize("name", metrics.MULTILABEL_METRICS)
def test_average_is_the_mean_and_each_label_stands_alone(name):
    metric = metrics.MULTILABEL_METRICS[name]
    probs, labels = answers()
    each = metric(probs, labels, average=None)
    assert each.shape == (4,)
    assert metric(probs, labels) == pytest.approx(each.mean())
    for at in range(4):
        assert metric(probs[:, [at]], labels[:, [at]]) == pytest.approx(each[at])
    assert metric(torch.from_numpy(probs), torch.from_numpy(labels).bool()) == pytest.approx(each.mean())


@pytest.mark.parametrize("name", ["nll", "brier", "error", "aurc"])
def test_two_classes_are_one_label(name):
    """What does not depend on which class is asked about agrees with the single-label metric of (1 - p, p)."""
    probs, labels = answers(300, 1)
    two = np.concatenate([1 - probs, probs], 1)
    expected = metrics.METRICS[name](two, labels[:, 0])
    factor = 2.0 if name == "brier" else 1.0  # the two-class score counts both coordinates
    assert factor * metrics.MULTILABEL_METRICS[name](probs, labels) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", metrics.MULTILABEL_METRICS)
def test_unknown_answers_take_no_part(name):
    metric = metrics.MULTILABEL_METRICS[name]
    probs, labels = answers(300, 2)
    masked = labels.copy()
    masked[:100, 0] = -1
    probs_with_gaps = probs.copy()
    probs_with_gaps[:100, 0] = np.nan  # nobody looks there
    found = metric(probs_with_gaps, masked, average=None, ignore_index=-1)
    assert found[0] == pytest.approx(metric(probs[100:, :1], labels[100:, :1]))
    assert found[1] == pytest.approx(metric(probs[:, 1:], labels[:, 1:]))
    masked[:, 0] = -1
    with pytest.raises(ValueError, match="got only ignore_index in column 0"):
        metric(probs, masked, ignore_index=-1)


def test_a_label_that_never_occurs_has_no_auroc():
    probs, labels = answers(50, 3)
    labels[:, 1] = 0
    with pytest.raises(ValueError, match="labels must hold both outcomes in every column, got only 0 in column 1"):
        metrics.multilabel_auroc(probs, labels)


def test_summary_reliability_and_decomposition():
    probs, labels = answers()
    found = metrics.multilabel_summary(probs, labels)
    for name, value in found.mean.items():
        assert value == pytest.approx(metrics.MULTILABEL_METRICS[name](probs, labels))
    assert found.positives.tolist() == labels.sum(0).tolist()
    assert "mean" in str(found)
    assert len(str(found).splitlines()) == 6
    for at, reliability in enumerate(metrics.multilabel_reliability(probs, labels)):
        gap = np.nansum(reliability.count * np.abs(reliability.gap)) / 400
        assert gap == pytest.approx(found.ece[at])
    for at, parts in enumerate(metrics.multilabel_murphy(probs, labels)):
        assert parts.brier == pytest.approx(found.brier[at])
        assert parts.calibration + parts.refinement + parts.within_bins == pytest.approx(parts.brier)
