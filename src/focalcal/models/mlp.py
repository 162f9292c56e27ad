"""A multi-layer perceptron for feature vectors."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from focalcal.core.primitives import share, whole


class MLP(nn.Module):
    """Linear layers with rectifiers and dropout between them; no hidden layer is multinomial logistic regression.

    Inputs (N, features), or any (N, ...) of that many numbers per example, to logits (N, classes). The widths w_0 =
    features, w_1, ..., classes make sum (w_i + 1) w_{i+1} parameters: 85,002 for 64 features and 10 classes. Layers
    start from torch's defaults.
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
