"""Published weights: found on disk or fetched from the hub, read without running code of theirs, put into a network."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from focalcal.core.extras import required

FILES = ("model.safetensors", "pytorch_model.bin")  # what a folder or a hub repository calls its weights
HEAD_PREFIX = "classifier."  # what the names of the last layer begin with
_SUFFIXES = (".safetensors", ".bin", ".pth", ".pt", ".npz")
_WRAPPERS = ("model", "state_dict")  # under which training scripts keep the weights


class PublishedWeightsError(ValueError):
    """The file does not hold the weights of the network."""


def weights_of(pretrained: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of `pretrained` by name: a file, a folder that has one of FILES, or a hub id "owner/name"."""
    return _read(_file(pretrained, *FILES))


def is_in_format_of_transformers(pretrained: str | os.PathLike[str]) -> bool:
    """Whether `pretrained` has a configuration that `transformers` understands; timm's names no `model_type`."""
    place = _on_disk(pretrained)
    if place is not None and not (place / "config.json").is_file():
        return False
    file = _file(pretrained, "config.json")
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PublishedWeightsError(f"{file} must be JSON, got {error}; fetch it again") from error
    return isinstance(settings, dict) and "model_type" in settings


def fill(network: nn.Module, weights: Mapping[str, Tensor], source: object) -> None:
    """Put the weights into the network, in place: all of them and no others, except for a head of another size.

    Such a head stays as it was drawn. Numbers are stored in the network's precision.
    """
    # Batch norm's count of batches is bookkeeping that no output depends on, and files leave it out.
    expected = {name: value for name, value in network.state_dict().items() if not name.endswith("num_batches_tracked")}
    given = {name: value for name, value in weights.items() if not name.endswith("num_batches_tracked")}
    head = [name for name in expected if name.startswith(HEAD_PREFIX)]
    if any(name not in given or given[name].shape != expected[name].shape for name in head):
        expected, given = _without_head(expected), _without_head(given)
    shared = sorted(expected.keys() & given.keys())
    faults = [
        *(f"lacks {name}" for name in sorted(expected.keys() - given.keys())),
        *(f"has {name} as well" for name in sorted(given.keys() - expected.keys())),
        *(
            f"has {name} of shape {tuple(given[name].shape)}, not {tuple(expected[name].shape)}"
            for name in shared
            if given[name].shape != expected[name].shape
        ),
        *(f"has {given[name].dtype} in {name}" for name in shared if not given[name].is_floating_point()),
        *(f"has NaN or infinity in {name}" for name in shared if not given[name].isfinite().all()),
    ]
    if faults:
        shown = "; ".join(faults[:3]) + (f"; and {len(faults) - 3} more" if len(faults) > 3 else "")
        raise PublishedWeightsError(
            f"the weights must be those of {type(network).__name__}, except for its head; {source} {shown}. "
            "Choose weights of this architecture and image size"
        )
    network.load_state_dict(given, strict=False)  # strictly checked above, but for the head and the counts


def _without_head(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in weights.items() if not name.startswith(HEAD_PREFIX)}


def _on_disk(pretrained: str | os.PathLike[str]) -> Path | None:
    """The file or folder; None for a hub id."""
    place = Path(pretrained).expanduser()
    if place.exists():
        return place
    text = os.fspath(pretrained)
    if isinstance(pretrained, str) and text.count("/") <= 1 and text[:1] not in "./~" and place.suffix not in _SUFFIXES:
        return None
    raise FileNotFoundError(f"pretrained must be a file or folder of weights or a hub id, and {text!r} does not exist")


def _file(pretrained: str | os.PathLike[str], *names: str) -> Path:
    place = _on_disk(pretrained)
    if place is None:
        return _from_hub(str(pretrained), *names)
    if place.is_file():
        return place
    for name in names:
        if (place / name).is_file():
            return place / name
    raise FileNotFoundError(f"pretrained must be a folder that has {' or '.join(names)}, got {place}")


def _from_hub(name: str, *files: str) -> Path:
    hub = required("huggingface_hub", purpose="Fetching weights from the hub", extra="transformers")
    for file in files:
        try:
            return Path(hub.hf_hub_download(name, file))
        except hub.errors.RemoteEntryNotFoundError:
            continue  # the repository is there and has no such file
        except (OSError, ValueError) as error:
            raise PublishedWeightsError(
                f"pretrained must be a file or folder of weights, or a hub id that can be reached; {name!r} is no path "
                f"here and the hub did not give {file} ({type(error).__name__}). Without a network: fetch it elsewhere "
                f"with `hf download {name} --local-dir FOLDER`, copy the folder and pass its path"
            ) from error
    raise PublishedWeightsError(f"pretrained must name a hub repository that has {' or '.join(files)}, got {name!r}")


def _read(path: Path) -> dict[str, Tensor]:
    load: Any = partial(torch.load, map_location="cpu", weights_only=True)  # admits tensors and plain values, no code
    if path.suffix == ".safetensors":
        load = required("safetensors.torch", purpose="A .safetensors file", extra="transformers").load_file
    if path.suffix == ".npz":
        load = _arrays
    try:
        content: Any = load(path)
    except Exception as error:  # a damaged file can make either reader raise nearly anything
        raise _refusal(
            path, f"it is damaged, another file, or holds more than tensors ({type(error).__name__})"
        ) from error
    for wrapper in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not content:
        raise _refusal(path, f"it holds {type(content).__name__}")
    if others := [name for name, value in content.items() if not isinstance(value, Tensor)]:
        raise _refusal(path, f"{others[0]!r} is no tensor")
    return dict(content)


def _arrays(path: Path) -> dict[str, Tensor]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:  # else NumPy keeps a bad file open
        return {name: torch.from_numpy(archive[name]) for name in archive.files}


def _refusal(path: Path, reason: str) -> PublishedWeightsError:
    return PublishedWeightsError(f"{path} must hold tensors by name: {reason}; fetch it again or choose another file")
