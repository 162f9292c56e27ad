"""Conformal sets: the scores' formula, the promise of coverage, and what is refused."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from focalcal.posthoc import CalibrationWarning, ConformalSets, TemperatureScaling


def sample(rows, classes=6, *, seed=0, temperature=1.0):
    """Logits, and labels drawn from softmax(logits / temperature)."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(rows, classes))
    return logits, np.argmax(logits / temperature + rng.gumbel(size=logits.shape), axis=1)


def score_by_hand(row, label, u, *, penalty=0.0, free_ranks=1):
    probs = np.exp(row) / np.exp(row).sum()
    order = sorted(range(len(row)), key=lambda k: (-probs[k], k))
    rank = order.index(label)
    return sum(probs[k] for k in order[:rank]) + u * probs[label] + penalty * max(0, rank + 1 - free_ranks)


@given(st.integers(0, 1000), st.floats(0.05, 0.5), st.sampled_from([0.0, 0.05, 1.0]), st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_sets_are_those_of_the_formula(seed, alpha, penalty, free_ranks):
    logits, labels = sample(40, seed=seed)
    arguments = {"penalty": penalty, "free_ranks": free_ranks}
    sets = ConformalSets(alpha, randomized=False, allow_empty=True, **arguments).fit(logits, labels)
    scores = sorted(score_by_hand(row, label, 1.0, **arguments) for row, label in zip(logits, labels, strict=True))
    assert sets.threshold_ == pytest.approx(scores[math.ceil(41 * (1 - alpha) - 1e-9) - 1], abs=1e-12)

    new, _ = sample(20, seed=seed + 1)
    u = np.random.default_rng(seed).random(20)
    by_hand = np.array(
        [[score_by_hand(row, k, v, **arguments) for k in range(6)] for row, v in zip(new, u, strict=True)]
    )
    clear = abs(by_hand - sets.threshold_) > 1e-12  # of the others rounding decides
    np.testing.assert_array_equal(sets.predict(new, u=u)[clear], (by_hand <= sets.threshold_)[clear])


@pytest.mark.parametrize("penalty", [0.0, 0.1])
@pytest.mark.parametrize("temperature", [1.0, 2.5])  # the promise does not ask for calibrated probabilities
def test_coverage_is_what_was_promised(penalty, temperature):
    n, draws, alpha = 99, 150, 0.1
    covered = []
    for seed in range(draws):
        logits, labels = sample(n + 100, seed=seed, temperature=temperature)
        sets = ConformalSets(alpha, penalty=penalty, allow_empty=True, seed=seed).fit(logits[:n], labels[:n])
        covered.append(sets.evaluate(logits[n:], labels[n:]).coverage)
    error = np.std(covered) / math.sqrt(draws)
    assert 1 - alpha - 4 * error <= np.mean(covered) <= 1 - alpha + 1 / (n + 1) + 4 * error


def test_no_set_is_empty_unless_allowed():
    logits, labels = sample(400, temperature=0.5)  # nearly always right: the threshold lies below many p_(1)
    filled, bare = (ConformalSets(0.4, allow_empty=allow).fit(logits, labels) for allow in (False, True))
    sizes = bare.predict(logits).sum(1)
    assert (sizes == 0).any()
    sets = filled.predict(logits)
    assert (sets.sum(1) == np.maximum(sizes, 1)).all()
    empty = sizes == 0
    assert (sets[empty].argmax(1) == logits[empty].argmax(1)).all()


def test_calibrated_probabilities_tensors_and_clones():
    logits, labels = sample(300, temperature=2.0)
    probs = TemperatureScaling().fit(logits[:100], labels[:100]).predict_proba(logits)
    sets = ConformalSets(0.2).fit(probs=probs[100:200], labels=labels[100:200])
    as_array = sets.predict(probs=probs[200:])
    as_tensor = sets.predict(probs=torch.from_numpy(probs[200:]))
    assert isinstance(as_tensor, torch.Tensor)
    np.testing.assert_array_equal(as_array, as_tensor.numpy())
    again = clone(sets).fit(probs=probs[100:200], labels=labels[100:200])
    assert again.threshold_ == sets.threshold_
    report = sets.evaluate(probs=probs[200:], labels=labels[200:])
    assert report.mean_size == pytest.approx(as_array.sum(1).mean())
    assert report.low < report.coverage < report.high
    assert sum(rows for rows, _ in report.by_size.values()) == 100


def test_the_smallest_sets_are_a_threshold_on_the_probability():
    logits, labels = sample(1000, temperature=1.5)
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    sets = ConformalSets(0.2, score="lac", allow_empty=True).fit(logits[:500], labels[:500])
    least = np.sort(probs[np.arange(500), labels[:500]])[500 - math.ceil(501 * 0.8 - 1e-9)]
    assert 1 - sets.threshold_ == pytest.approx(least)
    clear = abs(probs[500:] - least) > 1e-12
    np.testing.assert_array_equal(sets.predict(logits[500:])[clear], (probs[500:] >= least)[clear])
    adaptive = ConformalSets(0.2).fit(logits[:500], labels[:500])
    smallest = sets.evaluate(logits[500:], labels[500:])
    assert smallest.mean_size < adaptive.evaluate(logits[500:], labels[500:]).mean_size


def hard_and_easy(rows, seed):
    """Logits and labels: of group "hard" and of class 0 the labels are drawn at a higher temperature."""
    draws = np.random.default_rng(seed)
    logits, groups = 2 * draws.normal(size=(rows, 4)), np.where(draws.random(rows) < 0.3, "hard", "easy")
    temperature = np.where(groups == "hard", 4.0, 1.0)[:, None]
    return logits, np.argmax(logits / temperature + draws.gumbel(size=logits.shape), 1), groups


@pytest.mark.parametrize("score", ["aps", "lac"])
@pytest.mark.parametrize("mondrian", ["class", "group"])
def test_every_part_is_covered_as_promised(mondrian, score):
    (logits, labels, groups), (new, truth, sites) = hard_and_easy(4000, 0), hard_and_easy(20_000, 1)
    common = ConformalSets(0.1, score=score).fit(logits, labels)
    sets = ConformalSets(0.1, score=score, mondrian=mondrian, allow_empty=True).fit(logits, labels, groups=groups)
    report = sets.evaluate(new, truth, groups=sites)
    parts = report.by_class if mondrian == "class" else report.by_group
    assert all(abs(part.coverage - 0.9) < 0.03 for part in parts.values())
    assert sum(part.rows for part in parts.values()) == 20_000
    if mondrian == "group":
        assert common.evaluate(new, truth, groups=sites).by_group["hard"].coverage < 0.85
        assert parts["hard"].mean_size > parts["easy"].mean_size
    assert sum(report.parts()["rows"]) == 2 * 20_000  # classes, then groups
    assert "least in class" in str(report)
    assert "least in group" in str(report)


def test_a_group_of_its_own_is_a_fit_of_its_own():
    logits, labels, groups = hard_and_easy(900, 0)
    whole = ConformalSets(0.1, mondrian="group", randomized=False).fit(logits, labels, groups=groups)
    for name in ("hard", "easy"):
        rows = groups == name
        alone = ConformalSets(0.1, randomized=False).fit(logits[rows], labels[rows])
        assert whole.group_thresholds_[name] == alone.threshold_
        np.testing.assert_array_equal(whole.predict(logits[rows], groups=groups[rows]), alone.predict(logits[rows]))


def test_parts_with_few_rows_and_unknown_groups_are_said():
    logits, labels, groups = hard_and_easy(300, 0)
    few = np.where(np.arange(300) < 5, "new", groups)
    with pytest.warns(CalibrationWarning, match="fewer than 9 rows, 'new' among them, so that their sets hold all"):
        sets = ConformalSets(0.1, mondrian="group").fit(logits, labels, groups=few)
    assert sets.predict(logits[:5], groups=few[:5]).all()
    with pytest.warns(CalibrationWarning, match="groups must be those of the fit for a promise, got 'other'"):
        first = sets.predict(logits[:5], groups=["other"] * 5)
    np.testing.assert_array_equal(first, sets.predict(logits[:5], groups=["other"] * 5))  # said once
    common = ConformalSets(0.1).fit(logits, labels)
    np.testing.assert_array_equal(first, common.predict(logits[:5]))
    rare = labels.copy()
    rare[labels == 3] = 2
    with pytest.warns(CalibrationWarning, match="3 among them, so that they are in every set"):
        assert ConformalSets(0.1, mondrian="class").fit(logits, rare).predict(logits)[:, 3].all()
