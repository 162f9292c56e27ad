"""PosteriorRecovery undoes exactly what Focal Calibration Loss does to the posterior."""

import mpmath as mp
import numpy as np
import pytest
import torch
from references.golden import single_label

from focalcal.posthoc import CalibrationWarning, PosteriorRecovery, log_posterior
from focalcal.posthoc import recovery as module
from focalcal.theory import minimise


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


def test_a_fitted_temperature_undoes_a_known_one():
    """Labels drawn from eta, logits those of q*(eta) times 1.8: both distortions are found and undone."""
    generator = np.random.default_rng(0)
    eta = generator.dirichlet(np.ones(3), size=60) * 0.97 + 0.01
    logits = np.log(minimise(eta, gamma=3.0, lam=1.0).q) * 1.8
    labels = np.array([generator.choice(3, size=1000, p=e) for e in eta])
    fitted = PosteriorRecovery(3.0, 1.0, fit_temperature=True).fit(np.repeat(logits, 1000, 0), labels.flatten())
    assert fitted.temperature_ == pytest.approx(1.8, rel=0.015)
    np.testing.assert_allclose(fitted.predict_proba(logits), eta, atol=0.01)


def test_the_fitted_temperature_is_the_best_of_its_range():
    logits, labels = single_label()
    fitted = PosteriorRecovery(3.0, 1.0, fit_temperature=True).fit(logits, labels)
    at = lambda t: fitted._nll(logits.numpy(), labels.numpy(), np.ones(len(labels)), t)  # noqa: E731
    assert at(fitted.temperature_) < min(at(t) for t in np.geomspace(1e-3, 1e3, 60)) + 1e-12
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
