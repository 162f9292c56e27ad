"""EfficientNet-Lite0, and the weights that are published of it."""

import re

import pytest
import torch
import torch.nn.functional as F

from focalcal.lab.models import EfficientNetLite0, PublishedWeightsError, build_model
from focalcal.lab.models.efficientnet import _Layer

THEIRS = (  # of ours, as the package efficientnet-lite-pytorch names them
    (r"^stem\.conv", "_conv_stem"),
    (r"^stem\.norm", "_bn0"),
    (r"^head\.conv", "_conv_head"),
    (r"^head\.norm", "_bn1"),
    (r"^classifier", "_fc"),
    (r"^blocks", "_blocks"),
    (r"(expand|depthwise|project)\.conv", r"_\1_conv"),
    (r"expand\.norm", "_bn0"),
    (r"depthwise\.norm", "_bn1"),
    (r"project\.norm", "_bn2"),
)


def published(network):
    renamed = {}
    for name, value in network.state_dict().items():
        for ours, theirs in THEIRS:
            name = re.sub(ours, theirs, name)
        renamed[name] = value
    return renamed


def test_published_weights_but_for_a_head_of_another_size(tmp_path):
    one = EfficientNetLite0(7)
    torch.save(published(one), tmp_path / "weights.pth")
    again = EfficientNetLite0(7, pretrained=str(tmp_path / "weights.pth")).eval()
    images = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(again(images), one.eval()(images))
    other = EfficientNetLite0(3, pretrained=str(tmp_path / "weights.pth")).eval()
    assert other(images).shape == (2, 3)
    torch.testing.assert_close(other.stem(images), one.stem(images))
    torch.save({"_conv_stem.weight": torch.zeros(1)}, tmp_path / "weights.pth")
    with pytest.raises(PublishedWeightsError, match="the weights must be those of EfficientNetLite0"):
        EfficientNetLite0(3, pretrained=str(tmp_path / "weights.pth"))


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (5, 1), (3, 2), (5, 2)])
def test_a_layer_pads_as_tensorflow_does(kernel, stride):
    layer = _Layer(1, 1, kernel, stride=stride, linear=True).eval()
    layer.conv.weight.data.fill_(1.0)
    image = torch.zeros(1, 1, 8, 8)
    image[0, 0, 0, 0] = image[0, 0, 7, 7] = 1
    before = max((8 // stride - 1) * stride + kernel - 8, 0) // 2  # of "SAME", the smaller half
    sums = layer(image)[0, 0] * (1 + 1e-3) ** 0.5
    padded = F.pad(image, [before, kernel] * 2)
    expected = F.conv2d(padded, torch.ones(1, 1, kernel, kernel), stride=stride)[0, 0, : 8 // stride, : 8 // stride]
    torch.testing.assert_close(sums, expected)


@pytest.mark.slow
def test_the_real_weights(data_folder):
    folder = data_folder / "efficientnet-lite0"
    if not folder.is_dir():
        pytest.skip(f"needs the weights of EfficientNet-Lite0 in {folder} (docs/guide/models.md)")
    network = build_model("efficientnet_lite0", classes=1000, pretrained=str(folder)).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        logits = network(torch.randn(2, 3, 64, 64))
    # what the package efficientnet-lite-pytorch 0.1.0 says of the same numbers
    torch.testing.assert_close(logits[0, :3], torch.tensor([-2.0353, -0.2189, 0.0062]), atol=1e-4, rtol=0)
