"""A small convolutional network, for images from 8x8 on and for machines without a GPU."""

from __future__ import annotations

from torch import Tensor, nn

from focalcal.core.primitives import whole
from focalcal.models.resnet import he_normal


class SmallCNN(nn.Module):
    """Five 3x3 convolutions with batch norm (w, w, 2w, 2w, 4w channels), pooled after the second and the fourth.

    Images (N, channels, H, W), H and W at least 4, to logits (N, classes): the last maps are averaged. 141,034
    parameters for 3 channels, width 32 and 10 classes. Convolutions start as He's N(0, 2 / fan_out).
    """

    def __init__(self, classes: int, *, channels: int = 3, width: int = 32) -> None:
        super().__init__()
        classes, width = whole("classes", classes, 2), whole("width", width, 1)
        inputs = whole("channels", channels, 1)
        layers: list[nn.Module] = []
        for position, outputs in enumerate((width, width, 2 * width, 2 * width, 4 * width)):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)]
            layers.append(nn.ReLU(inplace=True))
            if position in (1, 3):
                layers.append(nn.MaxPool2d(2))
            inputs = outputs
        self.features = nn.Sequential(*layers)
        self.linear = nn.Linear(inputs, classes)
        he_normal(self, "fan_out")

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, classes)."""
        logits: Tensor = self.linear(self.features(images).mean((2, 3)))
        return logits
