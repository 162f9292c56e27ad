"""Every metric against its definition written out row by row, on random rows and on those where peers go wrong."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from references import brute_force
from scipy.stats import foldnorm
from support.metric_engines import ENGINES, use

from focalcal import metrics
from focalcal.metrics.binned_errors import folded_normal_mean

DEFINED = [
    "ece", "mce", "rms_ce", "classwise_ece", "adaptive_ece", "brier", "nll", "error", "confidence_gap",
]  # fmt: skip


@st.composite
def tables(draw):
    """Probabilities in float64 with many ties, zeros, ones and multiples of 1/15, and their labels."""
    rows, classes = draw(st.integers(1, 40)), draw(st.sampled_from([2, 3, 7, 8, 10, 17, 33, 40]))
    generator = np.random.default_rng(draw(st.integers(0, 2**31)))
    kind = draw(st.sampled_from(["spread", "peaked", "fifteenths", "saturated", "uniform"]))
    if kind == "fifteenths":  # exact multiples of 1/15, which sum to one
        probs = generator.multinomial(15, np.ones(classes) / classes, size=rows) / 15
    elif kind == "saturated":
        probs = np.eye(classes)[generator.integers(classes, size=rows)]
    elif kind == "uniform":
        probs = np.full((rows, classes), 1 / classes)
    else:
        probs = generator.dirichlet(np.full(classes, 2.0 if kind == "spread" else 0.1), size=rows)
    labels = generator.integers(draw(st.sampled_from([1, classes])), size=rows)  # some classes may be absent
    return probs, labels


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DEFINED)
@settings(max_examples=30)
@given(table=tables())
def test_definition(name, engine, table):
    probs, labels = table
    expected = getattr(brute_force, name)(probs.tolist(), labels.tolist())
    with pytest.MonkeyPatch.context() as patch:
        use(engine, patch)
        value = getattr(metrics, name)(probs, labels)
    assert value == expected if math.isinf(expected) else value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_bins", [2, 5, 10, 15])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_class_at_an_edge_of_its_dtype(n_bins, dtype, engine):
    """float32(1 / 10) lies above 1 / 10: in the second bin, with its label."""
    edge = torch.tensor(1 / n_bins, dtype=dtype)
    probs = torch.stack([edge, 1 - edge]).expand(40, 2).contiguous()
    labels = (torch.arange(40) % 2).tolist()
    expected = brute_force.classwise_ece(probs.double().tolist(), labels, n_bins)
    assert metrics.classwise_ece(probs, labels, n_bins=n_bins) == pytest.approx(expected, abs=1e-7)


@given(table=tables(), n_bins=st.integers(1, 50))
def test_any_number_of_bins(table, n_bins):
    probs, labels = table
    for name in ("ece", "mce", "classwise_ece", "adaptive_ece"):
        expected = getattr(brute_force, name)(probs.tolist(), labels.tolist(), n_bins)
        assert getattr(metrics, name)(probs, labels, n_bins=n_bins) == pytest.approx(expected, abs=1e-12)


def test_the_published_equal_mass_bins_hold_no_row_when_all_are_equally_confident():
    """Their code puts the smallest confidence below the first bin, and here each is the smallest."""
    probs, labels = torch.tensor([[0.7, 0.3]]).expand(10, 2), [0, 1] * 5
    assert metrics.adaptive_ece(probs, labels) == pytest.approx(0.2)
    assert metrics.adaptive_ece(probs, labels, convention="fc") == 0


@given(table=tables(), k=st.integers(1, 2))
def test_top_k(table, k):
    probs, labels = table
    expected = brute_force.top_k_accuracy(probs.tolist(), labels.tolist(), k)
    assert metrics.top_k_accuracy(probs, labels, k=k) == pytest.approx(expected)
    assert metrics.top_k_accuracy(probs, labels, k=1) == pytest.approx(1 - metrics.error(probs, labels))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", range(16))
def test_a_confidence_at_an_edge_is_in_the_bin_it_closes(k, dtype, engine):
    edge = torch.tensor(k / 15, dtype=torch.float64).to(dtype)
    if edge <= 0.5:
        edge = 1 - edge  # the confidence of two classes
    probs = torch.stack([edge, 1 - edge]).expand(4, 2).contiguous()
    found = metrics.reliability(probs, torch.tensor([0, 0, 0, 1]))
    (occupied,) = np.flatnonzero(found.count)
    assert occupied == brute_force.bin_of(float(edge), 15)
    assert found.lower[occupied] < float(edge) <= found.upper[occupied]
    assert metrics.ece(probs, torch.zeros(4, dtype=torch.int64)) == pytest.approx(1 - float(edge), abs=1e-7)


def test_a_class_without_labels_counts(engine):
    probs = np.array([[0.4, 0.3, 0.3], [0.4, 0.3, 0.3]])
    # Class 0: |0.4 - 1| ; class 1: 0.3; class 2: 0.3. The mean is over three classes, not over those seen.
    assert metrics.classwise_ece(probs, [0, 0]) == pytest.approx((0.6 + 0.3 + 0.3) / 3)


def test_a_tiny_probability_is_no_zero(engine):
    tiny = np.float32(1e-42)  # a denormal number
    probs = np.array([[tiny, 1.0]], dtype=np.float32)
    assert metrics.nll(probs, [0]) == pytest.approx(-math.log(float(tiny)))
    assert metrics.nll(np.array([[0.0, 1.0]]), [0]) == math.inf
    assert metrics.nll(logits=np.array([[-800.0, 0.0]]), labels=[0]) == pytest.approx(800.0)


def test_the_mean_of_a_folded_normal_is_scipys():
    mean, deviation = np.array([-0.3, 0.0, 0.02, 0.5]), np.array([0.1, 0.2, 0.05, 0.4])
    expected = foldnorm.mean(np.abs(mean) / deviation, scale=deviation)
    np.testing.assert_allclose(folded_normal_mean(mean, deviation), expected, rtol=1e-12)
    np.testing.assert_array_equal(folded_normal_mean(mean, np.zeros(4)), np.abs(mean))
