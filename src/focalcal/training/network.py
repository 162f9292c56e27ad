"""The network of a recipe for a data set, with the weights that it starts from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from focalcal.core.rng import stream
from focalcal.data import DataSet
from focalcal.data.location import data_folder
from focalcal.data.text.glove import glove_vectors
from focalcal.models import MODEL_INFO, build_model
from focalcal.training.recipe import Recipe

TORCHVISION_DENSENET = "torchvision densenet121 IMAGENET1K_V1"
TORCHVISION_FILE = "densenet121-a639ec97.pth"


def build_network(recipe: Recipe, data: DataSet, *, seed: int, data_dir: Path | None = None) -> nn.Module:
    """In training mode, on the CPU. What is random in it comes from the stream (seed, "init") and from nothing else.

    `data_dir` is where `word_vectors` (in glove/NAME.txt) and torchvision's weights (in weights/) are looked for; by
    default what FOCALCAL_DATA names. The transformers' `initial_weights` are a folder or a hub id.
    """
    if len(data.classes) != recipe.classes:
        raise ValueError(f"classes must be {len(data.classes)} for {data.name}, got {recipe.classes} in the recipe")
    _check_tokens(recipe, data)
    options: dict[str, Any] = dict(recipe.model_options)
    if recipe.word_vectors is not None:
        options["embedding"] = _word_vectors(recipe.word_vectors, data, data_dir)
    from_hub = recipe.initial_weights is not None and recipe.initial_weights != TORCHVISION_DENSENET
    if from_hub:
        if recipe.model not in ("vit_small", "deit_small", "swin_tiny"):
            raise ValueError(f"initial_weights must be None for {recipe.model}, got {recipe.initial_weights!r}")
        options["pretrained"] = recipe.initial_weights
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(stream(seed, "init").get_state())
        network = build_model(recipe.model, classes=recipe.classes, **options)
    if recipe.initial_weights == TORCHVISION_DENSENET:
        _load_torchvision_densenet(network, data_folder(data_dir) / "weights" / TORCHVISION_FILE)
    return network.train()


def _check_tokens(recipe: Recipe, data: DataSet) -> None:
    if MODEL_INFO[recipe.model].inputs != "tokens":
        return
    if data.vocabulary is None:
        raise ValueError(f"{recipe.model} must be given texts, and {data.name} has no vocabulary; choose another model")
    rows = dict(recipe.model_options).get("vocabulary")
    if recipe.word_vectors is None and rows is not None and rows < len(data.vocabulary):
        raise ValueError(
            f"vocabulary must be at least {len(data.vocabulary)}, the words of {data.name}, got {rows}; "
            "raise it in model_options, or lower num_words in data_options"
        )


def _word_vectors(name: str, data: DataSet, data_dir: Path | None) -> Tensor:
    assert data.vocabulary is not None  # only networks for tokens take vectors
    path = data_folder(data_dir) / "glove" / f"{name}.txt"
    if not path.is_file():
        raise FileNotFoundError(f"word_vectors must lie in {path}, which is not there; run `focalcal data get glove`")
    return torch.from_numpy(glove_vectors(path, data.vocabulary))


def _load_torchvision_densenet(network: nn.Module, path: Path) -> None:
    """Everything but the head, which has other classes."""
    if not path.is_file():
        raise FileNotFoundError(
            f"initial_weights must lie in {path}, which is not there; put torchvision's file {TORCHVISION_FILE} there, "
            "or set initial_weights to None"
        )
    stored = torch.load(path, map_location="cpu", weights_only=True)
    # The file was written when a layer's parts were called norm.1, conv.1, ...
    state = {re.sub(r"(denselayer\d+\.(?:norm|conv))\.([12])\.", r"\1\2.", key): one for key, one in stored.items()}
    state = {key: one for key, one in state.items() if not key.startswith("classifier.")}
    expected = {key for key in network.state_dict() if not key.startswith("classifier.")}
    counts = {key for key in expected if key.endswith("num_batches_tracked")}  # older than these counters
    if (missing := expected - counts - set(state)) or (extra := set(state) - expected):
        raise ValueError(
            f"{path} must hold torchvision's DenseNet-121, got other parts: "
            f"{', '.join(sorted(missing or extra)[:3])}; fetch {TORCHVISION_FILE} again"
        )
    network.load_state_dict(state, strict=False)  # strictly checked above, but for the head and the counters
