"""Dirichlet, ensemble, focal temperature and spline calibration against their published formulas."""

import numpy as np
import onnxruntime
import pytest
import torch
from references.golden import single_label
from scipy.interpolate import CubicSpline
from scipy.optimize import OptimizeResult, minimize
from support.side_by_side import SideBySide

from focalcal.core.numerics import softmax
from focalcal.posthoc import (
    CALIBRATORS,
    CalibrationWarning,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    FocalTemperatureScaling,
    SplineCalibration,
    TemperatureScaling,
)
from focalcal.posthoc.ensemble import mixture_weights
from focalcal.posthoc.spline import natural_spline
from focalcal.theory import minimise

LOGITS, LABELS = single_label()
LOGITS, LABELS = 1.5 * LOGITS[:400, :3], LABELS[:400] % 3


def mean_nll(probs, labels):
    return -probs.gather(1, labels.unsqueeze(1)).log().mean().item()


def test_dirichlet_minimises_the_published_objective():
    """Kull et al. (2019), eq. 9: log-loss + lambda / (K (K - 1)) sum_{i != j} w_ij^2 + mu / K sum_j b_j^2."""
    log_p, rows = LOGITS.log_softmax(1).numpy(), np.arange(400)

    def objective(theta):  # numerical gradients, independent of ours
        weight, bias = theta[:9].reshape(3, 3), theta[9:]
        scores = log_p @ weight.T + bias
        loss = np.mean(np.logaddexp.reduce(scores, 1) - scores[rows, LABELS.numpy()])
        off = weight - np.diag(np.diag(weight))
        return loss + 0.3 * np.sum(off**2) / 6 + 0.2 * np.sum(bias**2) / 3

    peer = minimize(objective, np.r_[np.eye(3).ravel(), np.zeros(3)], method="BFGS", options={"gtol": 1e-8})
    fitted = DirichletCalibration(0.3, 0.2).fit(LOGITS, LABELS)
    assert fitted.converged_
    assert objective(np.r_[fitted.weight_.ravel(), fitted.bias_]) == pytest.approx(peer.fun, abs=1e-9)
    np.testing.assert_allclose(fitted.weight_, peer.x[:9].reshape(3, 3), atol=1e-4)


def test_ensemble_weights_are_the_best_mixture():
    fitted = EnsembleTemperatureScaling().fit(4 * LOGITS, LABELS)
    temperature = TemperatureScaling().fit(4 * LOGITS, LABELS)
    assert fitted.temperature_ == temperature.temperature_
    parts = [
        temperature.predict_proba(4 * LOGITS),
        (4 * LOGITS).softmax(1),
        torch.full((400, 3), 1 / 3, dtype=torch.float64),
    ]
    likelihoods = np.stack([part.gather(1, LABELS.unsqueeze(1))[:, 0].numpy() for part in parts], 1)
    peer = minimize(
        lambda w: -np.log(likelihoods @ w).mean(), np.full(3, 1 / 3), method="SLSQP", bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1}, options={"ftol": 1e-12},
    )  # fmt: skip
    assert mean_nll(fitted.predict_proba(4 * LOGITS), LABELS) == pytest.approx(peer.fun, abs=1e-8)
    np.testing.assert_allclose(fitted.weights_, peer.x, atol=1e-3)


def pulls(likelihoods, weights):
    """mean_i l_ij / (w.l_i): at most 1, and 1 where w_j > 0, at the optimum and nowhere else."""
    return (likelihoods / (likelihoods @ weights)[:, None]).mean(0)


