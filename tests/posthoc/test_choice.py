"""`calibrate`: honest scores, the simplest within noise of the best, and a fit on all rows."""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_val_predict

from focalcal import calibrate
from focalcal.auditing import audit
from focalcal.metrics import nll
from focalcal.posthoc import (
    CALIBRATORS,
    CalibrationWarning,
    MatrixScaling,
    PosteriorRecovery,
    TemperatureScaling,
    VectorScaling,
)
from focalcal.posthoc.choice import simplest_alike
from focalcal.posthoc.comparison import SIMPLEST_FIRST, CalibratorCandidate, Rated, sensible_candidates
from focalcal.posthoc.cross_fit import group_folds

FEW = ["temperature", "vector", "platt"]


def rows(n=2000, classes=4, factor=1.0, bias=0.0, seed=0):
    """Logits, and labels drawn from their softmax; then the logits are made wrong by a factor and a bias per class."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n, classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    return factor * logits + bias * np.arange(classes), labels


def test_scores_are_those_of_scikit_learns_cross_validation():
    """The same folds by `cross_val_predict`, which knows nothing of this package's cross-fitting."""
    logits, labels = rows(factor=2.0)
    choice = calibrate(logits, labels, candidates=FEW).choice_
    order = np.random.default_rng(0).permutation(len(labels))
    for name in FEW:
        probs = cross_val_predict(
            CALIBRATORS[name](), logits[order], labels[order], cv=KFold(5), method="predict_proba"
        )
        expected = log_loss(labels[order], probs)
        assert next(each.nll for each in choice.tried if each.name == name) == pytest.approx(expected, abs=1e-9)
    assert choice.raw_nll == pytest.approx(log_loss(labels, np.exp(logits) / np.exp(logits).sum(1, keepdims=True)))


def test_the_simplest_that_is_as_good():
    logits, labels = rows(factor=2.5)
    fitted = calibrate(logits, labels, candidates=FEW)
    assert type(fitted) is TemperatureScaling
    assert fitted.temperature_ == TemperatureScaling().fit(logits, labels).temperature_, "fitted on all rows"
    assert fitted.choice_.shown
    assert (
        "is within noise and a twentieth of the gain of the best" in fitted.choice_.sentence
        or fitted.choice_.tried[0].name == "temperature"
    )
    assert fitted.choice_.sentence in str(fitted)
    assert "seconds" in str(fitted)


def test_what_a_temperature_cannot_do():
    logits, labels = rows(factor=2.0, bias=1.0)
    assert type(calibrate(logits, labels, candidates=FEW)) is VectorScaling
    best = calibrate(logits, labels, candidates=FEW, prefer="best").choice_
    assert max(best.weights, key=best.weights.get) == "vector"
    assert best.sentence.startswith("mixture of vector ")
    assert best.mixed < best.raw_nll
    assert calibrate(logits, labels, candidates=FEW, by="brier").choice_.chosen == "vector"


