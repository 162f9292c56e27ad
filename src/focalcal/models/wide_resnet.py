"""Wide residual networks: Zagoruyko and Komodakis (2016), in the form that Mukhoti et al. (2020) trained."""

from __future__ import annotations

from focalcal.models.resnet import BasicBlock, ResNet


def wide_resnet26_10(classes: int, *, channels: int = 3) -> ResNet:
    """Wide-ResNet-26-10: a stem of 16, three stages of four basic blocks of 160, 320, 640 channels, no dropout.

    Images (N, channels, H, W) to logits (N, classes). 36,481,434 parameters for 10 classes, 36,539,124 for 100. Batch
    norm and rectifier follow the convolutions, where the original puts them before; 26 counts the stem, 24 convolutions
    and the linear layer, and by the original's rule, 6 n + 4, this network would be called 28 layers deep.
    """
    return ResNet(classes, BasicBlock, stem=16, widths=(160, 320, 640), blocks=(4, 4, 4), channels=channels)
