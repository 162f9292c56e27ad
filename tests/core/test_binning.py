import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focalcal.core.binning import bin_index, bin_sums, equal_mass_edges, equal_width_edges, even_bin_index


def test_a_bin_is_open_below_and_closed_above():
    edges = equal_width_edges(15)
    every = np.arange(16) / 15
    # 0 belongs to the first bin, k/15 to the bin that ends there, 1 to the last
    assert bin_index(every, edges).tolist() == [0, *range(15)]
    assert bin_index(np.nextafter(every[:-1], every[1:]), edges).tolist() == list(range(15))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 20))
def test_even_bins_need_no_search(values, bins):
    near = np.concatenate([values, np.nextafter(values, 0), np.nextafter(values, 1), np.arange(bins + 1) / bins])
    for confidence in (near, near.astype(np.float32)):
        expected = bin_index(confidence, equal_width_edges(bins))
        np.testing.assert_array_equal(even_bin_index(confidence, bins), expected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 20))
def test_equal_mass_edges_are_the_references_interpolation(values, bins):
    n = len(values)
    expected = np.interp(np.linspace(0, n, bins + 1), np.arange(n), np.sort(values))
    np.testing.assert_allclose(equal_mass_edges(np.array(values), bins), expected, rtol=0, atol=1e-12)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=80), st.data())
def test_the_whole_is_the_sum_of_any_parts(rows, data):
    confidence, correct = np.array([c for c, _ in rows]), np.array([a for _, a in rows])
    cut = data.draw(st.integers(0, len(rows)))
    edges = equal_width_edges(7)
    whole = bin_sums(confidence, correct, edges)
    parts = bin_sums(confidence[:cut], correct[:cut], edges) + bin_sums(confidence[cut:], correct[cut:], edges)
    np.testing.assert_array_equal(whole.count, parts.count)
    np.testing.assert_array_equal(whole.correct, parts.correct)
    np.testing.assert_allclose(whole.confidence, parts.confidence, rtol=1e-12, atol=1e-12)
    assert whole.count.sum() == len(rows)


def test_the_gap_is_confidence_minus_accuracy_and_zero_where_empty():
    confidence, correct = np.array([0.1, 0.9, 0.95], np.float32), np.array([True, False, True])
    sums = bin_sums(confidence, correct, equal_width_edges(3))
    assert sums.gap.tolist() == pytest.approx([-0.9, 0.0, 0.925 - 0.5], abs=1e-7)
