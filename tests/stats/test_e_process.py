"""E-values of calibration: their expectations, computed exactly, and what follows for wealth over time."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from focalcal.stats.e_process import (
    DISCOUNTS,
    BinnedSums,
    Gaps,
    Wealth,
    calibrated,
    central_range,
    change_weights,
    excess,
    fixed_bets,
    gap_bounds,
    in_proportion,
    learned_bets,
    log_e_values,
    stakes,
)

CENTRES = np.linspace(-4, 4, 10)
shares = st.floats(0.01, 0.99)


def one_bin(p, y):
    p, y = np.asarray(p, float), np.asarray(y, float)
    return BinnedSums(*(np.array([values.sum()]) for values in (np.ones_like(p), p, p * p, y)))


@settings(max_examples=30)
@given(p=st.lists(shares, min_size=1, max_size=7), theta=st.floats(-1, 1))
def test_the_mean_over_all_outcomes_is_at_most_one_and_one_for_equal_scores(p, theta):
    mean = 0.0
    for y in itertools.product((0, 1), repeat=len(p)):
        chance = np.prod(np.where(y, p, 1 - np.array(p)))
        e = np.exp(log_e_values(np.array([[theta]]), one_bin(p, y), calibrated(1)))[0]
        mean += chance * e
        rows = np.exp(theta * np.array(y)) / (1 + np.array(p) * np.expm1(theta))
        assert e <= np.prod(rows) * (1 + 1e-9)  # the bound from sums gives away what the scores differ in
    assert mean <= 1 + 1e-9
    same = [
        binom.pmf(k, 9, p[0])
        * np.exp(log_e_values(np.array([[theta]]), one_bin([p[0]] * 9, [1] * k + [0] * (9 - k)), calibrated(1)))[0]
        for k in range(10)
    ]
    assert sum(same) == pytest.approx(1, abs=1e-9)


@given(p=shares, low=st.floats(-0.3, 0), high=st.floats(0, 0.3), at=st.floats(0, 1), theta=st.floats(-1, 1))
def test_any_rate_within_the_gaps_has_a_mean_of_at_most_one(p, low, high, at, theta):
    rate = np.clip(p + low + at * (high - low), 0, 1)
    gaps = Gaps(np.array([low]), np.array([high]))
    mean = sum(
        binom.pmf(k, 12, rate)
        * np.exp(log_e_values(np.array([[theta]]), one_bin([p] * 12, [1] * k + [0] * (12 - k)), gaps)[0])
        for k in range(13)
    )
    assert mean <= 1 + 1e-9


@pytest.mark.parametrize("rate", [0.001, 0.03, 0.5, 0.98])
@pytest.mark.parametrize("rows", [1, 20, 400])
def test_the_bounds_of_a_baseline_miss_the_rate_no_more_often_than_they_say(rate, rows):
    missed = 0.0
    for k in range(rows + 1):
        bounds = gap_bounds(one_bin([0.4] * rows, [1] * k + [0] * (rows - k)), 0.05)
        assert bounds.lower[0] - 1e-12 <= k / rows - 0.4 <= bounds.upper[0] + 1e-12
        missed += binom.pmf(k, rows, rate) * (not bounds.lower[0] <= rate - 0.4 <= bounds.upper[0])
    assert missed <= 0.05


@settings(max_examples=30)
@given(st.floats(0.1, 0.9), st.integers(1, 6), st.integers(1, 6), st.floats(-0.8, 0.8))
def test_a_bet_on_all_rows_in_given_proportions_has_a_mean_of_at_most_one(share, first, second, theta):
    """Two bins with gaps of their own, whose mean in these proportions is what is allowed of the whole."""
    shares, scores, rates = np.array([share, 1 - share]), np.array([0.3, 0.7]), np.array([0.4, 0.55])
    allowed = Gaps(*[np.array([(shares * (rates - scores)).sum()])] * 2)
    mean, rows = 0.0, np.array([first, second], float)
    for a, b in itertools.product(range(first + 1), range(second + 1)):
        sums = BinnedSums(rows, rows * scores, rows * scores**2, np.array([a, b], float))
        whole = in_proportion(sums, shares)
        assert (whole.rows <= rows.sum() + 1e-9).all()
        e = np.exp(log_e_values(np.array([[theta]]), whole, allowed)[0])
        mean += binom.pmf(a, first, rates[0]) * binom.pmf(b, second, rates[1]) * e
    assert mean <= 1 + 1e-9


def test_a_bin_without_rows_in_the_baseline_may_have_any_gap():
    bounds = gap_bounds(BinnedSums(*np.zeros((4, 3))), 0.05)
    np.testing.assert_array_equal([bounds.lower, bounds.upper], [[-1] * 3, [1] * 3])


def test_wealth_is_a_martingale_and_the_detector_grows_by_one_per_step():
    e = np.array([[1.6, 0.4], [0.7, 1.3]])  # of heads, of tails: means of 1 over a fair coin, for two bets
    process = detector = 0.0
    for path in itertools.product((0, 1), repeat=6):
        wealth = Wealth(np.array([0.3, 0.7]))
        for coin in path:
            wealth.add(np.log([1.6, 1.3] if coin else [0.4, 0.7]))
        process, detector = process + np.exp(wealth.process) / 64, detector + np.exp(wealth.detector) / 64
    assert e.mean(1).tolist() == [1.0, 1.0]
    assert process == pytest.approx(1)
    assert detector == pytest.approx(6)


def test_stakes_sum_to_one_for_as_many_bets_as_there_are():
    learned = learned_bets([BinnedSums(*np.zeros((4, 10)))] * len(DISCOUNTS), calibrated(10), CENTRES)
    assert len(stakes()) == len(fixed_bets(CENTRES)) + len(learned)
    assert stakes().sum() == pytest.approx(1)
    assert not learned.any()  # nothing known, nothing staked


def test_what_is_learned_points_where_outcomes_are():
    rows = np.full(10, 4000.0)
    p = 1 / (1 + np.exp(-CENTRES))
    happened = rows / (1 + np.exp(-0.8 * CENTRES))  # too sure
    shifts, line = learned_bets([BinnedSums(rows, rows * p, rows * p * p, happened)], calibrated(10), CENTRES)
    assert np.abs(shifts - (-0.2 * CENTRES))[2:-2].max() < 0.07
    assert np.corrcoef(line, -CENTRES)[0, 1] > 0.999
    beyond, _ = excess(BinnedSums(rows, rows * p, rows * p * p, happened), calibrated(10, 1.0))
    assert not beyond.any()


def test_the_weights_of_a_change_are_its_posterior():
    draws = np.random.default_rng(0)
    log_e, prior = draws.normal(size=(5, 3)), np.array([0.2, 0.3, 0.5])
    likelihoods = [(prior * np.exp(log_e[j:].sum(0))).sum() for j in range(5)]
    np.testing.assert_allclose(change_weights(log_e, prior), likelihoods / np.sum(likelihoods))
    assert central_range(np.array([0.01, 0.01, 0.9, 0.07, 0.01])) == (2, 3)
    assert central_range(np.array([1.0, 0.0])) == (0, 0)


def test_few_of_many_calibrated_streams_ever_raise_an_alarm_and_drifting_ones_do():
    """500 streams of 40 looks at 50 rows each; then 2 more looks at rows that are 10 points off."""
    draws, bins = np.random.default_rng(1), 10
    fixed, gaps = fixed_bets(CENTRES), calibrated(bins)
    wealth, most = Wealth(stakes()), np.zeros(500)
    known = np.zeros((len(DISCOUNTS), 4, 500, bins))
    for look in range(52):
        if look == 40:
            assert (most >= np.log(20)).mean() <= 0.05
        p = draws.random((500, 50))
        y = draws.random((500, 50)) < p - 0.1 * (look >= 40)
        cells = np.floor(p * bins).astype(int) + bins * np.arange(500)[:, None]
        terms = (None, p.ravel(), p.ravel() ** 2, y.ravel())
        sums = np.array([np.bincount(cells.ravel(), each, minlength=500 * bins).reshape(500, bins) for each in terms])
        learned = learned_bets([BinnedSums(*each) for each in known], gaps, CENTRES)
        log_e = [log_e_values(bets, BinnedSums(*sums), gaps) for bets in (fixed, learned)]
        wealth.add(np.concatenate(log_e, -1))
        most = np.maximum(most, wealth.process)
        known = np.array(DISCOUNTS)[:, None, None, None] * known + sums
    assert (most >= np.log(20)).mean() > 0.7