@pytest.mark.parametrize("classes", [2, 20])
@pytest.mark.parametrize("tail", [1, 20, 60])
@pytest.mark.parametrize("same", [False, True])
def test_mixture_weights_are_optimal_where_few_rows_are_badly_predicted(classes, tail, same):
    """Rows with a likelihood of e^-20 stop SLSQP 0.002 to 0.1 nats above the optimum of a third of such tables."""
    rng = np.random.default_rng(tail)
    for rows in (1, 40, 900):
        scaled = np.exp(-rng.exponential(size=rows) / 2)
        scaled[: rows // 50] = np.exp(-tail * rng.exponential(size=rows // 50))
        likelihoods = np.stack([scaled, scaled if same else scaled**1.3, np.full(rows, 1 / classes)], 1)
        weights, gap = mixture_weights(likelihoods, np.ones(rows))
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert gap <= 1e-9
        assert pulls(likelihoods, weights).max() == pytest.approx(1, abs=2e-9)
        np.testing.assert_allclose(pulls(likelihoods, weights)[weights > 1e-6], 1, atol=1e-6)


def test_an_unfinished_mixture_is_a_warning(monkeypatch):
    monkeypatch.setattr("focalcal.posthoc.ensemble._MOST_STEPS", 1)
    with pytest.warns(CalibrationWarning, match="duality gap"):
        fitted = EnsembleTemperatureScaling().fit(4 * LOGITS, LABELS)
    assert "duality gap" in fitted.status_


def test_focal_temperature_finds_the_gamma_that_distorted_the_posterior():
    """Logits at the optimum of focal loss: the map that undoes it has its gamma, and T = 1."""
    generator = torch.Generator().manual_seed(0)
    eta = torch.distributions.Dirichlet(torch.ones(3, dtype=torch.float64)).sample((6000,))
    labels = torch.multinomial(eta, 1, generator=generator)[:, 0]
    logits = torch.from_numpy(np.log(minimise(eta.numpy(), gamma=3.0, lam=0.0).q))
    fitted = FocalTemperatureScaling().fit(logits, labels)
    assert mean_nll(fitted.predict_proba(logits), labels) <= mean_nll(eta, labels)
    assert fitted.gamma_ == pytest.approx(3.0, abs=0.8)
    assert fitted.temperature_ == pytest.approx(1.0, abs=0.15)
    assert mean_nll(fitted.predict_proba(logits), labels) < mean_nll(
        TemperatureScaling().fit(logits, labels).predict_proba(logits), labels
    )


def test_the_bound_of_gamma_holds_no_search_that_could_leave_it():
    """Rows on which a simplex falls flat onto gamma = 0: the loss is 2e-4 nats lower at gamma = 0.19."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 240)
    logits = 2 * generator.normal(size=(240, 3)) + 2 * np.eye(3)[labels]

    def loss(point):
        q = softmax(logits / np.exp(point[0]))
        odds = 1 / ((1 - q) ** point[1] * (1 / q - point[1] * np.log(q) / (1 - q)))  # 1 / -phi'(q)
        return -np.log(odds[np.arange(240), labels] / odds.sum(1)).mean()

    peer = minimize(loss, [0.5, 0.5], method="L-BFGS-B", bounds=[(-5, 5), (0, 20)], options={"ftol": 0, "gtol": 1e-9})
    fitted = FocalTemperatureScaling().fit(logits, labels)
    assert loss([np.log(fitted.temperature_), fitted.gamma_]) == pytest.approx(peer.fun, abs=1e-11)
    assert fitted.gamma_ == pytest.approx(0.1946, abs=1e-3)


def test_a_search_that_stops_early_is_a_warning(monkeypatch):
    def lazy(function, start, **_):
        point = np.array([start[0] + 0.3, 1.0])
        value, gradient = function(point)
        slopes = [(function(point + step)[0] - function(point - step)[0]) / 2e-5 for step in 1e-5 * np.eye(2)]
        assert gradient == pytest.approx(slopes, rel=1e-7)
        return OptimizeResult(x=point, fun=value - 1, jac=gradient)

    monkeypatch.setattr("focalcal.posthoc.focal_temperature.minimize", lazy)
    with pytest.warns(CalibrationWarning, match="not optimal: the NLL still falls by"):
        FocalTemperatureScaling().fit(LOGITS, LABELS)


@pytest.mark.parametrize("knots", [3, 6, 40])
def test_splines_are_scipys(knots):
    x = np.r_[0.0, np.sort(np.random.default_rng(0).random(300)), 1.0]
    scipys = CubicSpline(np.linspace(0, 1, knots), np.eye(knots), bc_type="natural")
    for ours, order in zip(natural_spline(x, knots), (0, 1), strict=True):
        np.testing.assert_allclose(ours, scipys(x, order), rtol=0, atol=1e-12 * knots)


def test_spline_finds_the_accuracy_of_each_confidence():
    """Rows that are right with probability c^2 at confidence c."""
    generator = np.random.default_rng(0)
    confidence = generator.uniform(0.55, 0.99, 20_000)
    probs = torch.from_numpy(np.stack([confidence, 1 - confidence], 1))
    labels = torch.from_numpy((generator.uniform(size=20_000) > confidence**2).astype(np.int64))
    fitted = SplineCalibration().fit(probs=probs, labels=labels)
    asked = torch.tensor([[c, 1 - c] for c in (0.6, 0.7, 0.8, 0.9, 0.95)])
    np.testing.assert_allclose(fitted.predict_proba(probs=asked)[:, 0], [0.36, 0.49, 0.64, 0.81, 0.9025], atol=0.03)


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.skipif(torch.__version__ < "2.6", reason="torch exports no dynamic shapes to ONNX before 2.6")
@pytest.mark.filterwarnings("ignore")
def test_onnx_gives_the_same_probabilities(tmp_path):
    """In one file, since an export takes two seconds of any size; of maps that are built alike one."""
    alike = {"platt", "matrix", "dirichlet", "recovery", "centred_isotonic"}
    fitted = {name: CALIBRATORS[name]().fit(LOGITS, LABELS) for name in CALIBRATORS if name not in alike}
    rows = {"logits": {0: torch.export.Dim("rows")}}
    every = SideBySide(calibrator.to_module() for calibrator in fitted.values())
    program = torch.onnx.export(every, (LOGITS[:9],), dynamic_shapes=rows, dynamo=True, verbose=False)
    program.save(tmp_path / "calibrators.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "calibrators.onnx")
    several = session.run(None, {session.get_inputs()[0].name: LOGITS.numpy()})
    for (name, calibrator), probs in zip(fitted.items(), several, strict=True):
        np.testing.assert_allclose(probs, calibrator.predict_proba(LOGITS).numpy(), atol=1e-6, err_msg=name)
