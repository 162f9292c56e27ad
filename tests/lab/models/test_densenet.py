import torch

from focalcal.lab.models import chexnet, densenet121


def test_weights_are_called_as_in_torchvision():
    with torch.device("meta"):
        small, large = densenet121(10).eval(), chexnet().eval()
        assert small.features(torch.empty(1, 3, 32, 32)).shape == (1, 1024, 4, 4)
        assert large(torch.empty(1, 3, 224, 224)).shape == (1, 14)  # pathologies
        names = set(large.state_dict())
    assert {
        "features.conv0.weight",
        "features.norm0.running_mean",
        "features.denseblock1.denselayer1.norm1.weight",
        "features.denseblock4.denselayer16.conv2.weight",
        "features.transition3.conv.weight",
        "features.norm5.bias",
        "classifier.weight",
    } <= names
    assert len(names) == 727  # 121 norms of 5, 120 convolutions, the head's 2


def test_a_dense_layer_keeps_its_input():
    layer = densenet121(10).eval().features.denseblock1[0]
    maps = torch.randn(2, 64, 5, 5)
    with torch.no_grad():
        out = layer(maps)
        new = layer.conv2(layer.norm2(layer.conv1(layer.norm1(maps).clamp(min=0))).clamp(min=0))
    assert torch.equal(out[:, :64], maps)
    torch.testing.assert_close(out[:, 64:], new)
