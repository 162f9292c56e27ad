"""How fresh convolutions start: He et al. (2015), "Delving deep into rectifiers"."""

from __future__ import annotations

from typing import Literal

from torch import nn


def he_normal(network: nn.Module, mode: Literal["fan_in", "fan_out"]) -> None:
    """Draw the weights of every convolution from N(0, 2 / fan), in the order of `network.modules()`."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
