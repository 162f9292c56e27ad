"""Net benefit, what is flagged, and costs: by definition row after row, by identities, and for bad costs."""

import numpy as np
import pytest
from references.event_calibration import DCURVES
from scipy.special import expit
from scipy.stats import ttest_1samp

from focalcal.metrics import compare_costs, decision_cost, flagged_at, net_benefit

COST = {"fp": 1, "fn": 20}


def sample(rows=400, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(-1.0, 1.2, rows)
    return np.round(expit(x), 2), (generator.random(rows) < expit(0.5 + 0.7 * x)).astype(int)


def by_definition(p, y, threshold, weights):
    """Vickers and Elkin (2006), and `dcurves`: true and false positives per row, exchanged at the odds of t."""
    true = sum(w for q, happened, w in zip(p, y, weights, strict=True) if q >= threshold and happened)
    false = sum(w for q, happened, w in zip(p, y, weights, strict=True) if q >= threshold and not happened)
    return (true - false * threshold / (1 - threshold)) / sum(weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_net_benefit_is_its_definition(weighted):
    p, y = sample()
    weights = np.random.default_rng(1).integers(0, 4, 400) if weighted else np.ones(400)
    thresholds = [0.01, 0.1, 0.25, 0.5, 0.9]
    curve = net_benefit(p, y, thresholds=thresholds, sample_weight=weights)
    expected = [by_definition(p, y, t, weights) for t in thresholds]
    assert curve.net_benefit == pytest.approx(expected, abs=1e-12)
    assert curve.treat_all == pytest.approx([by_definition(p + 1, y, t, weights) for t in thresholds], abs=1e-12)
    assert curve.gain == pytest.approx(curve.net_benefit - np.maximum(curve.treat_all, 0), abs=1e-12)
    for low, value, high in (["low", "net_benefit", "high"], ["gain_low", "gain", "gain_high"]):
        assert (getattr(curve, low) <= getattr(curve, value)).all()
        assert (getattr(curve, value) <= getattr(curve, high)).all()
    assert curve.prevalence == pytest.approx(np.average(y, weights=weights))
    assert len(net_benefit(p, y).frame()["threshold"]) == 99


def test_net_benefit_is_that_of_dcurves():
    """Patients in cells between the thresholds, at the lower of both: a threshold itself is acted on."""
    thresholds, true, false, expected, everyone = map(np.array, zip(*DCURVES, strict=True))
    events, others = (-np.diff([total, *counts, 0]) for total, counts in ((105, true), (645, false)))
    p = np.array([0.0, *thresholds])
    rows, labels = np.concatenate([np.repeat(p, events), np.repeat(p, others)]), np.repeat([1, 0], [105, 645])
    curve = net_benefit(rows, labels, thresholds=thresholds)
    assert curve.net_benefit == pytest.approx(expected, abs=1e-12)
    assert curve.treat_all == pytest.approx(everyone, abs=1e-12)


def test_a_perfect_model_is_worth_the_prevalence_and_a_constant_one_nothing():
    y = np.arange(100) < 20
    perfect = net_benefit(np.where(y, 0.999, 0.001), y)
    assert perfect.net_benefit == pytest.approx(np.full(99, 0.2))
    assert perfect.useful[[0, -1]] == pytest.approx([0.05, 0.83]), "100 rows do not exclude all false alarms"
    constant = net_benefit(np.full(100, 0.2), y)
    assert constant.gain == pytest.approx(np.zeros(99), abs=1e-12)
    assert len(constant.useful) == 0


def test_flagged_are_counts():
    p, y = sample()
    found = flagged_at(p, y, threshold=0.3)
    acted = p >= 0.3
    assert found.flagged.estimate == pytest.approx(acted.mean())
    assert found.precision.estimate == pytest.approx(y[acted].mean())
    assert found.recall.estimate == pytest.approx(acted[y == 1].mean())
    assert found.specificity.estimate == pytest.approx((~acted)[y == 0].mean())
    assert found.recall.low < found.recall.estimate < found.recall.high
    copies = flagged_at(np.repeat(p, 4), np.repeat(y, 4), threshold=0.3, clusters=np.arange(1600) // 4)
    assert (copies.precision.low, copies.precision.high) == pytest.approx((found.precision.low, found.precision.high))
    none = flagged_at(p, y, threshold=0.995)
    assert np.isnan(none.precision.estimate)
    assert (none.recall.estimate, none.recall.low) == (0, 0)


def test_costs_are_those_of_every_row_and_the_best_threshold_is_the_best():
    p, y = sample()
    found = decision_cost(p, y, cost=COST)
    assert found.threshold == pytest.approx(1 / 21)

    def cost_of(threshold):
        return 1000 * np.where(p >= threshold, y == 0, 20 * y).mean()

    assert found.per_1000.estimate == pytest.approx(cost_of(1 / 21))
    every = [cost_of(t) for t in [*np.unique(p), 2.0]]
    assert found.best_per_1000 == pytest.approx(min(every)) == cost_of(found.best_threshold)
    assert found.constant.estimate == pytest.approx(1000 * min((y == 0).mean(), 20 * y.mean()))
    assert found.per_1000.low < found.per_1000.estimate < found.per_1000.high
    matrix = decision_cost(np.stack([1 - p, p], 1), y, cost=[[0, 1], [20, 0]])
    assert matrix.per_1000.estimate == found.per_1000.estimate
    assert found.frame()["decision"][2] == "best threshold on these rows"


def test_three_classes_get_the_decision_of_least_expected_cost():
    generator = np.random.default_rng(0)
    probs = generator.dirichlet(np.ones(3), 200)
    y = (generator.random((200, 1)) > probs.cumsum(1)).sum(1)
    cost = np.array([[0, 1, 5], [2, 0, 2], [9, 4, 0]])
    rows = [cost[label, min(range(3), key=lambda d, q=q: q @ cost[:, d])] for q, label in zip(probs, y, strict=True)]
    found = decision_cost(probs, y, cost=cost)
    assert found.per_1000.estimate == pytest.approx(1000 * np.mean(rows))
    assert found.threshold is found.best_threshold is None
    one = decision_cost(probs, y, cost=COST, positive=2)
    assert one.per_1000.estimate == pytest.approx(decision_cost(probs[:, 2], y == 2, cost=COST).per_1000.estimate)


def test_calibration_is_judged_on_the_same_rows():
    generator = np.random.default_rng(0)
    x = generator.normal(-3.0, 1.0, 3000)
    y = generator.random(3000) < expit(1.5 + x)
    before, after = decision_cost(expit(x), y, cost=COST), decision_cost(expit(1.5 + x), y, cost=COST)
    change = compare_costs(before, after)
    assert change.estimate == pytest.approx(after.per_1000.estimate - before.per_1000.estimate)
    assert change.high < 0
    ends = ttest_1samp(after.row_costs - before.row_costs, 0).confidence_interval()
    assert (change.low, change.high) == pytest.approx((1000 * ends.low, 1000 * ends.high), rel=0.05)
    same = compare_costs(before, before)
    assert (same.estimate, same.low, same.high) == (0, 0, 0)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ({"fp": -1, "fn": 2}, "cost must be finite and >= 0, got -1.0"),
        ({"fp": 1}, "cost must have fp and fn, and may have tp and tn, got {'fp': 1}"),
        ({"fp": 1, "fn": 2, "fx": 1}, "cost must have fp and fn"),
        ({"fp": 0, "fn": 2}, "cost must be larger for a mistake than for being right, got tn 0, fp 0, fn 2, tp 0"),
        ([[0, 1, 2]], r"or a matrix \(K, K\), got shape \(1, 3\)"),
        (np.ones((3, 3)), r"cost must be \(2, 2\) for 2 classes, got \(3, 3\)"),
        ({"fp": 1, "fn": float("nan")}, "cost must be finite"),
    ],
)
def test_costs_that_make_no_sense(cost, message):
    with pytest.raises(ValueError, match=message):
        decision_cost(*sample(50), cost=cost)


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.1])
def test_thresholds_lie_between(threshold):
    with pytest.raises(ValueError, match="thresholds must be between 0 and 1"):
        net_benefit(*sample(50), thresholds=[0.5, threshold])
    with pytest.raises(ValueError, match="thresholds must hold at least one, got none"):
        net_benefit(*sample(50), thresholds=[])
    with pytest.raises(ValueError, match="threshold must be between 0 and 1"):
        flagged_at(*sample(50), threshold=threshold)
