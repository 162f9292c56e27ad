"""The state of a training run after an epoch, and which run it is, in one file that is whole or not there.

There is no state of a random generator in it: order, augmentation and dropout of an epoch follow from the seed and
the epoch's number. The file holds tensors and plain values, and is read with `weights_only=True`.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from focalcal.core.atomic import atomic_file
from focalcal.lab.data import DataSet, Examples, fingerprint
from focalcal.lab.training.recipe import Optimizer, Recipe

FORMAT = 2
_SPARE_BYTES = 1 << 20  # for logs, names and the file's own tables
_SAMPLED = 1024  # examples of a split whose inputs are looked at: all of a large set's would take minutes


class CheckpointError(ValueError):
    """A checkpoint that cannot be continued from: damaged, of another run, or of another version."""


def check_disk_space(folder: Path, network: nn.Module, optimizer: Optimizer, networks: int) -> None:
    """Raise OSError if the disk has no room for a checkpoint of so many networks beside the one that it replaces."""
    remembered = (1 if optimizer.momentum else 0) if optimizer.name == "sgd" else 2  # numbers of a trained parameter
    trained = sum(weight.nbytes for weight in network.parameters() if weight.requires_grad)
    size = networks * (sum(tensor.nbytes for tensor in network.state_dict().values()) + remembered * trained)
    wanted, free = 2 * size + _SPARE_BYTES, shutil.disk_usage(folder).free
    if free < wanted:
        raise OSError(
            errno.ENOSPC,
            f"{folder} must have room for two checkpoints, {wanted:,} bytes, got {free:,} free; "
            "free some space, or name a folder on another disk",
        )


def save_checkpoint(path: Path, state: Mapping[str, Any], identity: Mapping[str, str]) -> None:
    """Write `state`, and the identity of the run that it belongs to."""
    with atomic_file(path) as handle:
        torch.save({"format": FORMAT, "identity": dict(identity), **state}, handle)


def load_checkpoint(path: Path, identity: Mapping[str, str]) -> dict[str, Any] | None:
    """The state, None if there is no file; a file that is damaged or of another run raises and is left alone.

    A damaged file does not mean "start again": that would silently throw away work, and overwrite what could be looked
    at. Files are written whole, so damage means a fault of the disk, or an edit.
    """
    if not path.exists():
        return None
    try:
        state: Any = torch.load(path, map_location="cpu", weights_only=True)
        version, stored = state["format"], state["identity"]
    except Exception as error:  # whatever unpacking and unpickling of damaged bytes raises
        raise CheckpointError(
            f"{path} must be a checkpoint, got a damaged or foreign file ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no message'}); delete it to start again"
        ) from error
    if version != FORMAT:
        raise CheckpointError(f"{path} must be of format {FORMAT}, got {version!r}; delete it to start again")
    if differing := [name for name, value in identity.items() if stored.get(name) != value]:
        raise CheckpointError(
            f"{path} must be a checkpoint of this run, got one with another {', '.join(differing)} "
            f"({_difference(differing[0], stored, identity)}); choose another folder, or delete it to start again"
        )
    return dict(state)


def _difference(name: str, stored: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """Where the two texts part, a few words of each."""
    theirs, ours = str(stored.get(name)), wanted[name]
    at = next((i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), min(len(theirs), len(ours)))
    start = max(0, at - 30)
    return f"there {theirs[start : at + 30]!r}, here {ours[start : at + 30]!r}"


def run_identity(
    recipe: Recipe, data: DataSet, loss: nn.Module, seed: int, model: nn.Module | None = None
) -> dict[str, str]:
    """The recipe's settings, the data, the loss before training, the seed and a network that was handed over, as text.

    Of the data: every label and id, and of each split the inputs of 1,024 examples, evenly spaced.
    """
    splits = {name: _digest(examples) for name, examples in data.splits.items() if len(examples)}
    return {
        "recipe": json.dumps(recipe.as_dict(), sort_keys=True),
        "data": json.dumps({"name": data.name, "classes": len(data.classes), **splits}, sort_keys=True),
        "loss": module_identity(loss),
        "seed": str(seed),
        **({} if model is None else {"model": hashlib.sha256(module_identity(model).encode()).hexdigest()}),
    }


def module_identity(whole: nn.Module) -> str:
    """Classes, settings and state of a module; those of equal ones are equal."""
    parts = {
        name: {
            "class": f"{type(module).__module__}.{type(module).__qualname__}",
            "settings": {key: _describe(value) for key, value in sorted(_settings(module).items())},
        }
        for name, module in whole.named_modules()
    }
    state = {name: _describe(value) for name, value in whole.state_dict().items()}
    return json.dumps({"parts": parts, "state": state}, sort_keys=True)


def _settings(module: nn.Module) -> dict[str, Any]:
    """What the module's class has added to every module's own attributes, but for other names of its buffers."""
    buffers = [id(buffer) for buffer in module.buffers(recurse=False)]
    usual = vars(nn.Module())
    return {
        name: value
        for name, value in vars(module).items()
        if name not in usual and not (isinstance(value, tuple) and any(id(item) in buffers for item in value))
    }


def _describe(value: Any) -> Any:
    if isinstance(value, Tensor):
        array = np.ascontiguousarray(value.detach().cpu().double().numpy())
        return f"{tuple(value.shape)} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"
    if isinstance(value, list | tuple):
        return [_describe(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return type(value).__qualname__


def _digest(examples: Examples) -> str:
    sample = np.arange(0, len(examples), max(1, len(examples) // _SAMPLED))
    digest = hashlib.sha256(fingerprint(examples.take(sample)).encode())
    digest.update(str(examples.inputs.shape).encode())
    digest.update(np.ascontiguousarray(examples.labels).tobytes())
    digest.update("\n".join(map(str, examples.ids.tolist())).encode())
    return digest.hexdigest()[:32]
