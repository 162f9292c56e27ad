"""Residual networks for small images: He et al. (2016), "Deep residual learning for image recognition".

Wide ones: Zagoruyko and Komodakis (2016), in the form that Mukhoti et al. (2020) trained. Published weights are those
of Yerlan Idelbayev (akamaster/pytorch_resnet_cifar10): option-A shortcuts, trained on all 50,000 training images of
CIFAR-10 with ImageNet's normalisation. Test errors: 8.27, 7.37, 6.90 and 6.61 % for 20, 32, 44 and 56 layers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from focalcal.core.checks import one_of, whole
from focalcal.lab.models.weight_files import PublishedWeightsError, fill, weights_of

Shortcut = Literal["conv", "pad"]
SHORTCUTS: tuple[Shortcut, ...] = ("conv", "pad")
PUBLISHED = {"resnet20": 20, "resnet32": 32, "resnet44": 44, "resnet56": 56}  # by name, the depth


def he_normal(network: nn.Module, mode: Literal["fan_in", "fan_out"]) -> None:
    """Draw the weights of every convolution from N(0, 2 / fan), in the order of `network.modules()`.

    He et al. (2015), "Delving deep into rectifiers".
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")


class PadShortcut(nn.Module):
    """Option A of He et al.: every stride-th pixel, and zero channels to either side; no parameters."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.before = (outputs - inputs) // 2
        self.after = outputs - inputs - self.before

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) to (N, outputs, H / stride, W / stride)."""
        return F.pad(maps[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.before, self.after))

    def extra_repr(self) -> str:
        """The stride and the number of zero channels."""
        return f"stride={self.stride}, before={self.before}, after={self.after}"


def _shortcut(inputs: int, outputs: int, stride: int, kind: Shortcut) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    if kind == "pad":
        return PadShortcut(inputs, outputs, stride)
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions, the first with the stride; (N, inputs, H, W) to (N, width, H / stride, W / stride)."""

    def __init__(self, inputs: int, width: int, stride: int, shortcut: Shortcut = "conv") -> None:
        super().__init__()
        self.outputs = width
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = _shortcut(inputs, width, stride, shortcut)

    def forward(self, maps: Tensor) -> Tensor:
        """The rectified sum of the residual and the shortcut."""
        residual = F.relu(self.bn1(self.conv1(maps)), inplace=True)
        residual = self.bn2(self.conv2(residual))
        return F.relu(residual + self.shortcut(maps), inplace=True)


class Bottleneck(nn.Module):
    """1x1 down to `width`, 3x3 with the stride, 1x1 up to 4 `width`."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.outputs = outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut = _shortcut(inputs, outputs, stride, "conv")

    def forward(self, maps: Tensor) -> Tensor:
        """The rectified sum of the residual and the shortcut."""
        residual = F.relu(self.bn1(self.conv1(maps)), inplace=True)
        residual = F.relu(self.bn2(self.conv2(residual)), inplace=True)
        residual = self.bn3(self.conv3(residual))
        return F.relu(residual + self.shortcut(maps), inplace=True)


Block = Callable[[int, int, int], BasicBlock | Bottleneck]


