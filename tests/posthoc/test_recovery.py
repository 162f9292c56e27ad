"""PosteriorRecovery undoes exactly what Focal Calibration Loss does to the posterior."""

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from references.golden import single_label
from scipy.optimize import brentq, minimize

from focalcal.losses import FocalCalibrationLoss
from focalcal.posthoc import CalibrationWarning, PosteriorRecovery, log_posterior
from focalcal.posthoc import recovery as module


def slope(u, gamma):
    """phi'(u), phi(u) = -(1 - u)^gamma log u."""
    first = gamma * (1 - u) ** (gamma - 1) * np.log(u) if gamma else 0.0
    return first - (1 - u) ** gamma / u


def minimiser(eta, gamma, lam):
    """q* of the strictly convex risk: stationary in each coordinate, with the nu that makes them sum to one."""

    def coordinate(e, nu):
        f = lambda u: e * slope(u, gamma) + 2 * lam * (u - e) - nu  # noqa: E731
        return brentq(f, 1e-12, 1 - 1e-13, xtol=1e-17, rtol=1e-15) if f(1 - 1e-13) > 0 else 1.0

    excess = lambda nu: sum(coordinate(e, nu) for e in eta) - 1  # noqa: E731
    low = -1.0
    while excess(low) > 0:
        low *= 2
    nu = brentq(excess, low, 2 * lam, xtol=1e-16, rtol=1e-15)
    return np.array([coordinate(e, nu) for e in eta])


def risk(q, eta, gamma, lam):
    return float(np.sum(-eta * (1 - q) ** gamma * np.log(q)) + lam * np.sum((q - eta) ** 2))


def in_fifty_digits(logits, gamma, lam):
    """The closed form from the definitions alone, in 50 digits beyond what the saturation eats."""
    with mp.workdps(1000):
        z = [mp.mpf(float(v)) for v in logits]
        e = [mp.exp(v - max(z)) for v in z]
        q = [v / mp.fsum(e) for v in e]
        d = [(gamma * (1 - u) ** (gamma - 1) * mp.log(u) if gamma else 0) - (1 - u) ** gamma / u for u in q]
        b = [2 * lam - v for v in d]
        a = [2 * lam * u / v for u, v in zip(q, b, strict=True)]
        m = (1 - mp.fsum(a)) / mp.fsum(1 / v for v in b)
        return [u + m / v for u, v in zip(a, b, strict=True)]


@given(
    seed=st.integers(0, 10_000),
    classes=st.integers(2, 8),
    gamma=st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 5.0]),
    lam=st.sampled_from([0.0, 0.1, 1.0, 1.5, 30.0]),
)
def test_round_trip_through_the_minimiser(seed, classes, gamma, lam):
    eta = np.random.default_rng(seed).dirichlet(np.ones(classes)) * 0.99 + 0.01 / classes
    q = minimiser(eta, gamma, lam)
    assert q.sum() == pytest.approx(1, abs=1e-12)
    nearby = 0.999 * q + 0.001 * eta
    assert risk(q, eta, gamma, lam) <= risk(nearby / nearby.sum(), eta, gamma, lam) + 1e-14
    recovered = PosteriorRecovery(gamma, lam).predict_proba(np.log(q)[None])[0]
    np.testing.assert_allclose(recovered, eta, atol=1e-9)


@pytest.mark.parametrize(("gamma", "lam"), [(3.0, 1.0), (2.0, 0.0), (0.5, 4.0)])
def test_round_trip_through_the_training_loss(gamma, lam):
    """Logits trained on class probabilities eta by the loss itself, then recovered."""
    eta = torch.tensor([[0.6, 0.25, 0.1, 0.05], [0.3, 0.3, 0.2, 0.2]], dtype=torch.float64)
    loss = FocalCalibrationLoss(gamma, lam, reduction="sum")

    def value_and_gradient(flat):
        logits = torch.from_numpy(flat).view(2, 4).requires_grad_()
        value = loss(logits, eta)
        value.backward()
        return value.item(), logits.grad.flatten().numpy()

    start = np.zeros(8)
    found = minimize(value_and_gradient, start, jac=True, method="BFGS", options={"gtol": 1e-11}).x.reshape(2, 4)
    assert np.abs(torch.from_numpy(found).softmax(1).numpy() - eta.numpy()).max() > 0.01  # the loss does distort
    np.testing.assert_allclose(PosteriorRecovery(gamma, lam).predict_proba(found), eta, atol=1e-7)


