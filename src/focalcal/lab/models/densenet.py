"""Densely connected networks: Huang et al. (2017), "Densely connected convolutional networks".

Modules carry torchvision's names (`features.denseblock1.denselayer1.norm1`, ...), so that its weights fit CheXNet.
"""

from __future__ import annotations

import re
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from focalcal.core.checks import whole
from focalcal.lab.models.resnet import he_normal
from focalcal.lab.models.weight_files import fill, weights_of

GROWTH = 32
LAYERS = (6, 12, 24, 16)
STEM = 64


class DenseLayer(nn.Module):
    """Batch norm, 1x1 to 4 x 32 channels, batch norm, 3x3 to 32 channels, which join the input."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, 4 * GROWTH, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * GROWTH)
        self.conv2 = nn.Conv2d(4 * GROWTH, GROWTH, 3, padding=1, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) to (N, inputs + 32, H, W)."""
        new = self.conv1(F.relu(self.norm1(maps), inplace=True))
        new = self.conv2(F.relu(self.norm2(new), inplace=True))
        return torch.cat([maps, new], 1)


def _transition(inputs: int) -> nn.Sequential:
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers["norm"] = nn.BatchNorm2d(inputs)
    layers["relu"] = nn.ReLU(inplace=True)
    layers["conv"] = nn.Conv2d(inputs, inputs // 2, 1, bias=False)
    layers["pool"] = nn.AvgPool2d(2)
    return nn.Sequential(layers)


class DenseNet121(nn.Module):
    """Blocks of 6, 12, 24, 16 dense layers with growth 32, halved in channels and size between them.

    Images (N, channels, H, W) to logits (N, outputs). `stem` turns an image into 64 maps.

    Args:
        outputs: how many logits.
        stem: turns an image into 64 maps.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("densenet121", classes=10)
    >>> sum(parameter.numel() for parameter in network.parameters())
    6956298
    """

    def __init__(self, outputs: int, stem: OrderedDict[str, nn.Module]) -> None:
        super().__init__()
        layers = OrderedDict(stem)
        width = STEM
        for number, count in enumerate(LAYERS, start=1):
            block: OrderedDict[str, nn.Module] = OrderedDict()
            for position in range(1, count + 1):
                block[f"denselayer{position}"] = DenseLayer(width)
                width += GROWTH
            layers[f"denseblock{number}"] = nn.Sequential(block)
            if number < len(LAYERS):
                layers[f"transition{number}"] = _transition(width)
                width //= 2
        layers["norm5"] = nn.BatchNorm2d(width)
        layers["relu5"] = nn.ReLU()  # not in place: whoever hooks norm5 sees what it returned
        self.features = nn.Sequential(layers)
        self.classifier = nn.Linear(width, outputs)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, outputs)."""
        logits: Tensor = self.classifier(self.features(images).mean((2, 3)))
        return logits


def densenet121(classes: int, *, channels: int = 3) -> DenseNet121:
    """DenseNet-121 for 32x32 images as Mukhoti et al. (2020) trained it: the stem is one bare 3x3 convolution.

    6,956,298 parameters for 10 classes, 7,048,548 for 100. Starts from torch's defaults, as theirs does.

    Args:
        classes: how many logits.
        channels: of the images.

    Returns:
        The network, for images (N, channels, H, W).

    >>> sum(parameter.numel() for parameter in densenet121(100).parameters())
    7048548
    """
    classes, channels = whole("classes", classes, 2), whole("channels", channels, 1)
    stem: OrderedDict[str, nn.Module] = OrderedDict()
    stem["conv0"] = nn.Conv2d(channels, STEM, 3, padding=1, bias=False)
    return DenseNet121(classes, stem)


def chexnet(classes: int = 14, *, pretrained: str | None = None) -> DenseNet121:
    """CheXNet (Rajpurkar et al., 2017): DenseNet-121 with the ImageNet stem and one logit per pathology.

    Images (N, 3, 224, 224) to logits (N, classes), each for a sigmoid of its own. 6,968,206 parameters for the 14
    pathologies of ChestX-ray14. Starts as torchvision's: He's N(0, 2 / fan_in), the linear layer's bias zero; or from
    `pretrained`, a file, folder or hub id with the weights of torchvision's DenseNet-121. Its head stays if it has
    `classes` outputs and is drawn anew otherwise.

    Args:
        classes: how many logits.
        pretrained: what it starts from; None: random weights.

    Returns:
        The network, for images (N, 3, H, W).

    >>> sum(parameter.numel() for parameter in chexnet().parameters())
    6968206
    """
    classes = whole("classes", classes, 1)
    stem: OrderedDict[str, nn.Module] = OrderedDict()
    stem["conv0"] = nn.Conv2d(3, STEM, 7, 2, padding=3, bias=False)
    stem["norm0"] = nn.BatchNorm2d(STEM)
    stem["relu0"] = nn.ReLU(inplace=True)
    stem["pool0"] = nn.MaxPool2d(3, 2, padding=1)
    network = DenseNet121(classes, stem)
    he_normal(network, "fan_in")
    nn.init.zeros_(network.classifier.bias)
    if pretrained is not None:
        # torchvision's own file, of 2017, writes norm.1 for norm1.
        weights = {
            re.sub(r"\.(norm|conv)\.([12])\.", r".\1\2.", name): value for name, value in weights_of(pretrained).items()
        }
        fill(network, weights, pretrained)
    return network