class ResNet(nn.Module):
    """A 3x3 stem without pooling, stages of blocks that halve the image from the second on, a mean and a linear layer.

    Images (N, channels, H, W) of any size to logits (N, classes).
    Convolutions start as He's N(0, 2 / fan_out), the linear layer as torch's default.

    Args:
        classes: how many logits.
        block: makes a block.
        stem: channels of the stem.
        widths: of the stages.
        blocks: how many each stage has.
        channels: of the images.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("resnet50", classes=10)
    >>> sum(parameter.numel() for parameter in network.parameters())
    23520842
    """

    def __init__(
        self,
        classes: int,
        block: Block,
        *,
        stem: int,
        widths: tuple[int, ...],
        blocks: tuple[int, ...],
        channels: int = 3,
    ) -> None:
        super().__init__()
        classes, channels = whole("classes", classes, 2), whole("channels", channels, 1)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["conv1"] = nn.Conv2d(channels, stem, 3, padding=1, bias=False)
        layers["bn1"] = nn.BatchNorm2d(stem)
        layers["relu"] = nn.ReLU(inplace=True)
        inputs = stem
        for number, (width, count) in enumerate(zip(widths, blocks, strict=True), start=1):
            stage = []
            for position in range(count):
                stage.append(block(inputs, width, 2 if number > 1 and position == 0 else 1))
                inputs = stage[-1].outputs
            layers[f"layer{number}"] = nn.Sequential(*stage)
        self.features = nn.Sequential(layers)
        self.linear = nn.Linear(inputs, classes)
        he_normal(self, "fan_out")

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, classes)."""
        logits: Tensor = self.linear(self.features(images).mean((2, 3)))
        return logits


def basic_resnet(depth: int, classes: int, *, shortcut: Shortcut = "conv", channels: int = 3) -> ResNet:
    """ResNet-`depth` of He et al. for CIFAR: depth = 6 n + 2, three stages of n basic blocks of 16, 32, 64 channels.

    `shortcut` is what joins stages: "conv", a 1x1 convolution and batch norm, or "pad", option A of the paper, which
    the published ResNet-20/32/44/56 use. Parameters for 10 classes:

    =========  =======  =======  =======  =======  =======  =========
    depth            8       20       32       44       56        110
    =========  =======  =======  =======  =======  =======  =========
    conv        78,042  272,474  466,906  661,338  855,770  1,730,714
    pad         75,290  269,722  464,154  658,586  853,018  1,727,962
    =========  =======  =======  =======  =======  =======  =========

    Args:
        depth: 6 n + 2.
        classes: how many logits.
        shortcut: what joins stages.
        channels: of the images.

    Returns:
        The network, for images (N, channels, H, W).

    >>> sum(parameter.numel() for parameter in basic_resnet(20, 10, shortcut="pad").parameters())
    269722
    """
    whole("depth", depth, 8)
    if (depth - 2) % 6:
        raise ValueError(f"depth must be 6 n + 2 (8, 20, 32, 44, 56, 110, ...), got {depth}")
    one_of("shortcut", shortcut, SHORTCUTS)
    count = (depth - 2) // 6
    block = partial(BasicBlock, shortcut=shortcut)
    return ResNet(classes, block, stem=16, widths=(16, 32, 64), blocks=(count, count, count), channels=channels)


def resnet50(classes: int, *, channels: int = 3) -> ResNet:
    """ResNet-50 for small images: bottlenecks 3, 4, 6, 3 of width 64 to 512, stride on the 3x3, a 3x3 stem of 64.

    23,520,842 parameters for 10 classes, 23,705,252 for 100, 23,910,152 for 200. The same network serves CIFAR (32x32,
    last maps 4x4) and Tiny-ImageNet (64x64, last maps 8x8), since the maps are averaged.

    Args:
        classes: how many logits.
        channels: of the images.

    Returns:
        The network, for images (N, channels, H, W).

    >>> sum(parameter.numel() for parameter in resnet50(100).parameters())
    23705252
    """
    widths = (64, 128, 256, 512)
    return ResNet(classes, Bottleneck, stem=64, widths=widths, blocks=(3, 4, 6, 3), channels=channels)


def wide_resnet26_10(classes: int, *, channels: int = 3) -> ResNet:
    """Wide-ResNet-26-10: a stem of 16, three stages of four basic blocks of 160, 320, 640 channels, no dropout.

    Images (N, channels, H, W) to logits (N, classes). 36,481,434 parameters for 10 classes, 36,539,124 for 100. Batch
    norm and rectifier follow the convolutions, where the original puts them before; 26 counts the stem, 24 convolutions
    and the linear layer, and by the original's rule, 6 n + 4, this network would be called 28 layers deep.

    Args:
        classes: how many logits.
        channels: of the images.

    Returns:
        The network.

    >>> sum(parameter.numel() for parameter in wide_resnet26_10(10).parameters())
    36481434
    """
    return ResNet(classes, BasicBlock, stem=16, widths=(160, 320, 640), blocks=(4, 4, 4), channels=channels)


def load_published_resnet(path: str | PathLike[str], name: str) -> ResNet:
    """A published ResNet for 10 classes. Every key of its weights must be there, and no other, in its shape; nothing
    is unpickled. Images (N, 3, 32, 32) in [0, 1] want the normalisation `focalcal.lab.models.IMAGENET`.

    Args:
        path: an .npz archive whose arrays are called NAME/KEY, as in "resnet20/layer1.0.conv1.weight"; the arrays
            of other networks are left alone.
        name: "resnet20", "resnet32", "resnet44" or "resnet56".

    Returns:
        The network, in evaluation mode.

    >>> from focalcal.lab.models import load_published_resnet
    >>> network = load_published_resnet("cifar10_resnets.npz", "resnet20")  # doctest: +SKIP
    """
    one_of("name", name, PUBLISHED)
    network, prefix, arrays = basic_resnet(PUBLISHED[name], 10, shortcut="pad"), f"{name}/", weights_of(path)
    own = {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
    if not own:
        others = sorted({key.partition("/")[0] for key in arrays})
        raise PublishedWeightsError(
            f"{path} has no array that begins with {prefix!r}, only with {', '.join(others[:5]) or 'nothing'}; "
            "give the archive of weights, whose arrays are called NAME/KEY"
        )
    fill(network, {key if key.startswith("linear.") else f"features.{key}": own[key] for key in own}, path)
    return network.eval()
