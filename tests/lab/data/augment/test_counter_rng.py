import numpy as np
import pytest
import torch
from scipy import stats

from focalcal.lab.data.augment import counter_rng
from focalcal.lab.data.augment.counter_rng import derived_keys, drawn_keys, example_keys, normals, uniforms
from focalcal.lab.training.determinism import stream


def splitmix64(state, count):
    """The reference's C code, in whole numbers of Python."""
    mask, words = 2**64 - 1, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        bits = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & mask
        words.append(bits ^ (bits >> 31))
    return words


@pytest.mark.parametrize("key", [0, -1, 2**63 - 1, -(2**63), 123456789])
def test_numbers_are_splitmix64s_in_numpy_and_in_torch(key):
    expected = splitmix64(key % 2**64, 20)
    keys = torch.tensor([key, 5])
    assert uniforms(keys, 20)[0].tolist() == [(word >> 40) / 2**24 for word in expected]
    assert [word % 2**64 for word in counter_rng._words_on_device(keys, 20)[0].tolist()] == expected  # other devices'


def test_keys_are_pinned_and_an_examples_depends_on_it_alone():
    keys = example_keys(0, "augment", 3, ids=range(3))
    assert keys.tolist() == [1095097912835253483, 8582213146080031227, -3717974913313250330]
    every, some = example_keys(4, "augment", 1, ids=torch.arange(1000)), torch.tensor([999, 3, 3, 500])
    assert torch.equal(example_keys(4, "augment", 1, ids=some), every[some])
    assert torch.equal(uniforms(every, 6)[some], uniforms(every[some], 6))
    assert torch.equal(uniforms(every, 6)[:, :2], uniforms(every, 2))
    for kind in (torch.uint8, torch.int32, np.uint16, np.int64):
        ids = torch.tensor([1, 2], dtype=kind) if isinstance(kind, torch.dtype) else np.array([1, 2], dtype=kind)
        assert torch.equal(example_keys(4, "augment", 1, ids=ids), every[1:3])


def test_keys_do_not_collide():
    keys = torch.cat([example_keys(s, "augment", e, ids=range(20_000)) for s in range(3) for e in range(5)])
    steps = torch.cat([derived_keys(keys, step) for step in range(2)] + [keys])
    assert steps.unique().numel() == steps.numel()
    drawn = drawn_keys(100_000, stream(0, "keys"))
    assert drawn.unique().numel() == 100_000
    assert (drawn < 0).double().mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("source", ["examples", "derived", "epochs", "one"])
def test_uniforms_are_uniform_and_independent(source):
    keys = example_keys(1, "test", ids=range(20_000))
    if source == "derived":
        keys = derived_keys(keys, 1)
    if source == "epochs":
        keys = torch.cat([example_keys(1, "test", epoch, ids=[5]) for epoch in range(2000)])
    table = (uniforms(keys[:1], 80_000).view(-1, 4) if source == "one" else uniforms(keys, 4)).numpy()
    assert 0 <= table.min() <= table.max() < 1
    for column in table.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(table.T) - np.eye(4)).max() < 4.5 / len(table) ** 0.5
    assert abs(np.corrcoef(table[1:, 0], table[:-1, 0])[0, 1]) < 4.5 / len(table) ** 0.5


def test_normals_are_normal():
    table = normals(example_keys(2, "noise", ids=range(40_000)), 3).numpy()
    for column in table.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(table.T) - np.eye(3)).max() < 0.02


@pytest.mark.parametrize("ids", [torch.zeros(2, 2, dtype=torch.long), [0.5], torch.tensor([True]), None, ["a"], 3])
def test_bad_ids_are_refused(ids):
    with pytest.raises(ValueError, match="ids must be whole numbers of shape"):
        example_keys(0, "augment", ids=ids)
