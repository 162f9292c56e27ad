"""The network of airbench94 (Jordan, 2024, "94 % on CIFAR-10 in 3.29 seconds on a single GPU", arXiv:2404.00498).

What makes it quick to train: the first layer is computed rather than trained, no scale of a normalisation is trained,
every convolution begins as the identity, and the logits begin small.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from focalcal.core.checks import whole

_SIDE = 2  # of a patch
_SHRINKAGE = 1e-12  # of batch norm: the reference's
_BIAS = 8.0  # a bias is so many times its parameter: under SGD, 64 times the learning rate, as the reference has it
_EIGENVALUE = 5e-4  # added to each eigenvalue of the patches' covariance: the reference's


class Airbench94(nn.Module):
    """A 2x2 whitening convolution, three blocks, a maximum over 3x3, a linear layer without bias.

    Images (N, 3, 32, 32) to logits (N, classes), divided by `divisor`. A block of width w is a 3x3 convolution to w
    channels, a 2x2 maximum, batch norm, GELU, another 3x3 convolution, batch norm, GELU. 1,971,352 parameters for
    widths 64, 256, 256 and 10 classes.

    The whitening filters are the eigenvectors of the 2x2 patches of `whitening`, normalised training images (M, 3, H,
    W), over the roots of their eigenvalues, and these negated; without images they are torch's random ones.
    They stay as they are; their biases are trained in the first `bias_batches` batches, as the gradient of so early a
    layer is a fifth of a step. Batch norm sees `group` images at a time, which stay in a processor's cache, and
    remembers by `momentum` per group. In evaluation the logits are the mean over the image and its mirror
    image. The linear layer is computed in float32, whatever the others are in.

    Args:
        classes: how many logits.
        whitening: normalised training images (M, 3, H, W), or None.
        widths: channels of the three blocks.
        divisor: of the logits.
        group: images per batch norm.
        momentum: of batch norm, per group.
        bias_batches: how long the biases of the whitening are trained.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("airbench94", classes=10)
    >>> sum(parameter.numel() for parameter in network.parameters())
    1971352
    """

    def __init__(
        self,
        classes: int,
        *,
        whitening: Tensor | None = None,
        widths: Sequence[int] = (64, 256, 256),
        divisor: float = 9.0,
        group: int = 128,
        momentum: float = 0.06,
        bias_batches: int = 250,
    ) -> None:
        super().__init__()
        filters = 2 * 3 * _SIDE**2
        self.divisor, self.group, self.bias_batches = divisor, whole("group", group, 2), bias_batches
        random = nn.Conv2d(3, filters, _SIDE).weight.detach()
        self.register_buffer("whitening", random if whitening is None else whitening_filters(whitening))
        self.bias = nn.Parameter(torch.zeros(filters))
        self.whitening: Tensor
        self.batches: Tensor
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))
        inputs = [filters, *widths[:-1]]
        blocks = [_block(before, after, momentum) for before, after in zip(inputs, widths, strict=True)]
        self.features = nn.Sequential(*blocks)
        self.linear = nn.Linear(widths[-1], whole("classes", classes, 2), bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, classes)."""
        if not self.training:
            return (self._in_groups(images) + self._in_groups(images.flip(3))) / 2
        self.batches += 1
        return self._in_groups(images)

    def _in_groups(self, images: Tensor) -> Tensor:
        return torch.cat([self._logits(part) for part in torch.split(images, self.group)])

    def _logits(self, images: Tensor) -> Tensor:
        bias = self.bias * _BIAS
        if self.training and self.batches > self.bias_batches:
            bias = bias.detach()
        maps = self.features(F.gelu(F.conv2d(images, self.whitening, bias)))
        with torch.autocast(images.device.type, enabled=False):
            logits: Tensor = self.linear(F.max_pool2d(maps, 3).flatten(1).to(self.linear.weight.dtype))
        return logits / self.divisor


def whitening_filters(images: Tensor) -> Tensor:
    """(24, 3, 2, 2): the largest eigenvalue's filter first, then the negatives of all."""
    patches = images.unfold(2, _SIDE, 1).unfold(3, _SIDE, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, 3 * _SIDE**2)
    values, vectors = torch.linalg.eigh(torch.cov(patches.double().T))
    filters = (vectors / (values + _EIGENVALUE).sqrt()).T.flip(0).reshape(-1, 3, _SIDE, _SIDE)
    return torch.cat([filters, -filters]).float()


def _block(inputs: int, width: int, momentum: float) -> nn.Sequential:
    first, second = (nn.Conv2d(before, width, 3, padding=1, bias=False) for before in (inputs, width))
    for convolution in (first, second):
        nn.init.dirac_(convolution.weight[: convolution.in_channels])
    norms = [_Shifted(width, momentum) for _ in range(2)]
    return nn.Sequential(first, nn.MaxPool2d(2), norms[0], nn.GELU(), second, norms[1], nn.GELU())


class _Shifted(nn.BatchNorm2d):
    """Batch norm with a bias and without a scale."""

    def __init__(self, width: int, momentum: float) -> None:
        super().__init__(width, eps=_SHRINKAGE, momentum=momentum, affine=False)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, maps: Tensor) -> Tensor:
        """The maps normalised, plus the bias."""
        mean, variance, shift = self.running_mean, self.running_var, self.bias * _BIAS
        return F.batch_norm(maps, mean, variance, None, shift, self.training, self.momentum or 0.0, self.eps)
