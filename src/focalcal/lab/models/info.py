"""What a network expects and where its features are, for whoever feeds it or looks inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Normalisation:
    """Images in [0, 1] become (image - mean) / std, channel by channel.

    Args:
        mean, std: of each channel.

    >>> Normalisation(mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.2)).mean
    (0.5, 0.5, 0.5)
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


IMAGENET = Normalisation(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
"""Means and deviations of ImageNet's channels."""
PLUS_MINUS_ONE = Normalisation(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
"""Pixels from -1 to 1."""


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """One entry of MODELS, seen from outside.

    Args:
        inputs: what a batch holds: images (N, C, H, W), token ids (N, L), feature vectors (N, D), or any.
        shape: one example's, as the defaults and the reference have it; None where an option decides it.
        feature_layer: names the module, for `get_submodule`, whose output a saliency map such as Grad-CAM weighs;
            None where there is none.
        feature_layout: how to read that output: `maps` (N, C, h, w), `patches` (N, h * w, C), or
            `class_and_patches` (N, 1 + h * w, C).
        normalisation: of networks that published weights come with; elsewhere the data set decides.
        multilabel: whether an example has several labels.

    >>> from focalcal.lab.models import model_info
    >>> model_info("resnet50").inputs
    'images'
    """

    inputs: Literal["images", "tokens", "features", "any"]
    shape: tuple[int, ...] | None
    feature_layer: str | None
    feature_layout: Literal["maps", "patches", "class_and_patches"] | None = "maps"
    normalisation: Normalisation | None = None
    multilabel: bool = False


UNKNOWN = ModelInfo(inputs="any", shape=None, feature_layer=None, feature_layout=None)
