"""What the best map of the scores would gain, against exact values on populations whose posterior is known."""

from fractions import Fraction

import numpy as np
import pytest
from references.population import proper_parts

from focalcal import headroom
from focalcal.metrics import brier, nll

FEW = ["temperature", "vector", "ensemble"]


def population(factor, merged=False):
    """Twelve states of three classes: posteriors, weights, and scores p that are eta^factor, normalised; with `merged`
    two states have one score.
    """
    rng = np.random.default_rng(3)
    eta = np.round(rng.dirichlet([0.8] * 3, size=12), 3).clip(0.01)
    weights = [Fraction(k + 1, 78) for k in range(12)]
    probs = eta**factor
    if merged:
        probs[1] = probs[0]
    probs /= probs.sum(1, keepdims=True)
    exact_eta = [[Fraction(v).limit_denominator(10**6) for v in row] for row in eta]
    exact_eta = [[v / sum(row) for v in row] for row in exact_eta]
    exact_probs = [[Fraction(v) for v in row] for row in probs]
    return exact_probs, exact_eta, weights


def sample(exact, n=10_000, seed=0):
    probs, eta, weights = (np.array(part, dtype=float) for part in exact)
    rng = np.random.default_rng(seed)
    state = rng.choice(12, size=n, p=weights)
    labels = (rng.random((n, 1)) > eta[state].cumsum(1)).sum(1).clip(max=2)
    return probs[state], labels


@pytest.mark.parametrize(("score", "factor"), [("nll", 2.5), ("brier", 0.5)])
def test_a_distortion_that_a_candidate_undoes(score, factor):
    """The scores are a power of the posterior: both parts are found, and the direction."""
    exact = population(factor)
    refinement, calibration = proper_parts(*exact)[score]
    probs, labels = sample(exact)
    found = headroom(probs=probs, labels=labels, score=score, candidates=FEW)
    assert found.calibration.low < calibration < found.calibration.high
    assert found.refinement == pytest.approx(refinement, abs=0.02)
    assert found.total == pytest.approx((nll if score == "nll" else brier)(probs, labels))
    larger = found.over if factor > 1 else found.under
    assert larger.gain > 0.95 * found.calibration.mean
    assert larger.low > 0


def test_states_that_share_a_score():
    """What the scores do not tell apart is refinement: E[Y | s] is the mean of the two posteriors."""
    exact = population(2.0, merged=True)
    refinement, calibration = proper_parts(*exact)["nll"]
    assert refinement > proper_parts(*population(2.0))["nll"][0]
    probs, labels = sample(exact)
    found = headroom(probs=probs, labels=labels, candidates=FEW)
    assert found.calibration.low < calibration
    assert found.total == pytest.approx(refinement + calibration, abs=0.03)


def test_never_positive_by_fitting_noise():
    """Calibrated scores, few rows: on average nothing is gained, whatever is tried."""
    exact = population(1)
    gains = [
        headroom(probs=p, labels=y, candidates=["temperature", "vector", "matrix"]).calibration.mean
        for p, y in (sample(exact, 200, seed) for seed in range(12))
    ]
    assert np.mean(gains) < 0.002
    assert np.mean(gains) > -0.02, "the scores as they are are a candidate, too"


def test_a_lower_bound():
    """Scores turned by a map that no candidate comes near: part of the calibration error is found, never more."""
    exact = population(1)
    turned = [[row[1], row[2], row[0]] if at % 2 else row for at, row in enumerate(exact[0])]
    exact = (turned, *exact[1:])
    _, calibration = proper_parts(*exact)["nll"]
    probs, labels = sample(exact)
    found = headroom(probs=probs, labels=labels, candidates=["temperature"])
    assert 0 < found.calibration.high < calibration


def test_parts_add_up_and_show_themselves():
    probs, labels = sample(population(2.0), 2000)
    found = headroom(probs=probs, labels=labels, candidates=FEW)
    assert found.total == pytest.approx(found.refinement + found.calibration.mean)
    assert found.over.gain + found.under.gain == pytest.approx(found.calibration.mean)
    assert sum(part.gain for part in found.classes) == pytest.approx(found.calibration.mean)
    assert sum(part.rows for part in found.classes) == 2000
    assert sum(found.maps.values()) == 5
    assert found.frame()["part"][:3] == ["all", "over-confident", "under-confident"]
    assert found.sentence in str(found)
    assert found.as_dict()["calibration"] == found.calibration.mean


def test_weights_and_groups():
    probs, labels = sample(population(2.0), 600)
    twice = headroom(probs=probs, labels=labels, sample_weight=np.full(600, 2.0), candidates=FEW)
    once = headroom(probs=probs, labels=labels, candidates=FEW)
    assert twice.calibration.mean == pytest.approx(once.calibration.mean, abs=1e-9)
    ten = np.repeat(np.arange(600), 10)
    together = headroom(probs=probs[ten], labels=labels[ten], groups=ten, candidates=FEW).calibration
    alone = headroom(probs=probs[ten], labels=labels[ten], candidates=FEW).calibration
    assert together.high - together.low > 2 * (alone.high - alone.low)
