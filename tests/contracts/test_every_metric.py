"""What holds for every metric of (probs, labels)."""

import numpy as np
import pytest
import torch

from focalcal.metrics import METRICS

ALL = pytest.mark.parametrize("name", METRICS)
DEPENDS_ON_ROWS = {"debiased_ece"}  # the correction for chance knows how many rows there are


@pytest.fixture
def rows():
    generator = np.random.default_rng(0)
    probs = generator.dirichlet(np.full(7, 0.5), size=600)
    return probs, (generator.random((600, 1)) > (probs**1.3).cumsum(1)).sum(1).clip(max=6)


@ALL
def test_it_is_a_float_and_inputs_stay_as_they_are(name, rows):
    probs, labels = rows[0].copy(), rows[1].copy()
    value = METRICS[name](probs, labels)
    assert type(value) is float
    assert np.array_equal(probs, rows[0])
    assert np.array_equal(labels, rows[1])


@ALL
def test_the_order_of_the_rows_does_not_matter(name, rows):
    order = np.random.default_rng(1).permutation(600)
    assert METRICS[name](rows[0][order], rows[1][order]) == pytest.approx(METRICS[name](*rows), abs=1e-12)


@ALL
def test_the_names_of_the_classes_do_not_matter(name, rows):
    order = np.random.default_rng(1).permutation(7)
    renamed = np.argsort(order)[rows[1]]
    assert METRICS[name](rows[0][:, order], renamed) == pytest.approx(METRICS[name](*rows), abs=1e-12)


@ALL
def test_every_row_twice_changes_nothing(name, rows):
    doubled = METRICS[name](np.repeat(rows[0], 2, 0), np.repeat(rows[1], 2))
    if name in DEPENDS_ON_ROWS:
        assert doubled != METRICS[name](*rows)
    else:  # order statistics and the sum over ranks move a little
        tolerance = 0.02 if name in ("adaptive_ece", "aurc") else 1e-4 if name == "smooth_ece" else 1e-12
        assert doubled == pytest.approx(METRICS[name](*rows), abs=tolerance)


@ALL
def test_tensors_arrays_and_dtypes_agree(name, rows):
    probs, labels = torch.from_numpy(rows[0]), torch.from_numpy(rows[1])
    expected = METRICS[name](*rows)
    assert METRICS[name](probs, labels) == pytest.approx(expected, abs=1e-12)
    assert METRICS[name](probs.float(), labels.int()) == pytest.approx(
        expected, abs=1e-3 if name == "adaptive_ece" else 1e-5
    )


@ALL
def test_ignored_rows_are_as_if_absent(name, rows):
    probs, labels = rows
    marked = np.concatenate([labels, np.full(50, 255)])
    more = np.concatenate([probs, np.full((50, 7), np.nan)])
    assert METRICS[name](more, marked, ignore_index=255) == pytest.approx(METRICS[name](*rows), abs=1e-12)


@ALL
def test_maps_are_their_pixels(name, rows):
    probs, labels = rows
    images = np.moveaxis(probs.reshape(6, 10, 10, 7), -1, 1)
    assert METRICS[name](images, labels.reshape(6, 10, 10)) == pytest.approx(METRICS[name](*rows), abs=1e-12)


@ALL
def test_a_sure_and_right_classifier_has_the_best_value(name):
    probs, labels = np.eye(6), np.arange(6)
    assert METRICS[name](probs, labels) == pytest.approx(1.0 if name == "top_k_accuracy" else 0.0, abs=1e-12)
