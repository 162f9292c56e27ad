"""Small networks, for machines without a GPU: a convolutional one for images from 8x8 on, a perceptron for features."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from focalcal.core.checks import share, whole
from focalcal.lab.models.resnet import he_normal


class SmallCNN(nn.Module):
    """Five 3x3 convolutions with batch norm (w, w, 2w, 2w, 4w channels), pooled after the second and the fourth.

    Images (N, channels, H, W), H and W at least 4, to logits (N, classes): the last maps are averaged. 141,034
    parameters for 3 channels, width 32 and 10 classes. Convolutions start as He's N(0, 2 / fan_out).

    Args:
        classes: how many logits.
        channels: of the images.
        width: w.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("small_cnn", classes=10)
    >>> sum(parameter.numel() for parameter in network.parameters())
    141034
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


class MLP(nn.Module):
    """Linear layers with rectifiers and dropout between them; no hidden layer is multinomial logistic regression.

    Inputs (N, features), or any (N, ...) of that many numbers per example, to logits (N, classes). The widths w_0 =
    features, w_1, ..., classes make sum (w_i + 1) w_{i+1} parameters: 85,002 for 64 features and 10 classes. Layers
    start from torch's defaults.

    Args:
        classes: how many logits.
        features: numbers per example.
        hidden: widths of the hidden layers.
        dropout: the rate, after each of them.

    >>> from focalcal.lab.models import build_model
    >>> network = build_model("mlp", classes=10, features=64)
    >>> sum(parameter.numel() for parameter in network.parameters())
    85002
    """

    def __init__(
        self, classes: int, *, features: int, hidden: Sequence[int] = (256, 256), dropout: float = 0.0
    ) -> None:
        super().__init__()
        classes, self.width = whole("classes", classes, 2), whole("features", features, 1)
        drop = share("dropout", dropout)
        layers: list[nn.Module] = []
        inputs = self.width
        for width in hidden:
            layers += [nn.Linear(inputs, whole("hidden", width, 1)), nn.ReLU(inplace=True)]
            if drop:
                layers.append(nn.Dropout(drop))
            inputs = width
        self.hidden = nn.Sequential(*layers)
        self.linear = nn.Linear(inputs, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (N, classes)."""
        flat = inputs.flatten(1)
        if flat.shape[1] != self.width:
            raise ValueError(
                f"inputs must hold features = {self.width} numbers per example, got {flat.shape[1]} "
                f"from shape {tuple(inputs.shape)}; build the network with features={flat.shape[1]}"
            )
        logits: Tensor = self.linear(self.hidden(flat))
        return logits
