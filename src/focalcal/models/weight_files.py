"""Files of published weights: found on disk or fetched from the hub, and read without running what they contain."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from focalcal.core.extras import required
from focalcal.models.published import PublishedWeightsError

FILES = ("model.safetensors", "pytorch_model.bin")  # what a folder or a hub repository calls its weights
SUFFIXES = (".safetensors", ".bin", ".pth", ".pt")
WRAPPERS = ("model", "state_dict")  # under which training scripts keep the weights


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


def _on_disk(pretrained: str | os.PathLike[str]) -> Path | None:
    """The file or folder; None for a hub id."""
    place = Path(pretrained).expanduser()
    if place.exists():
        return place
    text = os.fspath(pretrained)
    if isinstance(pretrained, str) and text.count("/") <= 1 and text[:1] not in "./~" and place.suffix not in SUFFIXES:
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
    load = _safetensors().load_file if path.suffix == ".safetensors" else _unpickled
    try:
        found: Any = load(path)
    except Exception as error:  # a damaged file can make either reader raise nearly anything
        raise _refusal(
            path, f"it is damaged, another file, or holds more than tensors ({type(error).__name__})"
        ) from error
    for wrapper in WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(wrapper), Mapping):
            found = found[wrapper]
    if not isinstance(found, Mapping) or not found:
        raise _refusal(path, f"it holds {type(found).__name__}")
    if others := [name for name, value in found.items() if not isinstance(value, Tensor)]:
        raise _refusal(path, f"{others[0]!r} is no tensor")
    return dict(found)


def _unpickled(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)  # admits tensors and plain values, no code


def _refusal(path: Path, reason: str) -> PublishedWeightsError:
    return PublishedWeightsError(f"{path} must hold tensors by name: {reason}; fetch it again or choose another file")


def _safetensors() -> Any:
    return required("safetensors.torch", purpose="A .safetensors file", extra="transformers")
