"""Points that are tried: spread evenly, the same for everybody, and never more than there are."""

import numpy as np
import pytest
from scipy.stats import qmc

from focalcal.lab.studies.search_space import Choices, Range, dimension, points

RATE, DECAY = Range(0.1, 10.0, log=True), Range(0.0, 1.0)


def test_points_are_a_shifted_halton_sequence():
    drawn = np.array(list(points([Range(0.0, 1.0)] * 3, 200, seed=4)))
    halton = qmc.Halton(3, scramble=False).random(201)[1:]
    shift = np.random.default_rng(4).random(3)
    np.testing.assert_allclose(drawn, (halton + shift) % 1, atol=5.1e-4)  # three digits are kept
    assert qmc.discrepancy(drawn) < qmc.discrepancy(np.random.default_rng(0).random(drawn.shape)) / 2


def test_the_first_dimensions_do_not_depend_on_the_others_nor_on_the_number():
    alone = list(points([RATE, DECAY], 8, seed=0))
    more = list(points([RATE, DECAY, Choices(("a", "b")), Range(1.0, 2.0)], 20, seed=0))
    assert [point[:2] for point in more[:8]] == alone
    assert min(rate for rate, _ in alone) < 0.3 < 3 < max(rate for rate, _ in alone)
    assert alone != list(points([RATE, DECAY], 8, seed=1))


@pytest.mark.parametrize(("budget", "expected"), [(6, 6), (20, 6), (4, 4)])
def test_a_space_of_choices_is_tried_once(budget, expected):
    drawn = list(points([Choices((1, 2, 3)), Choices((True, False))], budget, seed=0))
    assert len(drawn) == len(set(drawn)) == expected


def test_a_range_is_halved_around_a_value_and_ends_where_it_ended():
    assert [DECAY.around(0.5), DECAY.around(0.9)] == [Range(0.25, 0.75), Range(0.65, 1.0)]
    near = RATE.around(5.0)
    assert (near.low, near.high) == (pytest.approx(5 / 100**0.25), 10.0)
    assert Choices((1, 2)).around(1) == Choices((1, 2))


def test_a_search_begins_with_the_default_where_it_may():
    assert [RATE.start(1.0), RATE.start(20), RATE.start(None)] == [1.0, 1.0, 1.0]  # the middle of a logarithm
    assert [Choices((3, 4)).start(4), Choices((3, 4)).start(5)] == [4, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        3,
        "log",
        {"low": 1},
        {"low": 2, "high": 1},
        {"low": 0, "high": 1, "log": True},
        {"low": 0, "high": 1, "to": 2},
    ],
)
def test_other_spaces_are_refused(wrong):
    with pytest.raises(ValueError, match="must be a list of values or"):
        dimension(wrong)
