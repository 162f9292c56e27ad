"""What decides a training run, in words: a checkpoint states it, and another run's is known by it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from torch import Tensor, nn

from focalcal.data import DataSet, Examples, fingerprint
from focalcal.training.recipe import Recipe

_SAMPLED = 1024  # examples of a split whose inputs are looked at: all of a large set's would take minutes


def identity(recipe: Recipe, data: DataSet, loss: nn.Module, seed: int) -> dict[str, str]:
    """The recipe's settings, the data, the loss before training and the seed, each as text.

    Of the data: every label and id, and of each split the inputs of 1,024 examples, evenly spaced.
    """
    splits = {name: _examples(examples) for name, examples in data.splits.items() if len(examples)}
    return {
        "recipe": json.dumps(recipe.settings(), sort_keys=True),
        "data": json.dumps({"name": data.name, "classes": len(data.classes), **splits}, sort_keys=True),
        "loss": loss_identity(loss),
        "seed": str(seed),
    }


def loss_identity(loss: nn.Module) -> str:
    """Classes, settings and state of a loss; those of equal losses are equal."""
    parts = {
        name: {
            "class": f"{type(module).__module__}.{type(module).__qualname__}",
            "settings": {key: _told(value) for key, value in sorted(_settings(module).items())},
        }
        for name, module in loss.named_modules()
    }
    state = {name: _told(value) for name, value in loss.state_dict().items()}
    return json.dumps({"parts": parts, "state": state}, sort_keys=True)


def _settings(module: nn.Module) -> dict[str, Any]:
    """What the module's class has added to every module's own attributes, but for other names of its buffers."""
    buffers = [id(one) for one in module.buffers(recurse=False)]
    usual = vars(nn.Module())
    return {
        name: value
        for name, value in vars(module).items()
        if name not in usual and not (isinstance(value, tuple) and any(id(one) in buffers for one in value))
    }


def _told(value: Any) -> Any:
    if isinstance(value, Tensor):
        array = np.ascontiguousarray(value.detach().cpu().double().numpy())
        return f"{tuple(value.shape)} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
    if isinstance(value, list | tuple):
        return [_told(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return type(value).__qualname__


def _examples(examples: Examples) -> str:
    digest = hashlib.sha256(fingerprint(examples.take(np.arange(0, len(examples), _step(examples)))).encode())
    digest.update(str(examples.inputs.shape).encode())
    digest.update(np.ascontiguousarray(examples.labels).tobytes())
    digest.update("\n".join(map(str, examples.ids.tolist())).encode())
    return digest.hexdigest()[:32]


def _step(examples: Examples) -> int:
    return max(1, len(examples) // _SAMPLED)
