"""The state of a training run after an epoch, in one file that is whole or not there.

There is no state of a random generator in it: order, augmentation and dropout of an epoch follow from the seed and
the epoch's number. The file holds tensors and plain values, and is read with `weights_only=True`.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from focalcal.core.atomic import atomic_file
from focalcal.training.recipe_parts import Optimizer

FORMAT = 1
_SPARE_BYTES = 1 << 20  # for logs, names and the file's own tables


class CheckpointError(ValueError):
    """A checkpoint that cannot be continued from: damaged, of another run, or of another version."""


def checkpoint_bytes(network: nn.Module, optimizer: Optimizer) -> int:
    """About how large a checkpoint will be: the network, and what the optimiser remembers of each trained parameter."""
    remembered = (1 if optimizer.momentum else 0) if optimizer.name == "sgd" else 2
    trained: int = sum(one.nbytes for one in network.parameters() if one.requires_grad)
    kept: int = sum(one.nbytes for one in network.state_dict().values())
    return kept + remembered * trained


def check_room(folder: Path, one_checkpoint: int) -> None:
    """Raise OSError if the folder's disk has no room for a checkpoint beside the one that it replaces."""
    wanted, free = 2 * one_checkpoint + _SPARE_BYTES, shutil.disk_usage(folder).free
    if free < wanted:
        raise OSError(
            errno.ENOSPC,
            f"{folder} must have room for two checkpoints, {wanted:,} bytes, got {free:,} free; "
            "free some space, or name a folder on another disk",
        )


def save_checkpoint(path: Path, state: Mapping[str, Any], identity: Mapping[str, str]) -> None:
    """Write `state`, and of which run it is."""
    with atomic_file(path) as handle:
        torch.save({"format": FORMAT, "identity": dict(identity), **state}, handle)


def load_checkpoint(path: Path, identity: Mapping[str, str]) -> dict[str, Any] | None:
    """The state, None if there is no file; a file that is damaged or of another run raises and is left alone.

    A damaged file does not mean "start again": that would silently throw away work, and overwrite what could be looked
    at. Files are written whole, so damage means that the disk, or somebody, did something.
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
