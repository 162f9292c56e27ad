import numpy as np
import pytest
import torch

from focalcal.core.rng import stream_key
from focalcal.lab.training.determinism import stream


def first(generator, count=4):
    return torch.randint(0, 2**31, (count,), generator=generator).tolist()


def test_the_first_numbers_never_change():
    assert first(stream(7, "augment", 12)) == [1804210441, 289750995, 1714069687, 573004522]


def test_a_stream_is_not_touched_by_others():
    alone = torch.rand(5, generator=stream(3, "a"))
    generator = stream(3, "a")
    torch.manual_seed(9)
    torch.rand(100)
    torch.rand(100, generator=stream(3, "b"))
    assert torch.equal(torch.rand(5, generator=generator), alone)
    before = torch.get_rng_state()
    stream(0, "anything")
    assert torch.equal(torch.get_rng_state(), before)


def test_many_streams_do_not_collide():
    # With 32 bits of seed, 150,000 streams collide with probability 0.93.
    streams = [tuple(first(stream(0, "augment", i), 2)) for i in range(500)]
    assert len(set(streams)) == len(streams)
    keys = [stream_key(0, "augment", e, b) for e in range(100) for b in range(400)]
    assert len({key[:8] for key in keys}) == len(keys)


def test_streams_are_uniform_and_uncorrelated():
    table = np.stack([torch.rand(1000, generator=stream(5, i), dtype=torch.float64).numpy() for i in range(200)])
    assert abs(table.mean() - 0.5) < 4 * (1 / 12 / table.size) ** 0.5
    correlation = np.corrcoef(table)[np.triu_indices(200, 1)]
    assert abs(correlation).max() < 0.17  # 5.4 standard errors, for 20,000 pairs
    assert np.isclose(correlation.std(), 1000**-0.5, rtol=0.05)
    assert np.unique(table[:, 0]).size == 200


def test_the_state_is_a_twister_that_runs_on():
    """A period's worth of words, twice, without a repeat: the state was put where torch reads it."""
    numbers = torch.rand(5000, generator=stream(1, "long"), dtype=torch.float64)
    assert numbers.unique().numel() == 5000
    copy = torch.Generator()
    copy.set_state(stream(1, "long").get_state())
    assert torch.equal(torch.rand(5000, generator=copy, dtype=torch.float64), numbers)
    assert torch.randn(1000, generator=stream(1, "normal")).std() == pytest.approx(1, abs=0.1)


def test_addresses_are_checked():
    with pytest.raises(ValueError, match=r"seed must be a whole number from 0 to 2\*\*64 - 1"):
        stream(-1, "augment")
    with pytest.raises(TypeError, match="names of a stream must be strings or whole numbers"):
        stream(0, 1.5)
