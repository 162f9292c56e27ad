"""Several modules as one, so that they are traced, compiled or exported at once."""

from collections.abc import Iterable

from torch import Tensor, nn


class SideBySide(nn.Module):
    """What each of the modules makes of the same logits."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        super().__init__()
        self.each = nn.ModuleList(modules)

    def forward(self, logits: Tensor) -> tuple[Tensor, ...]:
        return tuple(module(logits) for module in self.each)
