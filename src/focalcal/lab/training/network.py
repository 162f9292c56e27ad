"""The network of a recipe for a data set, with the weights that it starts from or has ended with."""

from __future__ import annotations

import math
import os
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from focalcal.lab.data import DataSet
from focalcal.lab.data.glove import glove_vectors
from focalcal.lab.data.source_files import VARIABLE, data_folder
from focalcal.lab.models import build_model, is_estimator, model_builder, model_info, model_options
from focalcal.lab.training.determinism import stream
from focalcal.lab.training.inputs import TrainingInputs
from focalcal.lab.training.recipe import Recipe

_WHITENED = 5_000  # images that a whitening is computed from, as in the code of airbench94


def build_network(recipe: Recipe, data: DataSet, *, seed: int, data_dir: Path | None = None) -> nn.Module:
    """The network that a recipe starts from. What is random in it comes from the stream (seed, "init") and from
    nothing else. A network with an option `whitening` is given the first 5,000 training images, normalised.

    Args:
        recipe: names the network and what it starts from; its `word_vectors` are in glove/NAME.txt of `data_dir`.
        data: the data set, of which it needs the vocabulary or the training images.
        seed: of the random weights.
        data_dir: where `initial_weights` may lie; None: where FOCALCAL_DATA points.

    Returns:
        In training mode, on the CPU.

    >>> from focalcal.lab.data import load_data
    >>> from focalcal.lab.training import recipe
    >>> network = build_network(recipe("digits_mlp_lite"), load_data("digits"), seed=0)
    >>> sum(parameter.numel() for parameter in network.parameters())
    301066
    """
    if len(data.classes) != recipe.classes:
        raise ValueError(f"classes must be {len(data.classes)} for {data.name}, got {recipe.classes} in the recipe")
    _check_inputs(recipe, data)
    start = _from_data(recipe, data)
    if recipe.word_vectors is not None:
        assert data.vocabulary is not None  # only networks for tokens take vectors
        start["embedding"] = torch.from_numpy(glove_vectors(_vectors_file(recipe, data_dir), data.vocabulary))
    if recipe.initial_weights is not None:
        start["pretrained"] = _initial_weights(recipe.initial_weights, data_dir)
    if "whitening" in model_options(recipe.model):
        images = TrainingInputs(data.train, recipe, torch.device("cpu"))
        start["whitening"] = images.evaluation_batch(slice(0, _WHITENED))
    return _build(recipe, seed, start).train()


def check_start(recipe: Recipe, data_dir: Path | None = None) -> None:
    """Refuse, before any data are read, what `build_network` would refuse after: weights or vectors that do not fit.

    Args:
        recipe: whose weights and vectors are looked for.
        data_dir: the folder of the data sets; None: where FOCALCAL_DATA points.

    Returns:
        Nothing.

    >>> from focalcal.lab.training import recipe
    >>> check_start(recipe("digits_mlp_lite"))  # it starts from random weights
    """
    if recipe.word_vectors is not None:
        _vectors_file(recipe, data_dir)
    if recipe.initial_weights is not None:
        _build(recipe, 0, {"pretrained": _initial_weights(recipe.initial_weights, data_dir)})


def trained_network(recipe: Recipe, weights: Path, data: DataSet) -> nn.Module:
    """The network with the final weights of a run; what it started from is not needed.

    Args:
        recipe: how it was trained.
        weights: the file of its weights.
        data: the data set, of which it needs the vocabulary.

    Returns:
        The network, in evaluation mode.

    >>> from tempfile import TemporaryDirectory
    >>> from focalcal.lab.data import load_data
    >>> from focalcal.lab.training import recipe
    >>> digits, small = load_data("digits"), recipe("digits_mlp_lite")
    >>> with TemporaryDirectory() as folder:
    ...     torch.save(build_network(small, digits, seed=0).state_dict(), Path(folder, "weights.pt"))
    ...     trained_network(small, Path(folder, "weights.pt"), digits).training
    False
    """
    state: dict[str, Tensor] = torch.load(weights, map_location="cpu", weights_only=True)
    start = _from_data(recipe, data)
    if recipe.word_vectors is not None:
        start["embedding"] = torch.zeros_like(state["embedding.weight"])
    network = _build(recipe, 0, start)
    network.load_state_dict(state)
    return network.eval()


def _build(recipe: Recipe, seed: int, start: dict[str, Any]) -> nn.Module:
    if "random_state" in model_options(recipe.model) and is_estimator(model_builder(recipe.model)):
        start = {"random_state": seed, **start}
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(stream(seed, "init").get_state())
        return build_model(recipe.model, classes=recipe.classes, **{**start, **dict(recipe.model_options)})


def _from_data(recipe: Recipe, data: DataSet) -> dict[str, Any]:
    """Options of the network that follow from the data, where the recipe does not give them."""
    known, sample = signature(model_builder(recipe.model)).parameters, data.train.inputs
    options: dict[str, Any] = {"categories": data.categories} if "categories" in known and data.categories else {}
    if "features" in known:
        options["features"] = math.prod(sample.shape[1:])
    if "channels" in known and sample.ndim == 4:
        options["channels"] = max(sample.shape[1], len(recipe.mean or ()))  # of a grey image three, if mean has three
    return options


def _check_inputs(recipe: Recipe, data: DataSet) -> None:
    builder = model_builder(recipe.model)
    if data.categories and not is_estimator(builder) and "categories" not in signature(builder).parameters:
        raise ValueError(
            f"{recipe.model} must be given numbers, and {data.name} has columns of categories; set "
            'data_options.encoding = "one_hot", or use tabular_mlp'
        )
    if model_info(recipe.model).inputs != "tokens":
        return
    if data.vocabulary is None:
        raise ValueError(f"{recipe.model} must be given texts, and {data.name} has no vocabulary; choose another model")
    rows = dict(recipe.model_options).get("vocabulary")
    if recipe.word_vectors is None and rows is not None and rows < len(data.vocabulary):
        raise ValueError(
            f"vocabulary must be at least {len(data.vocabulary)}, the words of {data.name}, got {rows}; "
            "raise it in model_options, or lower num_words in data_options"
        )


def _initial_weights(name: str, data_dir: Path | None) -> str:
    place = Path(data_dir or os.environ.get(VARIABLE, "")) / name
    if place.exists():
        return str(place)
    if "/" not in name and not Path(name).suffix and not Path(name).exists():  # neither a path nor a hub id
        raise FileNotFoundError(
            f"initial_weights must lie in {place}, which is not there; docs/guide/models.md says where they are from"
        )
    return name


def _vectors_file(recipe: Recipe, data_dir: Path | None) -> Path:
    path = data_folder(data_dir) / "glove" / f"{recipe.word_vectors}.txt"
    if not path.is_file():
        raise FileNotFoundError(f"word_vectors must lie in {path}, which is not there; run `focalcal data get glove`")
    return path
