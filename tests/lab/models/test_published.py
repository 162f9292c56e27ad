"""Published ResNets give their published answers."""

import io
import pickle
import re

import numpy as np
import pytest
import torch
from support.cifar_batches import cifar10_test_images

from focalcal.lab.models import IMAGENET, PublishedWeightsError, basic_resnet, load_published_resnet

NETWORKS = {"resnet20": 20, "resnet32": 32, "resnet44": 44, "resnet56": 56}
ERRORS = {"resnet20": 8.27, "resnet32": 7.37, "resnet44": 6.90, "resnet56": 6.61}


def existing(path):
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture
def weights(data_folder):
    return existing(data_folder / "resnets" / "cifar10_resnets.npz")


@pytest.fixture
def stored(data_folder):
    with np.load(existing(data_folder / "logits" / "cifar10_test_logits_akamaster_resnets.npz")) as archive:
        return dict(archive)


@pytest.fixture
def test_set(data_folder):
    existing(data_folder / "cifar-10-batches-py" / "test_batch")
    return cifar10_test_images(data_folder)


def logits(network, images):
    mean, std = (torch.tensor(values)[:, None, None] for values in (IMAGENET.mean, IMAGENET.std))
    with torch.inference_mode():
        return torch.cat([network((piece / 255 - mean) / std) for piece in images.split(250)]).numpy()


@pytest.mark.parametrize("name", NETWORKS)
def test_published_weights_reproduce_the_stored_logits(name, weights, stored, test_set):
    images, labels = test_set
    np.testing.assert_array_equal(labels, stored["labels"])
    network = load_published_resnet(weights, name)
    assert not network.training
    np.testing.assert_allclose(logits(network, images[:100]), stored[name][:100], rtol=0, atol=1e-4)
    assert round(100 * (stored[name].argmax(1) != labels).mean(), 2) == ERRORS[name]


@pytest.mark.slow
def test_the_published_error_of_the_smallest(weights, stored, test_set):
    """The deeper ones took 28, 44 and 51 s of one core, and gave the decisions of the stored logits."""
    images, labels = test_set
    decisions = logits(load_published_resnet(weights, "resnet20"), images).argmax(1)
    second, first = np.sort(stored["resnet20"], axis=1)[:, -2:].T
    clear = first - second > 1e-3  # rounding may decide the others
    assert clear.mean() > 0.999
    np.testing.assert_array_equal(decisions[clear], stored["resnet20"].argmax(1)[clear])
    assert 100 * (decisions != labels).mean() == pytest.approx(ERRORS["resnet20"], abs=0.02)


def archive(name="resnet20"):
    """Random weights under published names."""
    network = basic_resnet(NETWORKS[name], 10, shortcut="pad")
    state = {key: value.numpy() for key, value in network.state_dict().items() if "num_batches" not in key}
    return network.eval(), {f"{name}/{key.removeprefix('features.')}": value for key, value in state.items()}


def test_an_archive_restores_the_network(tmp_path):
    network, arrays = archive("resnet32")
    np.savez(tmp_path / "weights.npz", **arrays, **{"another/linear.bias": np.zeros(3)})
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(load_published_resnet(tmp_path / "weights.npz", "resnet32")(images), network(images))


KEY = "layer2.0.bn1.running_var"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (KEY, None, rf"weights.npz lacks features.{KEY}"),
        ("layer2.0.shortcut.0.weight", np.zeros((32, 16, 1, 1), np.float32), "shortcut.0.weight as well"),
        ("linear.weight", np.zeros((100, 64), np.float32), r"has linear.weight of shape \(100, 64\), not \(10, 64\)"),
        ("linear.bias", np.zeros(10, np.int64), "has torch.int64 in linear.bias"),
        ("linear.bias", np.full(10, np.nan, np.float32), "has NaN or infinity in linear.bias"),
        ("linear.bias", np.array([{}] * 10), "holds more than tensors"),
    ],
)
def test_a_changed_archive_is_refused(key, value, message, tmp_path):
    _, arrays = archive()
    arrays.pop(f"resnet20/{key}", None)
    np.savez(tmp_path / "weights.npz", **arrays, **({} if value is None else {f"resnet20/{key}": value}))
    with pytest.raises(PublishedWeightsError, match=message):
        load_published_resnet(tmp_path / "weights.npz", "resnet20")


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "weights.npz"
    np.savez(path, **archive("resnet32")[1])
    with pytest.raises(PublishedWeightsError, match="no array that begins with 'resnet20/', only with resnet32"):
        load_published_resnet(path, "resnet20")
    with pytest.raises(ValueError, match=r"name must be one of 'resnet20', .*, got 'resnet110'"):
        load_published_resnet(path, "resnet110")
    flipped = bytearray(path.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    for damage in (b"", b"weights", bytes(flipped[:1000]), flipped, pickle.dumps({"a": 1}), npy()):
        path.write_bytes(damage)
        with pytest.raises(PublishedWeightsError, match=re.escape(str(path))):
            load_published_resnet(path, "resnet32")
    with pytest.raises(FileNotFoundError):
        load_published_resnet(tmp_path / "absent.npz", "resnet20")


def npy():
    held = io.BytesIO()
    np.save(held, np.zeros(3))
    return held.getvalue()
