"""Structured scaling: limits, gradient, optimality, symmetries, and the strength that rows choose."""

import math

import numpy as np
import pytest
from references.golden import single_label
from sklearn.linear_model import LogisticRegression

from focalcal.core.numerics import log_softmax
from focalcal.posthoc import CalibrationWarning, StructuredScaling, TemperatureScaling, load_calibrator
from focalcal.posthoc.affine import AffineFit, AffineProblem, Curvature, centred
from focalcal.posthoc.cross_fit import stratified_folds
from focalcal.posthoc.structured import _best_shares

INF = math.inf


def rows(count, classes=10):
    logits, labels = single_label()
    return 1.5 * logits[:count, :classes].numpy(), labels[:count].numpy() % classes


def confused(count, seed=0):
    """Over-confident logits with a bias and two classes mixed up, and labels of the truth."""
    rng = np.random.default_rng(seed)
    truth = 2 * rng.normal(size=(count, 5))
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(1)
    mixing = np.eye(5)
    mixing[0, 1] = mixing[1, 0] = 0.5
    return 2 * truth @ mixing.T + np.linspace(-1, 1, 5), labels


def nll(calibrator, logits, labels):
    return -np.log(calibrator.predict_proba(logits)[np.arange(len(labels)), labels]).mean()


def test_an_infinite_strength_is_temperature_scaling():
    logits, labels = rows(400)
    expected = TemperatureScaling().fit(logits, labels).predict_proba(logits)
    fitted = StructuredScaling(INF, mix=False).fit(logits, labels)
    np.testing.assert_allclose(fitted.predict_proba(logits), expected, atol=1e-9)
    strong = StructuredScaling(1e6, mix=False).fit(logits, labels)
    np.testing.assert_allclose(strong.predict_proba(logits), expected, atol=1e-5)


def test_without_a_ridge_it_is_multinomial_regression():
    logits, labels = confused(400)
    peer = LogisticRegression(C=INF, tol=1e-10, max_iter=5000).fit(logits - logits.mean(1, keepdims=True), labels)
    expected = peer.predict_proba(logits - logits.mean(1, keepdims=True))
    fitted = StructuredScaling(0.0, mix=False, tol=1e-7).fit(logits, labels)  # 1e-8 is noise on some processors
    np.testing.assert_allclose(fitted.predict_proba(logits), expected, atol=1e-5)
    assert nll(fitted, logits, labels) <= -np.log(expected[np.arange(400), labels]).mean() + 1e-10


def test_a_path_goes_on_where_it_ended():
    """The next strength begins with the loss that the last one ended with: without a pass, and with the same result."""
    inputs, labels = centred(rows(60, 4)[0]), rows(60, 4)[1]
    path, anew = (AffineProblem(inputs, labels, np.ones(60), Curvature(inputs, np.ones(60), 4)) for _ in range(2))
    first = path.fit(1.0, AffineFit(1.0, np.zeros((4, 5))), tol=1e-2, max_iter=100)
    found, same = (each.fit(0.1, first, tol=1e-9, max_iter=100) for each in (path, anew))
    np.testing.assert_allclose(found.part, same.part, atol=1e-7)


def test_the_result_is_the_optimum():
    """By a loss written anew: no gradient is left in any of the numbers."""
    logits, labels = confused(500)
    fitted = StructuredScaling(0.02, mix=False).fit(logits, labels)
    assert fitted.status_ == "converged"
    x, weight, bias = centred(logits) / fitted.temperature_, fitted.weight_, fitted.bias_
    log_p = log_softmax(x @ weight.T + bias)
    error = np.exp(log_p)
    error[np.arange(500), labels] -= 1
    d_weight, d_bias = error.T @ x / 500, error.mean(0)
    part = weight - np.diag(weight).mean() * np.eye(5)
    np.testing.assert_allclose(d_bias + 0.04 * bias, 0, atol=1e-6)
    np.testing.assert_allclose(d_weight + 0.04 * part, 0, atol=1e-6)


def test_a_fit_that_is_cut_short_says_so():
    logits, labels = confused(500)
    with pytest.warns(CalibrationWarning, match="stopped after 1 iterations with a gradient of"):
        fitted = StructuredScaling(0.001, max_iter=1).fit(logits, labels)
    assert fitted.status_ != "converged"


def test_rows_choose_the_strength():
    logits, labels = confused(6000)
    auto = StructuredScaling().fit(logits[:3000], labels[:3000])
    held = logits[3000:], labels[3000:]
    assert auto.strength_ < 0.1
    assert nll(auto, *held) < nll(TemperatureScaling().fit(logits[:3000], labels[:3000]), *held) - 0.1
    fixed = [nll(StructuredScaling(s).fit(logits[:3000], labels[:3000]), *held) for s in (1.0, 0.1, 0.01, 0.001)]
    assert nll(auto, *held) < min(fixed) + 0.002


def test_few_rows_fall_back_to_temperature():
    """Thirty rows of ten classes, calibrated already: what is chosen costs little beside temperature scaling."""
    losses = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        logits = 2 * rng.normal(size=(2030, 10))
        labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
        kinds = StructuredScaling(mix=False), TemperatureScaling()
        losses.append([nll(kind.fit(logits[:30], labels[:30]), logits[30:], labels[30:]) for kind in kinds])
    structured, temperature = np.mean(losses, 0)
    assert structured < temperature * 1.02


def test_classes_without_rows_are_no_fault():
    logits, labels = rows(300)
    kept = labels < 7
    fitted = StructuredScaling().fit(logits[kept], labels[kept])
    assert fitted.status_ == "converged"
    assert (fitted.predict_proba(logits) > 0).all()


