"""Intervals, effect sizes, Holm's correction and verdicts."""

import math
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap
from statsmodels.stats.multitest import multipletests

from focalcal.stats import bootstrap_ci, cohens_dz, compare, holm, verdict_counts

METRICS = ("ece", "adaptive_ece", "nll", "brier")


@pytest.mark.parametrize(("ours", "theirs"), [("bca", "BCa"), ("percentile", "percentile")])
@pytest.mark.parametrize("n", [5, 10, 30])
def test_intervals_agree_with_scipy(ours, theirs, n):
    d = np.random.default_rng(n).exponential(1, n) - 0.5
    mine = bootstrap_ci(d, method=ours, resamples=40_000)
    other = bootstrap((d,), np.mean, method=theirs, n_resamples=40_000, rng=np.random.default_rng(0))
    width = mine.high - mine.low
    assert mine.mean == d.mean()
    assert mine.low == pytest.approx(other.confidence_interval.low, abs=0.03 * width)
    assert mine.high == pytest.approx(other.confidence_interval.high, abs=0.03 * width)


def skewed(n, seed=None):
    return np.random.default_rng(n if seed is None else seed).exponential(1, n) - 0.5


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_few_pairs_give_the_interval_of_all_resamples(n):
    """All n^n of them, one by one, and Efron's formula in its own words."""
    d, normal = skewed(n), NormalDist()
    means = np.sort([np.mean(draw) for draw in product(d, repeat=n)])
    bias = normal.inv_cdf((np.mean(means < d.mean() - 1e-12) + np.mean(means < d.mean() + 1e-12)) / 2)
    jackknife = np.array([np.delete(d, i).mean() for i in range(n)])
    spread = jackknife.mean() - jackknife
    acceleration = (spread**3).sum() / (6 * (spread**2).sum() ** 1.5)
    for method in ("percentile", "bca"):
        found = bootstrap_ci(d, method=method)
        for end, at in ((found.low, 0.025), (found.high, 0.975)):
            if method == "bca":
                shifted = bias + normal.inv_cdf(at)
                at = normal.cdf(bias + shifted / (1 - acceleration * shifted))
            assert end == pytest.approx(means[math.ceil(at * n**n) - 1], abs=1e-12)


@pytest.mark.parametrize("n", [2, 5, 10, 11])
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_the_order_of_few_pairs_does_not_matter_and_their_sign_turns_the_interval_round(n, method):
    d = skewed(n)
    here = bootstrap_ci(d, method=method)
    for seed in range(4):
        there = bootstrap_ci(np.random.default_rng(seed).permutation(d), method=method)
        assert (there.low, there.high) == (here.low, here.high)
    turned = bootstrap_ci(-d, method=method)
    assert (turned.low, turned.high) == (pytest.approx(-here.high, abs=1e-12), pytest.approx(-here.low, abs=1e-12))


def test_a_quantile_that_is_reached_exactly_is_between_its_neighbours():
    """Means 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4: the quartiles are any number from 0 to 1/2, and 1/2 to 1."""
    interval = bootstrap_ci([0.0, 1.0], level=0.5, method="percentile")
    assert (interval.low, interval.high) == (0.25, 0.75)


def test_enumeration_ends_where_drawing_begins_without_a_jump():
    d = skewed(11)
    exact = bootstrap_ci(d)
    drawn = bootstrap_ci([*d, d.mean()], resamples=200_000)  # the same sum of squares over twelve, not eleven
    assert bootstrap_ci([*d, 0.3], seed=1, resamples=99) != bootstrap_ci([*d, 0.3], seed=2, resamples=99)
    assert (drawn.high - drawn.low) / (exact.high - exact.low) == pytest.approx(11 / 12, abs=0.03)


def test_an_interval_is_repeatable_moves_with_the_data_and_grows_with_the_level():
    d = np.array([0.2, 0.5, -0.1, 0.4])
    assert bootstrap_ci(d) == bootstrap_ci(d)
    moved = bootstrap_ci(d + 1)
    assert moved.low == pytest.approx(bootstrap_ci(d).low + 1)
    assert bootstrap_ci(d, level=0.99).low < bootstrap_ci(d, level=0.8).low


def test_effect_size():
    assert cohens_dz([1.0, 2.0, 3.0]) == 2  # mean 2, standard deviation 1
    assert cohens_dz([1.0, 1.0]) == math.inf
    assert cohens_dz([-1.0, -1.0]) == -math.inf
    assert cohens_dz([0.0, 0.0]) == 0
    assert cohens_dz([0.3 - 0.1, 0.4 - 0.2, 0.2]) == math.inf, "rounding is no spread"
    assert cohens_dz([0.2, 0.2 + 1e-9]) < math.inf
    assert (bootstrap_ci([0.3, 0.3, 0.3]).low, bootstrap_ci([0.3, 0.3, 0.3]).high) == (0.3, 0.3)


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


