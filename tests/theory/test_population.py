"""What a population is: which states are one, which do not count, which digits are kept, what is refused."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from support.populations import BY_HAND, ETA, PROBS, WEIGHTS, grids, shares, spreads

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


def numbers(population, **options):
    """Every figure of a population, and the maps' values in order."""
    chain, ece = calibration_chain(*population, **options), ece_chain(*population)
    murphy = murphy_population(*population, **options)
    return [
        exact_cal2(*population, **options), chain.cal2, chain.confidence_error, chain.posterior_error,
        population_ece(*population), ece.ece, ece.confidence_distance, ece.posterior_distance,
        murphy.brier, murphy.calibration, murphy.refinement, posthoc_headroom(*population, **options),
        expected_brier(*population), *best_score_map(*population, **options).accuracy,
    ]  # fmt: skip


@given(population=spreads(), seed=st.integers(0, 1000))
def test_order_of_states(population, seed):
    order = np.random.default_rng(seed).permutation(len(population[0]))
    moved = [part[order] for part in population]
    assert numbers(moved) == pytest.approx(numbers(population), rel=1e-12, abs=1e-16)


@given(counts=grids(), at=st.integers(0, 11))
def test_a_state_in_two_halves(counts, at):
    probs, eta, weights = [shares(c) for c in counts]
    at %= len(probs)
    halved = np.append(weights, weights[at] / 2)
    halved[at] /= 2
    split = [np.vstack([probs, probs[at]]), np.vstack([eta, eta[at]]), halved]
    assert numbers(split) == pytest.approx(numbers([probs, eta, weights]), rel=1e-12, abs=1e-16)


@given(population=spreads(), seed=st.integers(0, 1000))
def test_names_of_classes(population, seed):
    probs, eta, weights = population
    ordered = np.sort(probs, axis=1)
    assume((ordered[:, -1] > ordered[:, -2]).all())  # of equal ones the first is predicted
    order = np.random.default_rng(seed).permutation(probs.shape[1])
    renamed = [probs[:, order], eta[:, order], weights]
    assert numbers(renamed) == pytest.approx(numbers(population), rel=1e-12, abs=1e-16)


def test_the_first_of_equal_classes_is_predicted():
    assert exact_cal2([[0.5, 0.5]], [[0.5, 0.5]]) == 0
    assert exact_cal2([[0.5, 0.5]], [[0.9, 0.1]]) == pytest.approx(0.16)
    assert best_score_map([[0.5, 0.5]], [[0.9, 0.1]]).accuracy.tolist() == [0.9]
    assert best_score_map([[0.5, 0.5]], [[0.1, 0.9]]).accuracy.tolist() == [0.1]


def test_a_state_that_never_occurs():
    base = numbers(BY_HAND)
    for top in (1.0, 0.7 - 9e-13, 0.7 + 9e-13):  # also where it would join others, or be the first of them
        probs = np.vstack([[top, 1 - top, 0.0], PROBS])
        assert numbers((probs, np.vstack([[0.0, 0.0, 1.0], ETA]), [0, *WEIGHTS])) == base


def test_confidences_apart_by_rounding_are_one():
    probs = PROBS.copy()
    probs[1] += [0, 3e-16, -3e-16]
    assert probs[1, 1] != probs[0, 0]
    assert exact_cal2(probs, ETA, WEIGHTS) == pytest.approx(79 / 4800, rel=1e-12, abs=0)
    assert exact_cal2(probs, ETA, WEIGHTS, tolerance=0) == pytest.approx(0.023125, rel=1e-12, abs=0)
    assert calibration_chain(probs, ETA, WEIGHTS, tolerance=0).tight is True


@pytest.mark.parametrize("seed", range(5))
def test_permuted_posteriors_are_one_group(seed):
    generator = np.random.default_rng(seed)
    logits, eta = np.tile(generator.normal(size=7), (20, 1)), generator.dirichlet(np.ones(7), size=20)
    probs = torch.from_numpy(generator.permuted(logits, axis=1)).softmax(1)
    assert len(best_score_map(probs, eta).confidence) == 1
    gap = float(probs.max()) - eta[np.arange(20), probs.argmax(1)].mean()
    assert exact_cal2(probs, eta) == pytest.approx(gap**2, rel=1e-11, abs=0)


def test_a_chain_of_neighbours_does_not_drift():
    top = 0.6 + 0.7e-3 * np.arange(7)  # each within 1e-3 of the next, the ends 4.2e-3 apart
    probs = np.stack([top, 1 - top], 1)
    found = best_score_map(probs, probs, tolerance=1e-3)
    assert found.confidence.tolist() == top[::2].tolist()  # pairs, and the last alone
    assert found.weight.tolist() == pytest.approx([2 / 7, 2 / 7, 2 / 7, 1 / 7])


def test_tight_where_accuracy_follows_from_confidence():
    probs = [[0.6, 0.4, 0.0], [0.0, 0.4, 0.6], [0.1, 0.8, 0.1]]
    eta = [[0.5, 0.2, 0.3], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
    chain = calibration_chain(probs, eta, [0.2, 0.3, 0.5])
    assert chain.tight is True
    assert chain.cal2 == pytest.approx(chain.confidence_error, rel=1e-14, abs=0)
    assert calibration_chain(probs, eta[1:] + eta[:1], [0.2, 0.3, 0.5]).tight is False


@pytest.mark.parametrize("size", [1e-6, 1e-10, 1e-14, 1e-20])
def test_a_displacement_keeps_its_digits(size):
    generator = np.random.default_rng(0)
    eta = generator.dirichlet(np.ones(4), size=40)
    displacement = size * generator.normal(size=eta.shape)
    displacement -= displacement.mean(1, keepdims=True)
    probs = eta + displacement
    at = np.arange(40), probs.argmax(1)
    expected = sum(Fraction(float(d)) ** 2 for d in displacement[at]) / 40
    found = exact_cal2(probs, eta, displacement=displacement, tolerance=0)
    chain = calibration_chain(probs, eta, displacement=displacement, tolerance=0)
    headroom = posthoc_headroom(probs, eta, displacement=displacement, tolerance=0)
    for same in (found, chain.cal2, headroom):
        assert same == pytest.approx(float(expected), rel=1e-14, abs=0)
    without = exact_cal2(probs, eta, tolerance=0)
    assert (without == pytest.approx(found, rel=1e-3, abs=0)) == (size > 1e-13)  # the subtraction is good to 1e-16
    assert chain.confidence_error == pytest.approx(float(expected), rel=1e-14, abs=0)
    assert chain.posterior_error == pytest.approx((displacement**2).sum(1).mean(), rel=1e-14, abs=0)
    assert ece_chain(probs, eta, displacement=displacement).confidence_distance == pytest.approx(
        np.abs(displacement[at]).mean(), rel=1e-14, abs=0
    )
    edges = [0.0, *(np.sort(probs[at])[:-1] + np.diff(np.sort(probs[at])) / 2), 1.0]  # one state per bin
    assert population_ece(probs, eta, edges=edges, displacement=displacement) == pytest.approx(
        np.abs(displacement[at]).mean(), rel=1e-14, abs=0
    )
    mapped = best_score_map(probs, eta, displacement=displacement, tolerance=0)
    assert mapped.accuracy.tolist() == best_score_map(probs, eta, tolerance=0).accuracy.tolist()