def test_labels_that_are_predicted_perfectly_leave_temperature_scaling():
    logits = rows(200)[0]
    with pytest.warns(CalibrationWarning, match="every label has its row's largest logit"):
        fitted = StructuredScaling().fit(logits, logits.argmax(1))
    assert fitted.strength_ == INF
    wrong = (logits.argmax(1) + 1) % 10
    assert np.isfinite(nll(fitted, logits, wrong))  # the uniform part


def test_a_single_wrong_row_costs_little():
    logits, labels = confused(900)
    logits[0] = 0
    logits[0, (labels[0] + 1) % 5] = 2000.0  # certain, and wrong
    mixed, plain = (StructuredScaling(mix=mix).fit(logits, labels) for mix in (True, False))
    assert nll(mixed, logits[1:], labels[1:]) < nll(plain, logits[1:], labels[1:]) - 0.1
    assert np.isfinite(nll(mixed, logits, labels))


def test_the_scale_of_the_logits_does_not_matter():
    logits, labels = confused(600)
    fitted, twin = StructuredScaling().fit(logits, labels), StructuredScaling().fit(12 * logits, labels)
    assert fitted.strength_ == pytest.approx(twin.strength_)
    np.testing.assert_allclose(twin.predict_proba(12 * logits), fitted.predict_proba(logits), atol=1e-6)


def test_shares_are_an_optimum_of_the_held_out_loss():
    """Against a linear pool's own search: shares of scores, each whole one at a price, by projected gradient steps."""
    rng = np.random.default_rng(0)
    truth = 2 * rng.normal(size=(300, 4))
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(1)
    plain, moves = 3 * truth, [rng.normal(size=truth.shape) - 2 * truth, rng.normal(size=truth.shape)]
    shares, gradient = _best_shares(plain, moves, labels, np.ones(300))
    assert gradient < 1e-5

    def loss(at):
        scores = plain + at[0] * moves[0] + at[1] * moves[1]
        return -log_softmax(scores)[np.arange(300), labels].mean() + 3 / 300 * at.sum()

    assert shares[0] > 0.5
    nearby = shares + 0.01 * rng.normal(size=(50, 2))
    assert all(loss(shares) <= loss(np.maximum(at, 0)) + 1e-12 for at in nearby)


def test_folds_depend_on_neither_order_nor_copies():
    logits, labels = rows(200, 4)
    weights = 1.0 + np.arange(200) % 3
    times = weights.astype(int)

    def by_row(z, y, w):
        parts = stratified_folds(z, y, w, 5)
        return sorted((tuple(row), label, weight, fold) for row, label, weight, fold in zip(*parts, strict=True))

    expected = by_row(logits, labels, weights)
    assert by_row(np.repeat(logits, times, 0), np.repeat(labels, times), np.ones(times.sum())) == expected
    order = np.random.default_rng(0).permutation(200)
    assert by_row(logits[order], labels[order], weights[order]) == expected


def test_rows_of_which_there_are_many_are_in_all_folds():
    logits, labels = np.tile([[2.0, 0.0], [0.0, 1.0]], (100, 1)), np.tile([0, 0], 100)
    _, _, weights, fold = stratified_folds(logits, labels, np.ones(200), 5)
    np.testing.assert_allclose(np.bincount(fold, weights), [100, 100])


def test_many_classes_are_sampled_and_computed_in_single_precision(monkeypatch):
    """What is done for 1,000 classes, at a size that a test can wait for: nearly the same map."""
    logits, labels = confused(4000)
    expected = StructuredScaling(tol=1e-8).fit(logits, labels)
    monkeypatch.setattr("focalcal.posthoc.structured._LARGE", 1e4)
    monkeypatch.setattr("focalcal.posthoc.structured._SAMPLED", 5e4)
    fitted = StructuredScaling().fit(logits, labels)
    assert fitted.status_ == "converged"
    fresh = confused(4000, seed=1)
    assert nll(fitted, *fresh) == pytest.approx(nll(expected, *fresh), abs=0.003)


def test_probabilities_beside_their_logarithms():
    """A truth that no affine map of log p is: of 1,000 rows the map has a part in p, of fewer it has none."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(12_000, 4))
    probs = np.exp(log_softmax(logits))
    labels = (4 * probs + logits / 4 + rng.gumbel(size=logits.shape)).argmax(1)
    few = StructuredScaling().fit(logits[:999], labels[:999])
    many = StructuredScaling().fit(logits[:2000], labels[:2000])
    assert few.weight_.shape == (4, 4)
    assert many.weight_.shape == (4, 8)
    without = StructuredScaling(many.strengths_.min()).fit(logits[:2000], labels[:2000])
    assert nll(many, logits[2000:], labels[2000:]) < nll(without, logits[2000:], labels[2000:]) - 0.01
    perfect = -log_softmax(4 * probs + logits / 4)[np.arange(2000, 12_000), labels[2000:]].mean()
    assert nll(many, logits[2000:], labels[2000:]) < perfect + 0.01


def test_a_wide_map_goes_through_files_and_modules(tmp_path):
    torch = pytest.importorskip("torch")
    logits, labels = confused(1200)
    fitted = StructuredScaling().fit(np.sinh(logits), labels)
    assert fitted.weight_.shape == (5, 10)
    fitted.save(tmp_path / "wide.json")
    expected = fitted.predict_proba(np.sinh(logits))
    np.testing.assert_array_equal(load_calibrator(tmp_path / "wide.json").predict_proba(np.sinh(logits)), expected)
    np.testing.assert_allclose(fitted.to_module()(torch.from_numpy(np.sinh(logits))).numpy(), expected, atol=1e-12)
