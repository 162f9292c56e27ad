"""An objective, a data set and a network of one's own, which study.toml names: focalcal study study.toml."""

import numpy as np
import torch
from torch import Tensor, nn

from focalcal.lab.data import DataSet, Examples


class ConfidencePenalty(nn.Module):
    """Cross-entropy less `beta` times the entropy of the prediction (Pereyra et al., 2017)."""

    def __init__(self, beta: float = 0.1) -> None:
        super().__init__()
        self.beta = beta

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        logs = logits.log_softmax(1)
        return nn.functional.nll_loss(logs, target) + self.beta * (logs.exp() * logs).sum(1).mean()


def spirals(*, arms: int = 3, points: int = 600, seed: int = 0) -> DataSet:
    """Noisy points on spiral arms, one class per arm; the splits are 50 %, 20 % and 30 %."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(arms, size=points)
    radius = rng.uniform(0.1, 1, points)
    angle = 2 * np.pi * (labels / arms + radius / 2) + rng.normal(0, 0.4, points)
    inputs = (radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)).astype(np.float32)
    whole = Examples(inputs, labels, np.arange(points))
    ends = np.split(np.arange(points), [points // 2, 7 * points // 10])
    return DataSet("spirals", tuple(f"arm {k}" for k in range(arms)), *map(whole.take, ends))


class TwoLayers(nn.Module):
    """`classes` is the study's number of classes; other arguments are its model_options."""

    def __init__(self, classes: int, width: int = 32) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(2, width), nn.Linear(width, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.out(torch.tanh(self.hidden(inputs)))
