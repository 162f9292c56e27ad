"""The optimiser of a recipe, with what weight decay spares in a group of its own, and its learning rate."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from focalcal.lab.training.recipe import Optimizer, Recipe

_KINDS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
# As `transformers` names them in ViT and Swin.
_POSITIONS = ("position_embeddings", "cls_token", "relative_position_bias_table")
_PLATEAU_THRESHOLD = 1e-4  # a loss counts as fallen if it is below best * (1 - this), torch's rule


def build_optimizer(settings: Optimizer, network: nn.Module) -> torch.optim.Optimizer:
    """Two groups at most, decayed and spared, each in the order of `network.named_parameters()`; frozen ones in none.

    torch's fused kernels are used where there are: a step of a small network is a fifth as long with them.
    """
    spared = set(undecayed_names(network, settings.undecayed))
    trained = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
    groups: list[dict[str, Any]] = [
        {"params": [trained[name] for name in trained if name not in spared], "weight_decay": settings.weight_decay},
        {"params": [trained[name] for name in trained if name in spared], "weight_decay": 0.0},
    ]
    options: dict[str, Any] = {"lr": settings.lr}
    if settings.name == "sgd":
        options |= {"momentum": settings.momentum, "nesterov": settings.nesterov}
    else:
        options |= {"betas": settings.betas}
    options["fused"] = all(weight.device.type in ("cpu", "cuda") for weight in trained.values())
    return _KINDS[settings.name]([group for group in groups if group["params"]], **options)


def undecayed_names(network: nn.Module, kinds: tuple[str, ...]) -> Iterator[str]:
    """The names of the parameters of these kinds: "bias", "norm", "position", as `Optimizer` describes them."""
    for prefix, module in network.named_modules():
        for name, _ in module.named_parameters(recurse=False):
            if (
                ("norm" in kinds and isinstance(module, _NORMS))
                or ("bias" in kinds and name == "bias")
                or ("position" in kinds and name in _POSITIONS)
            ):
                yield f"{prefix}.{name}" if prefix else name


def rate_share(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """The learning rate in step 0, 1, ... divided by `optimizer.lr`, the plateau's part left out.

    warm-up     (step + 1) / w over the first w = warmup * steps_per_epoch steps
    milestones  factor ^ (how many milestones lie at or before the number of whole epochs done)
    cosine      (1 + cos(pi (step - w) / (total - w))) / 2, which would be 0 at step `total`
    linear      1 - (1 - factor) (step - w) / (total - w), which would be `factor` at step `total`
    """
    schedule = recipe.schedule
    warm = schedule.warmup * steps_per_epoch
    if step < warm:
        return (step + 1) / warm
    if schedule.kind == "milestones":
        assert schedule.factor is not None
        return float(schedule.factor ** bisect_right(schedule.milestones, step // steps_per_epoch))
    if schedule.kind in ("cosine", "linear"):
        share = (step - warm) / (recipe.epochs * steps_per_epoch - warm)
        if schedule.kind == "linear":
            return 1 - (1 - (schedule.factor or 0.0)) * share
        return (1 + math.cos(math.pi * share)) / 2
    return 1.0


@dataclass
class Plateau:
    """How often the rate was lowered, and since when the validation loss has not fallen; torch's rule.

    A checkpoint keeps its three numbers.
    """

    best: float = math.inf
    waited: int = 0
    lowered: int = 0

    def see(self, loss: float, patience: int) -> None:
        """Take an epoch's validation loss; lower the rate after more than `patience` epochs without a fall."""
        if loss < self.best * (1 - _PLATEAU_THRESHOLD) if math.isfinite(self.best) else loss < self.best:
            self.best, self.waited = loss, 0
            return
        self.waited += 1
        if self.waited > patience:
            self.waited, self.lowered = 0, self.lowered + 1