@pytest.mark.parametrize("lead", [0.0, 5.0, 40.0, 200.0, 800.0])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("lam", [0.0, 1.0, 100.0])
def test_saturated_rows_against_fifty_digits(lead, gamma, lam):
    logits = np.array([lead, 0.0, -1.0, -lead / 2])
    exact = in_fifty_digits(logits, gamma, lam)
    found = log_posterior(torch.from_numpy(logits)[None], gamma=gamma, lam=lam)[0]
    expected = [float(mp.log(v)) for v in exact]
    np.testing.assert_allclose(found.numpy()[1:], expected[1:], rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(found.exp().numpy(), [float(v) for v in exact], rtol=1e-10, atol=1e-300)
    for order in ([1, 0, 2, 3], [3, 2, 1, 0]):  # wherever the leading class is
        moved = log_posterior(torch.from_numpy(logits[order])[None], gamma=gamma, lam=lam)[0]
        torch.testing.assert_close(moved, found[order], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_absurdly_large_logits(kind):
    logits = np.array([[np.finfo(kind).max, -np.finfo(kind).max, 0.0], [1e30, 1e30, 0.0]], dtype=kind)
    for gamma in (0.0, 0.5, 3.0):
        for lam in (0.0, 1.0):
            probs = PosteriorRecovery(gamma, lam).predict_proba(logits)
            np.testing.assert_allclose(probs, [[1, 0, 0], [0.5, 0.5, 0]], atol=1e-6)


@pytest.mark.parametrize("lam", [0.0, 1.0, 7.0])
def test_gamma_zero_is_the_identity(lam):
    logits, _ = single_label()
    torch.testing.assert_close(PosteriorRecovery(0.0, lam).predict_proba(logits), logits.softmax(1))


def test_small_gamma_and_large_lam_come_close_to_the_identity():
    logits, _ = single_label()
    for recovery in (PosteriorRecovery(1e-7, 1.0), PosteriorRecovery(3.0, 1e7)):
        torch.testing.assert_close(recovery.predict_proba(logits), logits.softmax(1), atol=1e-5, rtol=0)


def test_lam_zero_is_the_focal_transform():
    """eta_k proportional to 1 / -phi'(q_k), Charoenphakdee et al. (2021)."""
    logits, _ = single_label()
    q = logits.softmax(1).numpy()
    expected = 1 / -slope(q, 3.0)
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(PosteriorRecovery(3.0, 0.0).predict_proba(logits), expected, rtol=1e-10)


def test_order_is_kept_and_focal_underconfidence_is_undone():
    logits, _ = single_label()
    probs = PosteriorRecovery(3.0, 1.0).predict_proba(logits)
    assert torch.equal(probs.argsort(1), logits.argsort(1))
    assert (probs.amax(1) >= logits.softmax(1).amax(1) - 1e-12).float().mean() > 0.99


def test_no_fit_is_needed_without_a_temperature():
    logits, labels = single_label()
    fresh = PosteriorRecovery(2.0, 0.5)
    fitted = PosteriorRecovery(2.0, 0.5).fit(logits, labels)
    assert fitted.temperature_ == 1.0
    torch.testing.assert_close(fresh.predict_proba(logits), fitted.predict_proba(logits))


def test_a_fitted_temperature_undoes_a_known_one():
    """Labels drawn from eta, logits those of q*(eta) times 1.8: both distortions are found and undone."""
    generator = np.random.default_rng(0)
    eta = generator.dirichlet(np.ones(3), size=60) * 0.97 + 0.01
    logits = np.log([minimiser(e, 3.0, 1.0) for e in eta]) * 1.8
    labels = np.array([generator.choice(3, size=2000, p=e) for e in eta])
    fitted = PosteriorRecovery(3.0, 1.0, fit_temperature=True).fit(np.repeat(logits, 2000, 0), labels.flatten())
    assert fitted.temperature_ == pytest.approx(1.8, rel=0.01)
    np.testing.assert_allclose(fitted.predict_proba(logits), eta, atol=0.01)


def test_the_fitted_temperature_is_the_best_of_its_range():
    logits, labels = single_label()
    fitted = PosteriorRecovery(3.0, 1.0, fit_temperature=True).fit(logits, labels)
    at = lambda t: fitted._nll(logits.numpy(), labels.numpy(), np.ones(len(labels)), t)  # noqa: E731
    assert at(fitted.temperature_) < min(at(t) for t in np.geomspace(1e-3, 1e3, 300)) + 1e-12
    assert at(fitted.temperature_) < min(at(fitted.temperature_ * 1.0001), at(fitted.temperature_ / 1.0001))


def test_labels_without_a_best_temperature():
    logits, _ = single_label()
    with pytest.warns(CalibrationWarning, match="temperature set to .*: no finite optimum, since"):
        PosteriorRecovery(fit_temperature=True).fit(logits, logits.argmin(1))


@pytest.mark.parametrize("name", ["gamma", "lam"])
def test_arguments_are_checked_without_a_fit_too(name):
    for value, rule in (
        (-1, "finite and >= 0, got"),
        (np.inf, "finite and >= 0, got"),
        (1e308, r"at most 1e\+09, got"),
    ):
        recovery = PosteriorRecovery(**{name: value})  # scikit-learn's convention: the constructor only stores
        with pytest.raises(ValueError, match=f"{name} must be {rule}"):
            recovery.predict_proba(np.zeros((1, 3)))
    with pytest.raises(TypeError, match="fit_temperature must be True or False"):
        PosteriorRecovery(fit_temperature="no").predict_proba(np.zeros((1, 3)))


def test_a_sample_does_not_mislead_the_temperature(monkeypatch):
    """Every 19th row is another population: a strided sample would see little else."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(2621, 50, generator=generator)
    monkeypatch.setattr(module, "_SAMPLE", logits.numel() // 19)
    labels = torch.multinomial((logits / 2).softmax(1), 1, generator=generator).squeeze(1)
    odd = torch.arange(0, 2621, 19)
    labels[odd] = torch.multinomial((logits[odd] * 60).softmax(1), 1, generator=generator).squeeze(1)
    recovery = PosteriorRecovery(2.0, 1.0, fit_temperature=True).fit(logits, labels)

    def loss(temperature):
        return recovery._nll(logits.numpy(), labels.numpy(), np.ones(len(labels)), temperature)

    around = [loss(recovery.temperature_ * factor) for factor in (0.2, 0.5, 0.8, 0.99, 1.01, 1.25, 2.0, 5.0)]
    assert loss(recovery.temperature_) < min(around)


def test_a_misleading_sample_is_noticed(monkeypatch):
    """The rows of the sample say another temperature than all rows do; all rows count."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(300, 5, generator=generator, dtype=torch.float64)
    labels = torch.multinomial((logits / 4).softmax(1), 1, generator=generator).squeeze(1)
    whole = PosteriorRecovery(2.0, 1.0, fit_temperature=True).fit(logits, labels).temperature_
    three = np.random.default_rng(0).permutation(300)[:3]
    labels[three] = logits[three].argmax(1)  # the sample alone would ask for the lower bound
    monkeypatch.setattr(module, "_SAMPLE_ROWS", 3)
    monkeypatch.setattr(module, "_SAMPLE", 15)
    fitted = PosteriorRecovery(2.0, 1.0, fit_temperature=True).fit(logits, labels).temperature_
    monkeypatch.undo()
    expected = PosteriorRecovery(2.0, 1.0, fit_temperature=True)
    assert fitted == pytest.approx(expected.fit(logits, labels).temperature_, rel=1e-6)
    assert fitted == pytest.approx(whole, rel=0.3)


def test_any_lam_has_a_logarithm():
    logits = torch.tensor([[2.0, 1.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(log_posterior(logits, gamma=2.0, lam=1.7e308), logits.log_softmax(1))
