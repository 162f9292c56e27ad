"""Stochastic depth: Huang et al. (2016), "Deep networks with stochastic depth"."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from focalcal.models.arguments import share


def drop_path(branch: Tensor, rate: float, *, training: bool) -> Tensor:
    """In training, the branch of each example is zero with probability `rate`, else divided by 1 - rate.

    The mean is the branch, which is also what comes back outside training. (N, ...) to (N, ...).
    """
    if not training or rate == 0.0:
        return branch
    kept = torch.empty(branch.shape[0], *[1] * (branch.dim() - 1), dtype=branch.dtype, device=branch.device)
    return branch * kept.bernoulli_(1.0 - rate).div_(1.0 - rate)


class DropPath(nn.Module):
    """`drop_path` as a module; no parameters."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = share("rate", rate)

    def forward(self, branch: Tensor) -> Tensor:
        """The branch, or nothing of it."""
        return drop_path(branch, self.rate, training=self.training)

    def extra_repr(self) -> str:
        """The rate."""
        return f"rate={self.rate:g}"


def drop_rates(highest: float, depth: int) -> list[float]:
    """A rate for each of `depth` blocks, growing evenly from 0 to `highest`, as the references have it."""
    return [highest * position / max(depth - 1, 1) for position in range(depth)]
