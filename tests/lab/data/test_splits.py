import numpy as np
import pytest

from focalcal.lab.data import Examples, load_data
from focalcal.lab.data.splits import by_group, hold_out, long_tailed, shuffled, stratified


def rows(labels, groups=None):
    labels = np.asarray(labels, np.int64)
    return Examples(np.zeros((len(labels), 1)), labels, np.arange(len(labels)), groups=groups)


def test_the_split_of_the_literature_is_a_shuffled_list():
    np.random.seed(1)  # noqa: NPY002 - as it was published
    indices = list(range(50_000))
    np.random.shuffle(indices)  # noqa: NPY002
    train, val = hold_out(rows(np.zeros(50_000)), 5_000)
    assert val.ids.tolist() == sorted(indices[:5_000])
    assert train.ids.tolist() == sorted(indices[5_000:])
    assert shuffled(50_000, 1)[:5].tolist() == indices[:5] == [26247, 35067, 34590, 16668, 12196]


@pytest.mark.parametrize("count", [2, 3, 60])
def test_held_out_examples_are_taken_from_the_rest_by_the_seed(count):
    for seed in (0, 1):
        rest, held_out = hold_out(rows(np.zeros(count)), count // 2, seed=seed)
        assert sorted([*rest.ids, *held_out.ids]) == list(range(count))
        assert len(held_out) == count // 2
    assert count < 60 or held_out.ids.tolist() != hold_out(rows(np.zeros(count)), count // 2, seed=0)[1].ids.tolist()


def test_stratified_keeps_the_shares_and_the_published_counts():
    labels = np.repeat(np.arange(3), [9000, 5000, 1534])
    train, test = stratified(rows(labels))
    assert (len(train), len(test)) == (13_203, 2_331)
    np.testing.assert_allclose(np.bincount(test.labels), 0.15 * np.bincount(labels), atol=1)


def test_a_patient_is_on_one_side():
    patients = np.repeat(np.arange(80), 3)
    train, val = by_group(rows(np.zeros(240), patients))
    assert len(np.unique(val.groups)) == 10
    assert not set(train.groups) & set(val.groups)
    assert len(train) + len(val) == 240


@pytest.mark.parametrize("factor", [1, 10, 100])
def test_a_long_tail_falls_exponentially(factor):
    made = long_tailed(rows(np.repeat(np.arange(10), 500)), factor, seed=0)
    sizes = np.bincount(made.labels)
    assert (sizes[0], sizes[-1]) == (500, 500 / factor)
    np.testing.assert_allclose(sizes, 500 * factor ** (-np.arange(10) / 9), atol=1)


def test_a_long_tail_of_the_digits():
    train = load_data("digits").train
    assert np.bincount(train.labels).min() == 104
    sizes = np.bincount(long_tailed(train, 10, seed=3).labels).tolist()
    assert sizes == [104, 80, 62, 48, 37, 28, 22, 17, 13, 10]  # 104 * 10^(-k / 9), rounded down


def test_no_division_changes_unnoticed():
    """Each is a function of the examples and the seed: these numbers are what results of ours were made with."""
    twelve = rows(np.arange(12) % 3, np.arange(12) // 2)
    assert hold_out(twelve, 6, seed=0)[1].ids.tolist() == [2, 4, 6, 8, 10, 11]
    assert stratified(twelve, 0.5, seed=0)[1].ids.tolist() == [0, 3, 4, 5, 8, 10]
    assert by_group(twelve, 0.5, seed=0)[1].groups.tolist() == [1, 1, 2, 2, 5, 5]
    assert long_tailed(twelve, 4, seed=0).ids.tolist() == [0, 3, 4, 6, 9, 10, 11]


def test_bad_arguments_are_refused():
    few = rows([0, 1, 0, 1])
    with pytest.raises(ValueError, match="count must be from 0 to 3"):
        hold_out(few, 4)
    with pytest.raises(ValueError, match="share must be between 0 and 1"):
        stratified(few, 1.0)
    with pytest.raises(ValueError, match="must have groups"):
        by_group(few)
    with pytest.raises(ValueError, match="factor"):
        long_tailed(few, 0.5, seed=0)
    with pytest.raises(ValueError, match="every class must occur"):
        long_tailed(rows([0, 2]), 2, seed=0)
