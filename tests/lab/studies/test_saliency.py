"""Grad-CAM: the formula by hand, the place it points at, the layouts of every kind of network."""

import io

import numpy as np
import pytest
import torch
from torch import nn

from focalcal.lab.data import Examples
from focalcal.lab.models import MODEL_INFO, build_model
from focalcal.lab.studies.saliency import Saliency, grad_cam, saliency_file


class TinyCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(1, 2, 3, bias=False)
        self.linear = nn.Linear(2, 3)

    def forward(self, images):
        return self.linear(torch.relu_(self.features(images)).mean((2, 3)))  # in place, as real networks do


def test_the_formula_by_hand():
    torch.manual_seed(0)
    network = TinyCNN()
    images = torch.randn(5, 1, 6, 6)
    found = grad_cam(network, images, layer="features", layout="maps")
    with torch.no_grad():
        features = nn.functional.conv2d(images, network.features.weight)
        logits = features.relu().mean((2, 3)) @ network.linear.weight.T + network.linear.bias
        expected = torch.zeros(5, 4, 4)
        for n in range(5):
            weight = network.linear.weight[logits[n].argmax()]
            for c in range(2):
                slope = weight[c] * (features[n, c] > 0) / 16  # of a mean over 4 x 4 positions, through the rectifier
                expected[n] += slope.mean() * features[n, c]
    np.testing.assert_allclose(found.maps, expected.relu().numpy(), atol=1e-7)
    assert found.maps.max() > 0
    assert found.predicted.tolist() == logits.argmax(1).tolist()
    assert found.maps.dtype == np.float32


def test_the_network_is_left_as_it_was():
    network = build_model("small_cnn", classes=3, channels=1, width=4).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with torch.no_grad():  # whatever the caller's mode
        grad_cam(network, torch.randn(3, 1, 8, 8), layer="features", layout="maps")
    assert network.training
    assert all(one.grad is None for one in network.parameters())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert not network.features._forward_hooks


def test_frozen_networks_have_maps_too():
    network = build_model("small_cnn", classes=3, channels=1, width=4)
    images = torch.randn(2, 1, 8, 8)
    free = grad_cam(network, images, layer="features", layout="maps")
    frozen = grad_cam(network.requires_grad_(False).eval(), images, layer="features", layout="maps")
    np.testing.assert_allclose(free.maps, frozen.maps, rtol=1e-4, atol=1e-6)


def test_it_points_at_what_decides():
    """Trained to tell a bright square from none, the map is highest where the square is."""
    torch.manual_seed(0)
    draws = torch.Generator().manual_seed(0)
    images = 0.1 * torch.randn(120, 1, 32, 32, generator=draws)
    corners = torch.randint(25, (120, 2), generator=draws)
    labels = torch.arange(120) % 2
    for image, label, (row, column) in zip(images, labels, corners.tolist(), strict=True):
        if label:
            image[0, row : row + 8, column : column + 8] += 1
    network = build_model("small_cnn", classes=2, channels=1, width=4)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()
    shown = labels.bool()
    found = grad_cam(network, images[shown], layer="features", layout="maps")
    assert (found.predicted == 1).mean() > 0.9
    scale = 32 // found.maps.shape[1]
    inside = 0
    for one, (row, column) in zip(found.maps, corners[shown].tolist(), strict=True):
        highest = np.array(np.unravel_index(one.argmax(), one.shape)) * scale + (scale - 1) / 2
        inside += bool(np.abs(highest - [row + 3.5, column + 3.5]).max() <= 6)
    assert inside > 0.8 * len(found.maps)  # by chance a seventh


@pytest.mark.parametrize(("name", "side"), [("resnet8", 8), ("vit_small", 2), ("swin_tiny", 1)])
def test_every_layout_gives_maps(name, side):
    torch.manual_seed(0)
    options = {"vit_small": {"image_size": 32}, "swin_tiny": {"image_size": 32, "window": 1}}.get(name, {})
    network = build_model(name, classes=4, **options)
    info = MODEL_INFO[name]
    found = grad_cam(network, torch.randn(2, 3, 32, 32), layer=info.feature_layer, layout=info.feature_layout)
    assert found.maps.shape == (2, side, side)
    assert np.isfinite(found.maps).all()
    assert (found.maps >= 0).all()


def test_a_class_token_is_no_place():
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Identity()

        def forward(self, tokens):
            return self.layer(tokens).flatten(1)[:, 2:4]  # the two channels of the first patch

    tokens = torch.zeros(1, 5, 2)
    tokens[0, :, 1] = torch.tensor([9.0, 8.0, 0.0, 0.0, 1.0])  # the class token, then 2 x 2 patches
    found = grad_cam(Tokens(), tokens, layer="layer", layout="class_and_patches")
    np.testing.assert_allclose(found.maps, [[[2.0, 0.0], [0.0, 0.25]]])  # alpha is 1/4, the mean of (1, 0, 0, 0)


def test_the_file_holds_what_is_drawn():
    found = Saliency(np.ones((2, 3, 3), np.float32), np.array([1, 0]))
    images = np.arange(2 * 16, dtype=np.uint8).reshape(2, 1, 4, 4)
    content = saliency_file(found, Examples(images, np.array([1, 1]), np.array(["a", "b"])))
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        assert set(file) == {"maps", "predicted", "labels", "ids", "images"}
        assert np.array_equal(file["images"], images)
        assert file["predicted"].tolist() == [1, 0]
        assert file["ids"].tolist() == ["a", "b"]
