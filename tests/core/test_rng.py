import hashlib

import numpy as np
import pytest

from focalcal.core.rng import numpy_stream, stream_key


def first(generator, count=4):
    return generator.integers(0, 2**31, count).tolist()


def test_the_first_numbers_never_change():
    assert first(numpy_stream(7, "augment", 12)) == [2087668321, 1682770997, 174312193, 390604761]


def test_the_key_is_the_hash_of_the_written_address():
    assert stream_key(7, "augment", 12) == hashlib.sha256(b"i1:7s7:augmenti2:12").digest()
    assert stream_key(np.int64(7), "é", np.uint8(3)) == hashlib.sha256("i1:7s2:éi1:3".encode()).digest()


def test_addresses_that_look_alike_are_apart():
    addresses = [(1,), (1, ""), (1, 2), (1, "2"), (12,), (1, "i1:2"), (1, "a", "b"), (1, "ab"), (1, -2), (1, "b", "a")]
    assert len({stream_key(*address) for address in addresses}) == len(addresses)
    assert len({tuple(first(numpy_stream(*address))) for address in addresses}) == len(addresses)


def test_streams_are_uniform_and_uncorrelated():
    table = np.stack([numpy_stream(5, i).random(1000) for i in range(200)])
    assert abs(table.mean() - 0.5) < 4 * (1 / 12 / table.size) ** 0.5
    correlation = np.corrcoef(table)[np.triu_indices(200, 1)]
    assert abs(correlation).max() < 0.17  # 5.4 standard errors, for 20,000 pairs
    assert np.isclose(correlation.std(), 1000**-0.5, rtol=0.05)
    assert np.unique(table[:, 0]).size == 200


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "1", None, True, float("nan"), np.float64(2)])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(ValueError, match=r"seed must be a whole number from 0 to 2\*\*64 - 1"):
        numpy_stream(seed, "augment")


@pytest.mark.parametrize("name", [1.5, None, True, b"augment", ("a",)])
def test_bad_names_are_refused(name):
    with pytest.raises(TypeError, match="names of a stream must be strings or whole numbers"):
        numpy_stream(0, name)
