"""What metrics take; what each of them refuses is in tests/contracts/test_refusals_of_metrics.py."""

import numpy as np
import pytest

from focalcal import metrics

GOOD = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
LABELS = np.array([1, 0, 0])


def test_numpy_numbers_are_numbers():
    for metric in (metrics.ece, metrics.adaptive_ece, metrics.classwise_ece, metrics.mce):
        for n_bins in (np.int64(7), 7.0, np.float32(7)):
            assert metric(GOOD, LABELS, n_bins=n_bins) == metric(GOOD, LABELS, n_bins=7)
    assert metrics.summary(GOOD, LABELS, n_bins=7.0).ece == metrics.ece(GOOD, LABELS, n_bins=7)
    assert len(metrics.reliability(GOOD, LABELS, n_bins=7.0).count) == 7
    assert metrics.top_k_accuracy(GOOD, LABELS, k=np.int32(2)) == 1.0
    assert metrics.reliability(GOOD, LABELS, level=np.float32(0.9)).level == pytest.approx(0.9)
    assert metrics.ece(GOOD, LABELS, ignore_index=np.int64(-1)) == metrics.ece(GOOD, LABELS)


@pytest.mark.parametrize("ignored", [-100, -(2**63)])  # the latter is what NaN becomes in int64
def test_an_ignored_row_may_hold_anything(ignored, engine):
    probs, labels = GOOD.copy(), LABELS.copy()
    probs[1, 0], labels[1] = np.nan, ignored
    for metric in metrics.METRICS.values():
        expected = metric(GOOD[[0, 2]], LABELS[[0, 2]])
        assert metric(probs, labels, ignore_index=ignored) == pytest.approx(expected, nan_ok=True), metric


def test_bins_times_classes_have_a_limit():
    with pytest.raises(ValueError, match="n_bins times the 3000 classes"):
        metrics.classwise_ece(np.full((1, 3000), 1 / 3000), [0], n_bins=100_000)
