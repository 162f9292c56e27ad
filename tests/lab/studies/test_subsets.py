"""Which examples a run sees: the same for every seed, in proportion, and said in the provenance."""

import json
from dataclasses import replace

import numpy as np
import pytest

from focalcal.lab.data import DataSet, DataSetError, Examples, fingerprint, load_data
from focalcal.lab.store import Protocol
from focalcal.lab.studies.subsets import apply_protocol, shares, subset


@pytest.fixture(scope="module")
def digits():
    return load_data("digits")


def test_the_default_protocol_changes_nothing(digits):
    assert apply_protocol(digits, Protocol()) is digits


def test_a_long_tail_has_the_sizes_of_its_formula(digits):
    seen = apply_protocol(digits, Protocol(imbalance=10))
    smallest = np.bincount(digits.train.labels).min()
    expected = [int(smallest * 10 ** (-k / 9) + 1e-9) for k in range(10)]
    assert np.bincount(seen.train.labels).tolist() == expected
    assert seen.provenance["protocol"]["train, class sizes"] == expected
    assert seen.provenance["counts"] == {"train": sum(expected), "val": len(digits.val), "test": len(digits.test)}
    assert fingerprint(seen.test) == fingerprint(digits.test)  # evaluation stays balanced


def test_subsets_keep_classes_in_proportion_and_order(digits):
    seen = apply_protocol(digits, Protocol(train_examples=200, test_examples=50))
    assert (len(seen.train), len(seen.val), len(seen.test)) == (200, 50, 50)
    for part, whole in ((seen.train, digits.train), (seen.test, digits.test)):
        exact = np.bincount(whole.labels) * len(part) / len(whole)
        assert np.abs(np.bincount(part.labels, minlength=10) - exact).max() < 1
        places = [whole.ids.tolist().index(one) for one in part.ids]
        assert places == sorted(places)
        assert np.array_equal(part.inputs, whole.inputs[places])
    json.dumps(dict(seen.provenance))


def test_subsets_are_the_same_at_every_call_and_leave_global_randomness_alone(digits):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = (fingerprint(subset(digits.train, 77)) for _ in range(2))
    assert first == again
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_an_imbalance_comes_before_the_cut(digits):
    seen = apply_protocol(digits, Protocol(imbalance=10, train_examples=100))
    sizes = np.bincount(seen.train.labels, minlength=10)
    assert sizes.sum() == 100
    assert sizes[0] > 5 * sizes[9]


def test_too_many_training_examples_are_refused_but_of_the_rest_there_are_at_most_so_many(digits):
    with pytest.raises(ValueError, match=r"train_examples must be at most \d+, what digits has .* got 5000"):
        apply_protocol(digits, Protocol(train_examples=5000))
    seen = apply_protocol(digits, Protocol(train_examples=5000, test_examples=5000, allow_partial=True))
    assert seen.provenance["counts"] == digits.provenance["counts"]


@pytest.mark.parametrize("split", ["train", "test"])
def test_nothing_to_train_on_or_to_test_is_refused(digits, split):
    empty = replace(digits, **{split: digits.splits[split].none()})
    with pytest.raises(DataSetError, match=f"digits: {split} must hold examples"):
        apply_protocol(empty, Protocol(allow_partial=True))


def test_several_labels_are_cut_whatever_they_are():
    labels = np.arange(60).reshape(20, 3) % 2 == 0
    whole = Examples(np.zeros((20, 3, 4, 4), np.uint8), labels, np.arange(20), groups=np.arange(20))
    other = Examples(whole.inputs, labels, np.arange(20, 40), groups=np.arange(20, 40))
    data = DataSet("pair", ("a", "b", "c"), whole, whole.none(), other)
    seen = apply_protocol(data, Protocol(train_examples=7))
    assert len(seen.train) == 7
    assert np.array_equal(seen.train.labels, labels[seen.train.ids])
    with pytest.raises(ValueError, match="one label each"):
        apply_protocol(data, Protocol(imbalance=2))


def test_shares_add_up_and_stay_within_one():
    for sizes in ([5, 5, 5], [1, 0, 99], [97, 2, 1], [3, 3, 3, 1]):
        for count in range(sum(sizes) + 1):
            found = np.array(shares(np.array(sizes), count))
            assert found.sum() == count
            assert (found <= sizes).all()
            assert (np.abs(found - np.array(sizes) * count / sum(sizes)) < 1).all()
