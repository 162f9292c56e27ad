"""The sign-flip test against brute force, SciPy and its own floor."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from focalcal.stats import sign_flip_test

NUMBERS = st.floats(-5, 5, allow_nan=False).map(lambda value: round(value, 2))


@settings(max_examples=60, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=9), st.sampled_from(["two-sided", "less", "greater"]))
def test_counts_every_assignment(values, alternative):
    hundredths = np.rint(np.array(values) * 100).astype(int)  # whole numbers have exact sums
    sums = np.array(list(product((-1, 1), repeat=len(values)))) @ hundredths
    seen = hundredths.sum()
    hits = {"two-sided": abs(sums) >= abs(seen), "less": sums <= seen, "greater": sums >= seen}[alternative]
    assert sign_flip_test(values, alternative=alternative).p_value == hits.mean()


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_agrees_with_scipy(alternative):
    d = np.random.default_rng(3).normal(0.4, 1, 11)
    theirs = permutation_test(
        (d,), lambda x, axis: x.mean(axis), permutation_type="samples", n_resamples=np.inf,
        vectorized=True, alternative=alternative,
    )  # fmt: skip
    ours = sign_flip_test(d, alternative=alternative)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-12)
    assert ours.assignments == 2**11
    assert ours.error == 0


@pytest.mark.parametrize(("n", "floor"), [(3, 0.25), (10, 0.001953125), (24, 2.0**-23)])
def test_the_floor_is_reached_by_differences_of_one_sign(n, floor):
    result = sign_flip_test(np.linspace(0.1, 1, n))
    assert result.p_value == result.floor == floor
    assert sign_flip_test(np.linspace(0.1, 1, n), alternative="greater").p_value == floor / 2


def test_zeros_raise_the_floor():
    result = sign_flip_test([1.0, 2.0, 0.0])
    assert result.p_value == result.floor == 0.5
    assert sign_flip_test([0.0, 0.0]).p_value == sign_flip_test([0.0, 0.0]).floor == 1


def test_rounding_does_not_break_ties():
    assert sign_flip_test([0.1, 0.2, -0.3]).p_value == 1  # 0.1 + 0.2 - 0.3 is 5.6e-17 in floating point


@given(st.lists(NUMBERS, min_size=2, max_size=10), st.floats(0.01, 100))
def test_sign_order_and_scale_do_not_matter(values, scale):
    p = sign_flip_test(values).p_value
    assert sign_flip_test([-value for value in values]).p_value == p
    assert sign_flip_test(values[::-1]).p_value == p
    assert sign_flip_test([scale * value for value in values]).p_value == p


def test_forty_are_enumerated_and_more_are_drawn():
    d = np.random.default_rng(0).normal(0.25, 1, 40)
    exact = sign_flip_test(d)
    assert (exact.method, exact.assignments) == ("enumerated", 2**40)
    drawn = sign_flip_test(d, exact_limit=20, draws=200_000)
    assert drawn.method == "drawn"
    assert drawn.p_value == pytest.approx(exact.p_value, abs=5 * drawn.error)
    assert sign_flip_test(d, exact_limit=20, draws=1000) == sign_flip_test(d, exact_limit=20, draws=1000)


def test_uniform_under_the_null():
    generator = np.random.default_rng(1)
    p = np.array([sign_flip_test(generator.normal(size=8)).p_value for _ in range(2000)])
    for level in (0.05, 0.25, 0.5):
        assert (p <= level).mean() <= level + 0.03  # never liberal, but for chance


@pytest.mark.parametrize(("values", "said"), [([], "at least 1"), ([1.0, np.nan], "finite"), ([[1.0]], r"\(n,\)")])
def test_refuses(values, said):
    with pytest.raises(ValueError, match=said):
        sign_flip_test(values)


def test_the_floor_of_drawn_signs_is_what_the_draws_allow():
    found = sign_flip_test(np.ones(60), draws=999)
    assert found.p_value == found.floor == 1 / 1000
