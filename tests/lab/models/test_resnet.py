import pytest
import torch
from torch import nn

from focalcal.lab.models import basic_resnet, resnet50, wide_resnet26_10
from focalcal.lab.models.resnet import PadShortcut


def shapes(network, images):
    """The size of the maps after every stage."""
    found = []
    for name, stage in network.features.named_children():
        images = stage(images)
        if name.startswith("layer"):
            found.append(tuple(images.shape[1:]))
    return found


def test_option_a_takes_every_other_pixel_and_pads_channels_on_both_sides():
    maps = torch.randn(2, 16, 6, 6)
    out = PadShortcut(16, 32, 2)(maps)
    assert out.shape == (2, 32, 3, 3)
    assert torch.equal(out[:, 8:24], maps[:, :, ::2, ::2])
    assert not out[:, :8].any()
    assert not out[:, 24:].any()


@pytest.mark.parametrize("shortcut", ["conv", "pad"])
def test_stages_of_the_basic_network(shortcut):
    network = basic_resnet(20, 10, shortcut=shortcut).eval()
    with torch.no_grad():
        assert shapes(network, torch.randn(1, 3, 32, 32)) == [(16, 32, 32), (32, 16, 16), (64, 8, 8)]
    assert sum(isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3) for m in network.modules()) == 19
    assert sum(isinstance(m, PadShortcut) for m in network.modules()) == (2 if shortcut == "pad" else 0)


def test_stages_of_resnet50_and_of_the_wide_network():
    with torch.device("meta"):
        for side in (32, 64):
            expected = [(256 * 2**k, side // 2**k, side // 2**k) for k in range(4)]
            assert shapes(resnet50(10).eval(), torch.empty(1, 3, side, side)) == expected
        network = wide_resnet26_10(10).eval()
        assert shapes(network, torch.empty(1, 3, 32, 32)) == [(160, 32, 32), (320, 16, 16), (640, 8, 8)]
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(convolutions) + 1 == 26


def test_a_block_is_its_formula():
    block = basic_resnet(8, 10).eval().features.layer2[0]
    maps = torch.randn(2, 16, 8, 8)
    with torch.no_grad():
        residual = block.bn2(block.conv2(block.bn1(block.conv1(maps)).clamp(min=0)))
        expected = (residual + block.shortcut[1](block.shortcut[0](maps))).clamp(min=0)
        torch.testing.assert_close(block(maps), expected)


def test_convolutions_start_as_he_has_it():
    weight = basic_resnet(8, 10).features.layer3[0].conv2.weight  # 64 filters of 3x3 over 64 channels
    assert weight.std().item() == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.02)
    assert abs(weight.mean().item()) < 1e-3


def test_grey_images_odd_sizes_and_bad_arguments():
    network = basic_resnet(8, 10, channels=1).eval()
    assert network(torch.randn(2, 1, 8, 8)).shape == (2, 10)
    assert basic_resnet(8, 10, shortcut="pad").eval()(torch.randn(2, 3, 29, 31)).shape == (2, 10)
    with pytest.raises(ValueError, match=r"depth must be 6 n \+ 2 .*, got 18"):
        basic_resnet(18, 10)
    with pytest.raises(ValueError, match="depth must be >= 8, got 2"):
        basic_resnet(2, 10)
    with pytest.raises(ValueError, match="shortcut must be one of 'conv', 'pad', got 'A'"):
        basic_resnet(20, 10, shortcut="A")
