"""How many examples of which shape a recipe trains on, known without reading a file."""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

from focalcal.data import DATA_SETS
from focalcal.models import MODEL_INFO
from focalcal.results.protocol import Protocol
from focalcal.training.recipe import Recipe

_CORRUPTIONS = 15
_TEN_CROPS = 10


class Counts(NamedTuple):
    """Examples of each split; `shifted` is the sum over the shifts."""

    train: int
    val: int
    test: int
    shifted: int


# As published: training examples before anything is held out, those always held out, test examples; an image's shape.
_PUBLISHED: dict[str, tuple[int, int, int]] = {
    "digits": (1078, 359, 360),
    "teacher": (1078, 359, 360),
    "cifar10": (50_000, 0, 10_000),
    "cifar100": (50_000, 0, 10_000),
    "cifar10c": (0, 0, 10_000),
    "svhn": (73_257, 0, 26_032),
    "fashion_mnist": (60_000, 0, 10_000),
    "tiny_imagenet": (100_000, 0, 10_000),
    "newsgroups": (11_314, 0, 7532),
    "newsgroups_19997": (15_098, 900, 3999),
    "ag_news": (120_000, 0, 7600),
    "finsen": (13_203, 0, 2331),
    "chestxray14": (75_708, 10_816, 25_596),
}
_IMAGES = {
    "digits": (1, 8, 8),
    "teacher": (1, 8, 8),
    "fashion_mnist": (1, 28, 28),
    "tiny_imagenet": (3, 64, 64),
    "chestxray14": (1, 256, 256),
}
_COLOUR = (3, 32, 32)


def example_counts(recipe: Recipe, protocol: Protocol) -> Counts:
    """The examples of a complete data set, cut as the protocol says."""
    options = _options(recipe)
    if "sizes" in options:
        train, val, test = options["sizes"]
    else:
        train, val, test = _PUBLISHED[recipe.data_set]
        held_out = int(options.get("validation", 0))
        train, val = max(train - held_out, 0), val + held_out
    shifts = [_PUBLISHED[name][2] * _sets(name, protocol) for name in protocol.shifts if name in _PUBLISHED]
    if protocol.test_examples is not None:
        val, test = min(val, protocol.test_examples), min(test, protocol.test_examples)
        shifts = [protocol.test_examples * _sets(name, protocol) for name in protocol.shifts]
    if protocol.train_examples is not None:
        train = min(train, protocol.train_examples)
    return Counts(int(train), int(val), int(test), sum(shifts))


def input_shape(recipe: Recipe) -> tuple[int, ...]:
    """The shape of one example as the network sees it."""
    kind = MODEL_INFO[recipe.model].inputs
    if kind == "tokens":
        return (int(_options(recipe)["length"]),)
    if kind == "features":
        return (int(dict(recipe.model_options)["features"]),)
    channels, *sides = _IMAGES.get(recipe.data_set, _COLOUR)
    if recipe.image_size is not None:
        sides = [recipe.image_size, recipe.image_size]
    return (channels if recipe.mean is None else max(channels, len(recipe.mean)), *sides)


def crops(recipe: Recipe) -> int:
    """How often the network sees a test image."""
    return _TEN_CROPS if recipe.evaluation == "ten_crop" else 1


def _sets(shift: str, protocol: Protocol) -> int:
    return _CORRUPTIONS * len(protocol.severities) if shift == "cifar10c" else 1


def _options(recipe: Recipe) -> dict[str, Any]:
    """The loader's options, defaults included."""
    parameters = signature(DATA_SETS[recipe.data_set]).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
    return {**defaults, **dict(recipe.data_options)}
