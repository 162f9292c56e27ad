"""Frequencies of classes that are known, found again without labels."""

import numpy as np
import pytest
from scipy.special import softmax

from focalcal.posthoc import TemperatureScaling, label_shift


def drawn(priors, rows, seed, *, sharpen=1.0):
    """Posteriors of Gaussian classes on a circle under equal priors, times `sharpen` on the log scale, and labels."""
    draws = np.random.default_rng(seed)
    labels = draws.choice(len(priors), rows, p=priors)
    angles = 2 * np.pi * np.arange(len(priors)) / len(priors)
    centres = 1.5 * np.stack([np.cos(angles), np.sin(angles)], 1)
    x = centres[labels] + draws.normal(size=(rows, 2))
    return softmax(sharpen * (-0.5 * ((x[:, None] - centres) ** 2).sum(-1)), 1), labels


EQUAL = np.full(4, 0.25)
SHIFTED = np.array([0.55, 0.3, 0.13, 0.02])


@pytest.mark.parametrize("sharpen", [1.0, 3.0])  # calibrated, and over-confident
def test_known_priors_are_within_the_intervals(sharpen):
    source, labels = drawn(EQUAL, 4000, 0, sharpen=sharpen)
    target, truth = drawn(SHIFTED, 4000, 1, sharpen=sharpen)
    found = label_shift(source, labels, target, resamples=100)
    for low, high, estimate in ((found.low, found.high, found.target), (found.bbse_low, found.bbse_high, found.bbse)):
        assert ((low <= SHIFTED) & (high >= SHIFTED)).all()
        assert abs(estimate - SHIFTED).max() < 0.04
        assert estimate.sum() == pytest.approx(1)
    assert found.gap < 1e-9
    assert found.p_value == 0.001
    own = np.arange(4000), truth
    calibrated = found.calibrator.predict_proba(probs=target)
    corrected = found.correct(target)
    assert np.log(corrected[own]).mean() > np.log(calibrated[own]).mean() + 0.1
    np.testing.assert_allclose(corrected.mean(0), found.target, atol=1e-8)  # stationarity of the likelihood


def test_the_optimum_is_the_limit_of_em():
    source, labels = drawn(EQUAL, 1500, 0)
    target, _ = drawn(SHIFTED, 1500, 1)
    found = label_shift(source, labels, target, calibrator=None, resamples=20)
    prior = found.source
    for _ in range(2000):
        joint = target * prior / found.source
        prior = (joint / joint.sum(1, keepdims=True)).mean(0)
    np.testing.assert_allclose(found.target, prior, atol=1e-6)


def test_without_a_shift_p_values_are_uniform():
    values = []
    for seed in range(20):
        probs, labels = drawn(EQUAL, 300, seed)
        values.append(label_shift(probs[:150], labels[:150], probs[150:], resamples=20, seed=seed).p_value)
    assert 0.3 < np.mean(values) < 0.7
    assert np.mean(np.array(values) < 0.1) < 0.3


def test_two_classes_in_one_column_with_names():
    source, labels = drawn(np.full(2, 0.5), 3000, 0)
    target, _ = drawn([0.9, 0.1], 3000, 1)
    names = np.array(["ham", "spam"])
    two = label_shift(
        source, names[labels], target, classes=["ham", "spam"], calibrator=TemperatureScaling(), resamples=20
    )
    assert two.classes == ("ham", "spam")
    one = label_shift(source[:, 1], labels, target[:, 1], calibrator=TemperatureScaling(), resamples=20)
    np.testing.assert_allclose(one.target, two.target, atol=1e-6)
    assert str(two).startswith("the classes' frequencies shifted (p = 0.001)")
    assert list(two.frame()) == ["class", "source", "target", "low", "high", "bbse", "bbse_low", "bbse_high"]


@pytest.fixture
def resnet(data_folder):
    path = data_folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with np.load(path) as stored:
        return softmax(stored["resnet20"].astype(np.float64), 1), stored["labels"]


def test_subsets_of_cifar_10(resnet):
    """Some classes kept whole and others thinned, among rows that the source does not have."""
    probs, labels = resnet
    draws = np.random.default_rng(0)
    rows = draws.permutation(len(labels))
    source, rest = rows[:5000], rows[5000:]
    kept = rest[draws.random(len(rest)) < np.linspace(0.05, 1.0, 10)[labels[rest]]]
    truth = np.bincount(labels[kept], minlength=10) / len(kept)
    found = label_shift(probs[source], labels[source], probs[kept], resamples=100)
    assert abs(found.target - truth).max() < 0.01
    assert abs(found.bbse - truth).max() < 0.015
    assert np.mean((found.low <= truth) & (truth <= found.high)) >= 0.8
    own = np.arange(len(kept)), labels[kept]
    calibrated = found.calibrator.predict_proba(probs=probs[kept])
    assert np.log(found.correct(probs[kept])[own]).mean() > np.log(calibrated[own]).mean()
