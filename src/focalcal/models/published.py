"""Published weights of CIFAR-10 ResNets, from a NumPy archive.

The networks are Yerlan Idelbayev's (akamaster/pytorch_resnet_cifar10): option-A shortcuts, trained on all 50,000
training images with ImageNet's normalisation. Test errors: 8.27, 7.37, 6.90 and 6.61 % for 20, 32, 44 and 56 layers.
"""

from __future__ import annotations

import zlib
from os import PathLike
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from focalcal.core.checks import one_of
from focalcal.models.resnet import ResNet, basic_resnet
from focalcal.models.weight_files import PublishedWeightsError, fill

DEPTHS = {"resnet20": 20, "resnet32": 32, "resnet44": 44, "resnet56": 56}


def load_published_resnet(path: str | PathLike[str], name: str) -> ResNet:
    """The network `name` ("resnet20", "resnet32", "resnet44", "resnet56") for 10 classes, in evaluation mode.

    `path` is an .npz archive whose arrays are called NAME/KEY, as in "resnet20/layer1.0.conv1.weight"; the arrays of
    other networks are left alone, and nothing is unpickled. Every key must be there, and no other, in its shape.
    Images (N, 3, 32, 32) in [0, 1] want the normalisation `focalcal.models.IMAGENET`.
    """
    one_of("name", name, DEPTHS)
    network = basic_resnet(DEPTHS[name], 10, shortcut="pad")
    arrays = _arrays(path, f"{name}/")
    fill(network, {key if key.startswith("linear.") else f"features.{key}": arrays[key] for key in arrays}, path)
    return network.eval()


def _arrays(path: str | PathLike[str], prefix: str) -> dict[str, Tensor]:
    with open(path, "rb") as file:  # opened here, since NumPy forgets to close what it cannot read
        try:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise PublishedWeightsError(f"{path} holds a single array; give the .npz archive of weights")
            keys = [key for key in archive.files if key.startswith(prefix)]
            arrays = {key.removeprefix(prefix): torch.from_numpy(archive[key]) for key in keys}
        except PublishedWeightsError:
            raise
        except (BadZipFile, EOFError, zlib.error, TypeError, ValueError) as error:
            raise PublishedWeightsError(
                f"{path} must be an .npz archive of plain arrays; it is damaged, holds Python objects or is "
                f"another file ({error})"
            ) from error
    if not arrays:
        others = sorted({key.partition("/")[0] for key in archive.files})
        raise PublishedWeightsError(
            f"{path} has no array that begins with {prefix!r}, only with {', '.join(others[:5]) or 'nothing'}; "
            "give the archive of weights, whose arrays are called NAME/KEY"
        )
    return arrays
