"""Published weights of CIFAR-10 ResNets, from a NumPy archive.

The networks are Yerlan Idelbayev's (akamaster/pytorch_resnet_cifar10): option-A shortcuts, trained on all 50,000
training images with ImageNet's normalisation. Test errors: 8.27, 7.37, 6.90 and 6.61 % for 20, 32, 44 and 56 layers.
"""

from __future__ import annotations

import zlib
from os import PathLike
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
import torch

from focalcal.core.arrays import one_of
from focalcal.models.resnet import ResNet, basic_resnet

if TYPE_CHECKING:
    from torch import Tensor

DEPTHS = {"resnet20": 20, "resnet32": 32, "resnet44": 44, "resnet56": 56}


class PublishedWeightsError(ValueError):
    """The file does not hold the weights of the network."""


def load_published_resnet(path: str | PathLike[str], name: str) -> ResNet:
    """The network `name` ("resnet20", "resnet32", "resnet44", "resnet56") for 10 classes, in evaluation mode.

    `path` is an .npz archive whose arrays are called NAME/KEY, as in "resnet20/layer1.0.conv1.weight"; the arrays of
    other networks are left alone, and nothing is unpickled. Every key must be there, and no other, in its shape.
    Images (N, 3, 32, 32) in [0, 1] want the normalisation `focalcal.models.IMAGENET`.
    """
    one_of("name", name, DEPTHS)
    network = basic_resnet(DEPTHS[name], 10, shortcut="pad")
    stored = _arrays(path, f"{name}/")
    # Batch norm's count of batches is bookkeeping that no output depends on, and the archive leaves it out.
    expected = {key: value for key, value in network.state_dict().items() if not key.endswith("num_batches_tracked")}
    names = {_published_key(key): key for key in expected}
    _refuse_other_keys(path, name, set(stored), set(names))
    state = {ours: _tensor(path, theirs, stored[theirs], expected[ours]) for theirs, ours in names.items()}
    network.load_state_dict(state, strict=False)  # strictly checked above, but for the counts
    return network.eval()


def _published_key(key: str) -> str:
    return key.removeprefix("features.")


def _arrays(path: str | PathLike[str], prefix: str) -> dict[str, np.ndarray]:
    with open(path, "rb") as file:  # opened here, since NumPy forgets to close what it cannot read
        try:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise PublishedWeightsError(f"{path} holds a single array; give the .npz archive of weights")
            found = {key.removeprefix(prefix): archive[key] for key in archive.files if key.startswith(prefix)}
        except PublishedWeightsError:
            raise
        except (BadZipFile, EOFError, zlib.error, ValueError) as error:
            raise PublishedWeightsError(
                f"{path} must be an .npz archive of plain arrays; it is damaged, holds Python objects or is "
                f"another file ({error})"
            ) from error
    if not found:
        others = sorted({key.partition("/")[0] for key in archive.files})
        raise PublishedWeightsError(
            f"{path} has no array that begins with {prefix!r}, only with {', '.join(others[:5]) or 'nothing'}; "
            "give the archive of weights, whose arrays are called NAME/KEY"
        )
    return found


def _refuse_other_keys(path: str | PathLike[str], name: str, stored: set[str], expected: set[str]) -> None:
    for keys, what in ((expected - stored, "lacks"), (stored - expected, "has more than")):
        if keys:
            shown = ", ".join(sorted(keys)[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
            raise PublishedWeightsError(f"{path} {what} the arrays of {name} with option-A shortcuts: {shown}")


def _tensor(path: str | PathLike[str], key: str, array: np.ndarray, like: Tensor) -> Tensor:
    if array.shape != tuple(like.shape) or array.dtype.kind != "f":
        raise PublishedWeightsError(
            f"{path}: {key} must be floating point of shape {tuple(like.shape)}, got {array.dtype} {array.shape}"
        )
    if not np.isfinite(array).all():
        raise PublishedWeightsError(f"{path}: {key} must be finite, got NaN or infinity; the file is damaged")
    return torch.from_numpy(array.astype(np.float32))
