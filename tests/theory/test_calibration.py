"""Population calibration by hand, in rational arithmetic, against the sample metrics, and the paper's inequalities."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import population as exact
from support.populations import BY_HAND, fractions, grids, populations, shares

from focalcal import metrics
from focalcal.theory.calibration import (
    best_score_map,
    calibration_chain,
    ece_chain,
    exact_cal2,
    expected_brier,
    murphy_population,
    population_ece,
    posthoc_headroom,
)


def test_by_hand():
    # S = .7: probability 3/4, E[Z|S] = (.5 * .6 + .25 * .8) / .75 = 2/3, gap 1/30. S = .5: 1/4, E[Z|S] = 1/4, gap 1/4.
    # Cal2^2 = .75 / 900 + .25 / 16 = 4/4800 + 75/4800.
    assert exact_cal2(*BY_HAND) == pytest.approx(79 / 4800, rel=1e-14, abs=0)
    chain = calibration_chain(*BY_HAND)
    assert chain.cal2 == pytest.approx(79 / 4800, rel=1e-14, abs=0)
    # .5 * .1^2 + .25 * .1^2 + .25 * .25^2; |p - eta|^2 = .02, .02, .125.
    assert chain.confidence_error == pytest.approx(0.023125, rel=1e-14, abs=0)
    assert chain.posterior_error == pytest.approx(0.04625, rel=1e-14, abs=0)
    assert chain.tight is False  # S = .7 goes with .6 and .8
    # .7 lies in (10/15, 11/15], .5 in (7/15, 8/15]: .75 / 30 + .25 * .25.
    found = ece_chain(*BY_HAND)
    assert found.ece == pytest.approx(0.0875, rel=1e-14, abs=0)
    assert population_ece(*BY_HAND) == pytest.approx(0.0875, rel=1e-14, abs=0)
    assert found.confidence_distance == pytest.approx(0.05 + 0.025 + 0.0625, rel=1e-14, abs=0)
    assert found.posterior_distance == pytest.approx(0.75 * math.sqrt(0.02) + 0.25 * math.sqrt(0.125), rel=1e-14, abs=0)
    # E(Z - S)^2 = .5 (.6 * .09 + .4 * .49) + .25 (.8 * .09 + .2 * .49) + .25 * .25 = .23; .75 * 2/9 + .25 * 3/16.
    murphy = murphy_population(*BY_HAND)
    assert murphy.brier == pytest.approx(0.23, rel=1e-14, abs=0)
    assert murphy.calibration == pytest.approx(79 / 4800, rel=1e-14, abs=0)
    assert murphy.refinement == pytest.approx(1 / 6 + 3 / 64, rel=1e-14, abs=0)
    best = best_score_map(*BY_HAND)
    assert best.confidence.tolist() == [0.5, 0.7]
    assert best.accuracy.tolist() == pytest.approx([0.25, 2 / 3], rel=1e-14, abs=0)
    assert best.weight.tolist() == [0.25, 0.75]
    # .04625 + .5 * .54 + .25 * .34 + .25 * .625
    assert expected_brier(*BY_HAND) == pytest.approx(0.5575, rel=1e-14, abs=0)


@given(counts=grids(), bins=st.sampled_from([1, 4, 15, 30]))
def test_rational_arithmetic(counts, bins):
    floats, rationals = [shares(c) for c in counts], [fractions(c) for c in counts]
    murphy = murphy_population(*floats)
    for value, reference in [
        (exact_cal2(*floats), exact.cal2(*rationals)),
        (population_ece(*floats, n_bins=bins), exact.ece(*rationals, bins)),
        (murphy.brier, exact.score_brier(*rationals)),
        (murphy.refinement, exact.refinement(*rationals)),
        (expected_brier(*floats), exact.class_brier(*rationals)),
    ]:
        assert value == pytest.approx(float(reference), rel=1e-12, abs=1e-15)


@given(population=populations())
def test_chains(population):
    chain, ece = calibration_chain(*population), ece_chain(*population)
    room = 1e-15
    assert 0 <= chain.cal2 <= chain.confidence_error + room
    assert chain.confidence_error <= chain.posterior_error + room
    assert (chain.confidence_error - chain.cal2 <= room) == chain.tight
    assert 0 <= ece.ece <= ece.confidence_distance + room
    assert ece.confidence_distance <= ece.posterior_distance + room
    assert ece.ece <= math.sqrt(chain.confidence_error) + room  # Jensen
    murphy = murphy_population(*population)
    assert murphy.brier == pytest.approx(murphy.calibration + murphy.refinement, rel=1e-13, abs=room)
    for same in (murphy.calibration, posthoc_headroom(*population), exact_cal2(*population)):
        assert same == pytest.approx(chain.cal2, rel=1e-13, abs=room)


@given(counts=grids(), bins=st.sampled_from([1, 7, 15]))
def test_metrics_of_a_sample_with_just_these_frequencies(counts, bins):
    probs, eta, weights = counts
    times = 20 * weights[:, None] * eta
    rows = np.repeat(np.arange(len(probs)), times.sum(1))
    labels = np.concatenate([np.repeat(np.arange(eta.shape[1]), row) for row in times])
    sample, population = shares(probs)[rows], [shares(c) for c in counts]
    assert population_ece(*population, n_bins=bins) == pytest.approx(
        metrics.ece(sample, labels, n_bins=bins), abs=1e-13
    )
    assert expected_brier(*population) == pytest.approx(metrics.brier(sample, labels), abs=1e-13)
    # Bins as fine as the grid: one confidence per bin.
    ours, theirs = murphy_population(*population), metrics.murphy(sample, labels, n_bins=int(probs[0].sum()))
    assert ours.brier == pytest.approx(theirs.brier, abs=1e-13)
    assert ours.calibration == pytest.approx(theirs.calibration, abs=1e-13)
    assert ours.refinement == pytest.approx(theirs.refinement, abs=1e-13)


def test_edges():
    assert population_ece(*BY_HAND, edges=[0, 0.6, 1]) == pytest.approx(0.0875)
    overconfident = np.array([[0.7, 0.3], [0.6, 0.4]]), np.array([[0.5, 0.5], [0.9, 0.1]])  # gaps .2 and -.3
    assert population_ece(*overconfident, edges=[0, 1]) == pytest.approx(0.05)
    assert population_ece(*overconfident, n_bins=1) == pytest.approx(0.05)
    assert population_ece(*overconfident, edges=[0, 0.6, 1]) == pytest.approx(0.25)  # .6 closes its bin
    assert population_ece(*overconfident, edges=[0, np.nextafter(0.6, 0), 1]) == pytest.approx(0.05)
    assert population_ece(*overconfident, edges=[0.2, 0.65, 0.68]) == pytest.approx(0.25)  # .7 goes to the nearest
    assert population_ece(*overconfident) == pytest.approx(population_ece(*overconfident, edges=torch.arange(16) / 15))


@given(population=populations(), seed=st.integers(0, 99))
def test_no_map_of_the_score_gains_more_than_the_headroom(population, seed):
    probs, eta, weights = population
    own = eta[np.arange(len(eta)), probs.argmax(1)]
    score = probs.max(1)

    def brier(mapped):
        return (weights * (own * (1 - mapped) ** 2 + (1 - own) * mapped**2)).sum()

    best = best_score_map(*population)
    assert brier(score) - brier(best(score)) == pytest.approx(posthoc_headroom(*population), abs=1e-14)
    values = np.random.default_rng(seed).random(len(score) + 1)
    other = values[np.unique(score, return_inverse=True)[1]]
    distance = (weights * (other - best(score)) ** 2).sum()
    assert brier(other) - brier(best(score)) == pytest.approx(distance, abs=1e-13)


def test_the_map_between_confidences():
    best = best_score_map(*BY_HAND)
    low, high = best.accuracy
    assert best([[0.0, 0.5], [0.6, 0.7], [0.9, 1.0]]).tolist() == [[low, low], [low, high], [high, high]]
    assert best(torch.tensor(0.6, requires_grad=True)) == low
    with pytest.raises(ValueError, match="confidence must be numbers, got nan; find out where it comes from"):
        best([0.5, np.nan])