def test_a_thousandth_is_no_reason_for_a_matrix(data_folder):
    """With 10,000 rows .207 and .211 can be told apart; of a gain from .346 that is a fortieth."""
    arrays = np.load(data_folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz")
    logits, labels = arrays["resnet56"], arrays["labels"]
    simple = calibrate(logits, labels, candidates=["temperature", "vector", "matrix"])
    assert simple.choice_.chosen == "temperature"
    best = simple.choice_.tried[0]
    assert best.name != "temperature"
    kept = {each.name: each for each in simple.choice_.tried}
    gap = kept["temperature"].row_losses["nll"] - best.row_losses["nll"]
    assert gap.mean() > 2 * gap.std() / 100, "they can be told apart"


@pytest.mark.parametrize("network", ["resnet20", "resnet56"])
def test_the_lowest_score_may_be_luck(network, data_folder):
    """2,000 rows, of which another map has the lowest score: on the other 8,000 a mixture is better than that map."""
    arrays = np.load(data_folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz")
    order = np.random.default_rng(0).permutation(10_000)
    fit, test = order[:2000], order[2000:]
    names = ["temperature", "vector", "platt", "beta"]
    found = calibrate(arrays[network][fit], arrays["labels"][fit], candidates=names, prefer="best")
    luckiest = CALIBRATORS[found.choice_.tried[0].name]().fit(arrays[network][fit], arrays["labels"][fit])
    losses = [nll(each.predict_proba(arrays[network][test]), arrays["labels"][test]) for each in (found, luckiest)]
    assert losses[0] < losses[1]


def _candidate(name, losses, rated):
    change = rated.change(losses - rated.losses["nll"])
    return CalibratorCandidate(name, losses.mean(), 0, 0, change, None, 0, {"nll": losses}, losses)


@pytest.mark.parametrize(("left", "chosen"), [(0.03, "temperature"), (0.2, "matrix")])
def test_a_twentieth_of_the_gain_may_be_left(left, chosen):
    """Differences without noise: three hundredths of the gain may be left, a fifth may not."""
    spread = np.random.default_rng(0).normal(size=500)
    rated = Rated(np.zeros((500, 2)), np.zeros(500, dtype=int), "logits", {"nll": 2.0 + spread})
    best = _candidate("matrix", 1.0 + spread, rated)
    simple = _candidate("temperature", 1.0 + left + spread, rated)
    assert simplest_alike([best, simple], rated).name == chosen


def test_the_rate_of_an_event_is_kept():
    """Too extreme and too low: a temperature takes 97 % of the gain and leaves the rate off by points."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=6000)
    labels = (rng.random(6000) < 1 / (1 + np.exp(-logits))).astype(int)
    scores = np.stack([np.zeros(6000), 3 * logits - 0.6], 1)
    fitted = calibrate(scores, labels, candidates=["temperature", "vector", "platt", "matrix"])
    assert fitted.choice_.chosen == "platt"
    assert abs(fitted.predict_proba(scores)[:, 1].mean() - labels.mean()) < 0.001
    temperature = CALIBRATORS["temperature"]().fit(scores, labels)
    assert abs(temperature.predict_proba(scores)[:, 1].mean() - labels.mean()) > 0.02
    losses = {each.name: each.nll for each in fitted.choice_.tried}
    assert losses["temperature"] - losses["platt"] < 0.05 * (fitted.choice_.raw_nll - losses["platt"])


def test_nothing_to_gain():
    """Calibrated rows: temperature, which costs nothing; and where all candidates do harm, the rows as they are."""
    logits, labels = rows(4000)
    assert not calibrate(logits, labels, candidates=FEW).choice_.shown
    kept = calibrate(logits[:300], labels[:300], candidates=["matrix"])
    assert kept.choice_.chosen is None
    assert kept.choice_.sentence.startswith("Keep the probabilities: no calibrator lowers the NLL")
    raw = np.exp(logits[:5]) / np.exp(logits[:5]).sum(1, keepdims=True)
    np.testing.assert_allclose(kept.predict_proba(logits[:5]), raw, rtol=1e-12)


def test_rows_without_an_error_bound_no_loss():
    """A temperature at its bound has an NLL of 0 here, and one wrong row of new ones costs hundreds of nats."""
    logits, labels = rows(n=300)
    right = logits.argmax(1)
    with pytest.warns(CalibrationWarning, match="no finite optimum"):
        chosen = calibrate(logits, right, candidates=["temperature"])
    assert "hardly an error among 300 rows to learn from, one on new rows may cost any NLL" in chosen.choice_.sentence
    assert "to learn from" in audit(logits=logits, labels=right).fixes.sentence
    assert "to learn from" not in calibrate(logits, labels, candidates=["temperature"]).choice_.sentence


def test_weights_are_copies():
    logits, labels = rows(1500, factor=2.0)
    weights = np.where(labels == 0, 3.0, 1.0)
    choice = calibrate(logits, labels, candidates=FEW, sample_weight=weights).choice_
    order = np.random.default_rng(0).permutation(1500)
    at = next(each for each in choice.tried if each.name == "vector")
    expected = 0.0
    for fold in np.array_split(order, 5):
        others = np.setdiff1d(order, fold)
        copies = np.repeat(others, weights[others].astype(int))
        probs = VectorScaling().fit(logits[copies], labels[copies]).predict_proba(logits[fold])
        expected -= weights[fold] @ np.log(probs[np.arange(len(fold)), labels[fold]])
    assert at.nll == pytest.approx(expected / weights.sum(), abs=1e-6)


def test_groups_stay_in_one_fold_and_widen_the_interval():
    logits, labels = rows(200, factor=2.0)
    ten, names = np.repeat(logits, 10, 0), np.repeat(np.arange(200), 10)
    alone = calibrate(ten, np.repeat(labels, 10), candidates="vector").choice_.tried[0]
    together = calibrate(ten, np.repeat(labels, 10), candidates="vector", groups=names).choice_.tried[0]
    assert together.nll > alone.nll, "copies of a row in other folds tell its label"
    assert together.change.high - together.change.low > 2 * (alone.change.high - alone.change.low)
    for fold in group_folds(names):
        assert not set(names[fold]) & set(np.delete(names, fold))


def test_the_audit_recommends_the_same():
    logits, labels = rows(factor=2.0)
    fixes = audit(logits=logits, labels=labels, calibrate=FEW, resamples=100).fixes
    choice = calibrate(logits, labels, candidates=FEW).choice_
    assert fixes.recommended == choice.chosen
    assert [(each.name, each.nll, each.ece) for each in fixes.tried] == [
        (each.name, each.nll, each.ece) for each in choice.tried
    ]


def test_inputs_of_other_kinds():
    logits, labels = rows(factor=2.0)
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    names = np.array(["ant", "bee", "cat", "dog"])
    of_probs = calibrate(probs=probs, labels=names[labels], classes=list(names), candidates=FEW)
    assert of_probs.choice_.raw_nll == pytest.approx(calibrate(logits, labels, candidates=FEW).choice_.raw_nll)
    assert of_probs.classes_.tolist() == names.tolist()
    own = {"weak": MatrixScaling(off_diagonal_l2=10.0), "mine": PosteriorRecovery(1.0, 1.0)}
    assert {each.name for each in calibrate(logits, labels, candidates=own).choice_.tried} == {"weak", "mine"}
    masked = np.where((np.arange(4) == (labels[:, None] + 1) % 4) & (labels[:, None] > 1), -np.inf, logits)
    impossible = calibrate(masked, labels, candidates=FEW)
    assert type(impossible) is TemperatureScaling
    assert "-inf" in impossible.choice_.left_out["platt"]


def test_which_candidates_make_sense():
    assert set(CALIBRATORS) <= set(SIMPLEST_FIRST)
    chosen, left_out = sensible_candidates(None, 400, 100)
    assert "temperature" in chosen
    assert not {"matrix", "dirichlet", "isotonic", "vector"} & set(chosen)
    assert left_out["isotonic"] == "it has a map of its own for each of 100 classes, and there are 400 rows"
    assert "quadratic" in left_out
    assert set(sensible_candidates(["matrix"], 400, 100)[0]) == {"matrix"}, "what is named is tried"
    assert set(sensible_candidates(None, 4000, 2)[0]) == set(CALIBRATORS) - {"recovery"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 40}, "at least 100 rows to compare calibrators on, got 40; fit TemperatureScaling"),
        ({"labels": np.zeros(500, dtype=int)}, "labels must hold at least two classes, got one class only"),
        (
            {"labels": np.eye(1, 500, 7, dtype=int)[0]},
            "none is: temperature, since labels must hold at least two classes",
        ),
        ({"candidates": ["temprature"]}, "must name calibrators, got 'temprature'; known: temperature"),
        ({"candidates": []}, "must be names of calibrators"),
        ({"candidates": ["recovery"]}, "needs the loss's gamma and lam"),
        ({"candidates": {"T": 1}}, "must be calibrators by name"),
        ({"prefer": "worst"}, "prefer must be"),
        ({"by": "ece"}, "by must be"),
        ({"groups": np.zeros(500)}, "groups must be at least 10"),
        ({"groups": np.zeros(3)}, "one name per row"),
        ({"logits": np.full((500, 1), 1.0)}, "labels must"),
        ({"logits": np.full((500, 4), np.inf)}, "logits must"),
    ],
)
def test_bad_input(change, message):
    logits, labels = rows(500)
    n = change.pop("rows", 500)
    given = {"logits": logits[:n], "labels": labels[:n], "candidates": ["temperature"], **change}
    with pytest.raises((ValueError, TypeError), match=message):
        calibrate(**given)