@settings(max_examples=5)  # statsmodels collects garbage in every call, a fifth of a second
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_agrees_with_statsmodels(p):
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-12)


def values(shift, seeds, spread=0.01):
    generator = np.random.default_rng(0)
    return {metric: {seed: 1 + shift + spread * generator.normal() for seed in seeds} for metric in METRICS}


def test_ten_seeds_can_show_a_difference_and_three_cannot():
    for count, reachable, verdict in ((10, True, "better"), (3, False, "indistinguishable")):
        found = compare(values(-1, range(count)), values(0, range(count), spread=0.02))
        assert [one.metric for one in found] == list(METRICS)
        assert {one.verdict for one in found} == {verdict}
        assert {one.reachable for one in found} == {reachable}
        assert {one.p_adjusted for one in found} == {min(1, 4 * 2 / 2**count)}
        assert all(one.interval.high < 0 for one in found)


def test_worse_is_the_mirror_of_better():
    ours, theirs = values(-1, range(10)), values(0, range(10), spread=0.02)
    assert verdict_counts(compare(ours, theirs)) == {"better": 4, "worse": 0, "indistinguishable": 0}
    assert verdict_counts(compare(theirs, ours)) == {"better": 0, "worse": 4, "indistinguishable": 0}
    assert verdict_counts(compare(ours, ours)) == {"better": 0, "worse": 0, "indistinguishable": 4}


def test_only_common_seeds_are_paired():
    found = compare(values(-1, range(12)), values(0, range(4, 20)))
    assert found[0].seeds == tuple(range(4, 12))


def test_refuses_too_little():
    with pytest.raises(ValueError, match="share two seeds at least on 'ece', got 1"):
        compare(values(0, range(3)), values(0, [2, 5]))
    with pytest.raises(ValueError, match="baseline must have 'nll'"):
        compare(values(0, range(3)), {"ece": {}, "adaptive_ece": {}}, metrics=["nll"])
    with pytest.raises(ValueError, match="at least 2, got 1"):
        cohens_dz([1.0])
    with pytest.raises(ValueError, match="from 0 to 1, got nan"):
        holm([0.5, math.nan])


def test_what_is_reachable_follows_from_the_floors_of_the_whole_family():
    seeds = {"ece": 10, "adaptive_ece": 10, "nll": 10, "brier": 6}  # four seeds of the Brier score were not finite
    ours = {metric: dict.fromkeys(range(count), 0.0) for metric, count in seeds.items()}
    theirs = {metric: {seed: 1.0 + seed / 10 for seed in range(count)} for metric, count in seeds.items()}
    found = {one.metric: one for one in compare(ours, theirs)}
    assert found["brier"].test.floor == 2 / 2**6
    assert found["brier"].p_adjusted == found["brier"].floor_adjusted == 2 / 2**6  # the last step of Holm's: times 1
    assert found["ece"].floor_adjusted == 4 * 2 / 2**10
    assert {one.verdict for one in found.values()} == {"better"}
    assert all(one.reachable for one in found.values())  # though 4 * 2 / 2^6 > 0.05


@pytest.mark.parametrize("count", [3, 5, 6, 8, 9])
def test_a_verdict_other_than_indistinguishable_is_reachable(count):
    found = compare(values(-1, range(count)), values(0, range(count), spread=0.02))
    for one in found:
        assert one.reachable == (4 * 2 / 2**count <= 0.05) == (one.verdict == "better")


def test_of_some_metrics_more_is_better():
    ours, theirs = ({"auroc": {seed: value + seed / 100 for seed in range(8)}} for value in (0.9, 0.5))
    (up,) = compare(ours, theirs, metrics=["auroc"], higher_is_better={"auroc"})
    (down,) = compare(ours, theirs, metrics=["auroc"])
    assert (up.verdict, down.verdict) == ("better", "worse")


@pytest.mark.parametrize("scale", [1e-130, 1.0, 1e100])
def test_an_interval_scales_with_the_differences(scale):
    d = np.array([0.1, 0.2, 0.9, 0.3])
    here, there = bootstrap_ci(d), bootstrap_ci(d * scale)
    assert there.low == pytest.approx(here.low * scale, rel=1e-9)
    assert there.high == pytest.approx(here.high * scale, rel=1e-9)


def test_an_extreme_level_gives_the_extreme_resamples():
    d = np.array([0.0] * 59 + [1.0])
    interval = bootstrap_ci(d, level=1 - 1e-13)
    assert np.isfinite([interval.low, interval.high]).all()
    assert interval.low <= interval.mean <= interval.high
