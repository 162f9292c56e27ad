"""Networks by name: images, tokens or features in, logits (N, classes) out. None of them knows a data set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from torch import nn

from focalcal.core.plugins import resolve
from focalcal.models.densenet import DenseNet121, chexnet, densenet121
from focalcal.models.info import IMAGENET, NOT_KNOWN, PLUS_MINUS_ONE, ModelInfo, Normalisation
from focalcal.models.mlp import MLP
from focalcal.models.published import load_published_resnet
from focalcal.models.resnet import ResNet, basic_resnet, resnet50, wide_resnet26_10
from focalcal.models.small_cnn import SmallCNN
from focalcal.models.text_cnn import GlobalPoolingCNN
from focalcal.models.vision_transformers import SwinTransformer, VisionTransformer
from focalcal.models.weight_files import PublishedWeightsError

MODELS: dict[str, Callable[..., nn.Module]] = {
    "resnet8": partial(basic_resnet, 8),
    "resnet20": partial(basic_resnet, 20),
    "resnet32": partial(basic_resnet, 32),
    "resnet44": partial(basic_resnet, 44),
    "resnet56": partial(basic_resnet, 56),
    "resnet110": partial(basic_resnet, 110),
    "resnet50": resnet50,
    "resnet50_tiny": resnet50,
    "wide_resnet26_10": wide_resnet26_10,
    "densenet121": densenet121,
    "chexnet": chexnet,
    "gp_cnn": GlobalPoolingCNN,
    "mlp": MLP,
    "small_cnn": SmallCNN,
    "vit_small": VisionTransformer,
    "deit_small": VisionTransformer,
    "swin_tiny": SwinTransformer,
}

_CIFAR = ModelInfo(inputs="images", shape=(3, 32, 32), feature_layer="features")
# Only the class token reaches the logits, so the last maps with a gradient enter the last block's attention.
_LAST_PATCHES = "network.vit.layers.11.layernorm_before"

MODEL_INFO: dict[str, ModelInfo] = {
    "resnet8": _CIFAR,
    "resnet20": _CIFAR,
    "resnet32": _CIFAR,
    "resnet44": _CIFAR,
    "resnet56": _CIFAR,
    "resnet110": _CIFAR,
    "resnet50": _CIFAR,
    "resnet50_tiny": ModelInfo(inputs="images", shape=(3, 64, 64), feature_layer="features"),
    "wide_resnet26_10": _CIFAR,
    "densenet121": _CIFAR,
    "chexnet": ModelInfo(
        inputs="images", shape=(3, 224, 224), feature_layer="features", normalisation=IMAGENET, multilabel=True
    ),
    "gp_cnn": ModelInfo(inputs="tokens", shape=(1000,), feature_layer=None, feature_layout=None),
    "mlp": ModelInfo(inputs="features", shape=None, feature_layer=None, feature_layout=None),
    "small_cnn": _CIFAR,
    "vit_small": ModelInfo(
        inputs="images",
        shape=(3, 224, 224),
        feature_layer=_LAST_PATCHES,
        feature_layout="class_and_patches",
        normalisation=PLUS_MINUS_ONE,
    ),
    "deit_small": ModelInfo(
        inputs="images",
        shape=(3, 224, 224),
        feature_layer=_LAST_PATCHES,
        feature_layout="class_and_patches",
        normalisation=IMAGENET,
    ),
    "swin_tiny": ModelInfo(
        inputs="images",
        shape=(3, 224, 224),
        feature_layer="network.swin.layernorm",
        feature_layout="patches",
        normalisation=IMAGENET,
    ),
}


def build_model(name: str, *, classes: int, **options: Any) -> nn.Module:
    """A fresh network of that name; its weights follow from torch's seed. `options` are those of its builder.

    >>> build_model("mlp", classes=3, features=4, hidden=())
    MLP(
      (hidden): Sequential()
      (linear): Linear(in_features=4, out_features=3, bias=True)
    )
    """
    builder, known = model_builder(name), model_options(name)
    if unknown := [option for option in options if option not in known]:
        raise TypeError(f"{name} has no option {', '.join(map(repr, unknown))}; it has {', '.join(known) or 'none'}")
    network = builder(classes=classes, **options)
    if not isinstance(network, nn.Module):
        raise TypeError(f"model {name!r} must give an nn.Module, got {type(network).__name__}; return the network")
    return network


def model_builder(name: str) -> Callable[..., nn.Module]:
    """What is called with `classes` and options to build the network: of MODELS, or `package.module:Class`."""
    return resolve("models", name, MODELS)


def model_options(name: str) -> list[str]:
    """The options that the network's builder takes besides `classes`."""
    return [option for option in signature(model_builder(name)).parameters if option != "classes"]


def model_info(name: str) -> ModelInfo:
    """What the network expects; of code that is not the package's the attribute `info`, if it has one."""
    return MODEL_INFO[name] if name in MODEL_INFO else getattr(model_builder(name), "info", NOT_KNOWN)


__all__ = [
    "IMAGENET",
    "MLP",
    "MODELS",
    "MODEL_INFO",
    "PLUS_MINUS_ONE",
    "DenseNet121",
    "GlobalPoolingCNN",
    "ModelInfo",
    "Normalisation",
    "PublishedWeightsError",
    "ResNet",
    "SmallCNN",
    "SwinTransformer",
    "VisionTransformer",
    "basic_resnet",
    "build_model",
    "chexnet",
    "densenet121",
    "load_published_resnet",
    "model_builder",
    "model_info",
    "model_options",
    "resnet50",
    "wide_resnet26_10",
]
