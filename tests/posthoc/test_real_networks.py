"""Four real ResNets on the CIFAR-10 test set, by their logits."""

import numpy as np
import pytest

from focalcal.posthoc import CALIBRATORS, TemperatureScaling, split_half

NETWORKS = ["resnet20", "resnet32", "resnet56"]


def ece(probs, labels):
    """15 bins (lo, hi], by the definition."""
    confidence, right = probs.max(1), probs.argmax(1) == labels
    total = 0.0
    for b in range(15):
        inside = (confidence > b / 15) & (confidence <= (b + 1) / 15)
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return total


def nll(probs, labels):
    return -np.log(probs[np.arange(len(labels)), labels]).mean()


def error(probs, labels):
    return (probs.argmax(1) != labels).mean()


@pytest.fixture
def networks(data_folder):
    path = data_folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with np.load(path) as stored:
        return {name: stored[name] for name in ("labels", *NETWORKS)}


@pytest.mark.parametrize("network", NETWORKS)
def test_temperature_scaling_at_least_halves_the_calibration_error(networks, network):
    metrics = {"ece": ece, "nll": nll, "error": error}
    for seed in range(2):
        result = split_half(networks[network], networks["labels"], TemperatureScaling(), seed=seed, metrics=metrics)
        assert result.after["ece"] < result.before["ece"] / 2
        assert result.after["nll"] < result.before["nll"]
        assert result.after["error"] == result.before["error"]


@pytest.mark.parametrize("name", [n for n in CALIBRATORS if n != "recovery"])
def test_every_fitted_calibrator_mends_these_networks(networks, name):
    result = split_half(networks["resnet32"], networks["labels"], CALIBRATORS[name](), seed=0, metrics={"ece": ece})
    assert result.after["ece"] < 0.7 * result.before["ece"]


def test_recovery_is_for_networks_that_were_trained_so(networks):
    """These were trained with cross-entropy: there is nothing to recover, and the map makes them worse."""
    recovery = CALIBRATORS["recovery"](gamma=3.0, lam=1.0)
    result = split_half(networks["resnet32"], networks["labels"], recovery, seed=0, metrics={"nll": nll})
    assert result.after["nll"] > result.before["nll"]


@pytest.mark.parametrize("network", NETWORKS)
def test_the_offset_that_softmax_cannot_see_is_nearly_constant(networks, network):
    """So that centring the rows, as vector and matrix scaling do, loses next to nothing."""
    logits = networks[network]
    assert logits.mean(1).std() < 1e-3 * logits.std()
