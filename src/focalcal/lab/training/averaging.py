"""The average of a network's weights over its training, in place of the last step's."""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def move_average(average: nn.Module, network: nn.Module, *, share: float, steps: int) -> None:
    """Move `average` towards `network`, after `steps` steps, by the fraction 1 / (1 + share (steps - 1)).

    An average over about the last `share` of all steps so far, however many there are: polynomial-decay averaging with
    eta = 1 / share - 1 (Shamir and Zhang, 2013, "Stochastic gradient descent for non-smooth optimization"). share = 1
    is the plain mean. Running statistics of batch norm are averaged like weights, counters are copied.
    """
    fraction = 1 / (1 + share * (steps - 1))
    for kept, present in zip(average.state_dict().values(), network.state_dict().values(), strict=True):
        if kept.is_floating_point():
            kept.lerp_(present, fraction)
        else:
            kept.copy_(present)
