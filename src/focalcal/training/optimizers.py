"""The optimiser of a recipe, with the parameters that weight decay spares in a group of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from focalcal.training.recipe_parts import Optimizer

_KINDS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
# As `transformers` names them in ViT and Swin.
_POSITIONS = ("position_embeddings", "cls_token", "relative_position_bias_table")


def build_optimizer(settings: Optimizer, network: nn.Module) -> torch.optim.Optimizer:
    """Two groups at most, decayed and spared, each in the order of `network.named_parameters()`; frozen ones in none.

    torch's fused kernels are used where there are: a step of a small network is a fifth as long with them.
    """
    spared = set(undecayed_names(network, settings.undecayed))
    trained = [(name, one) for name, one in network.named_parameters() if one.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [one for name, one in trained if name not in spared], "weight_decay": settings.weight_decay},
        {"params": [one for name, one in trained if name in spared], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    options: dict[str, Any] = {"lr": settings.lr}
    if settings.name == "sgd":
        options |= {"momentum": settings.momentum, "nesterov": settings.nesterov}
    else:
        options |= {"betas": settings.betas}
    options["fused"] = all(one.device.type in ("cpu", "cuda") for _, one in trained)
    return _KINDS[settings.name](groups, **options)


def undecayed_names(network: nn.Module, kinds: tuple[str, ...]) -> Iterator[str]:
    """The names of the parameters of these kinds: "bias", "norm", "position", as `Optimizer` describes them."""
    for prefix, module in network.named_modules():
        for name, _ in module.named_parameters(recurse=False):
            kind = (
                ("norm" in kinds and isinstance(module, _NORMS))
                or ("bias" in kinds and name == "bias")
                or ("position" in kinds and name in _POSITIONS)
            )
            if kind:
                yield f"{prefix}.{name}" if prefix else name
