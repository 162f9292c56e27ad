"""Networks by name: images, tokens or features in, logits (N, classes) out. None of them knows a data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

from torch import nn

from focalcal.core.plugins import resolve
from focalcal.lab.models.airbench import Airbench94
from focalcal.lab.models.averaging_network import DeepAveragingNetwork
from focalcal.lab.models.densenet import DenseNet121, chexnet, densenet121
from focalcal.lab.models.efficientnet import EfficientNetLite0
from focalcal.lab.models.info import IMAGENET, PLUS_MINUS_ONE, UNKNOWN, ModelInfo, Normalisation
from focalcal.lab.models.resnet import ResNet, basic_resnet, load_published_resnet, resnet50, wide_resnet26_10
from focalcal.lab.models.small_networks import MLP, SmallCNN
from focalcal.lab.models.tabular import EstimatorNetwork, TabularMLP, is_estimator
from focalcal.lab.models.text_cnn import GlobalPoolingCNN
from focalcal.lab.models.text_transformer import TextTransformer
from focalcal.lab.models.vision_transformers import SwinTransformer, VisionTransformer
from focalcal.lab.models.weight_files import PublishedWeightsError

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
    "airbench94": Airbench94,
    "efficientnet_lite0": EfficientNetLite0,
    "gp_cnn": GlobalPoolingCNN,
    "dan": DeepAveragingNetwork,
    "minilm": TextTransformer,
    "mlp": MLP,
    "tabular_mlp": TabularMLP,
    "small_cnn": SmallCNN,
    "vit_small": VisionTransformer,
    "deit_small": VisionTransformer,
    "swin_tiny": SwinTransformer,
}
"""Every network's class or function by its name."""

_CIFAR = ModelInfo(inputs="images", shape=(3, 32, 32), feature_layer="features")
_VIT = ModelInfo(
    inputs="images",
    shape=(3, 224, 224),
    # Only the class token reaches the logits, so the last maps with a gradient enter the last block's attention.
    feature_layer="network.vit.layers.11.layernorm_before",
    feature_layout="class_and_patches",
    normalisation=IMAGENET,
)

MODEL_INFO: dict[str, ModelInfo] = {
    **dict.fromkeys(("resnet8", "resnet20", "resnet32", "resnet44", "resnet56", "resnet110", "resnet50"), _CIFAR),
    "resnet50_tiny": replace(_CIFAR, shape=(3, 64, 64)),
    "wide_resnet26_10": _CIFAR,
    "densenet121": _CIFAR,
    "chexnet": replace(_CIFAR, shape=(3, 224, 224), normalisation=IMAGENET, multilabel=True),
    "airbench94": replace(_CIFAR, feature_layer=None, feature_layout=None),
    # (image - 127) / 128 to within half a level
    "efficientnet_lite0": replace(_CIFAR, shape=(3, 224, 224), feature_layer="head", normalisation=PLUS_MINUS_ONE),
    **dict.fromkeys(("gp_cnn", "dan"), replace(UNKNOWN, inputs="tokens", shape=(1000,))),
    "minilm": replace(UNKNOWN, inputs="tokens", shape=(128,)),
    **dict.fromkeys(("mlp", "tabular_mlp"), replace(UNKNOWN, inputs="features")),
    "small_cnn": _CIFAR,
    "vit_small": replace(_VIT, normalisation=PLUS_MINUS_ONE),
    "deit_small": _VIT,
    "swin_tiny": replace(_VIT, feature_layer="network.swin.layernorm", feature_layout="patches"),
}
"""What each network takes, and where its features are."""


def build_model(name: str, *, classes: int, **options: Any) -> nn.Module:
    """A fresh network; its weights follow from torch's seed.

    Args:
        name: as `model_builder` takes it.
        classes: how many logits.
        options: those of its builder; `model_options` lists them.

    Returns:
        The network, in training mode.

    >>> build_model("mlp", classes=3, features=4, hidden=())
    MLP(
      (hidden): Sequential()
      (linear): Linear(in_features=4, out_features=3, bias=True)
    )
    """
    builder, known = model_builder(name), model_options(name)
    if unknown := [option for option in options if option not in known]:
        raise TypeError(f"{name} has no option {', '.join(map(repr, unknown))}; it has {', '.join(known) or 'none'}")
    if is_estimator(builder):
        network: Any = EstimatorNetwork(builder(**options), classes)
    else:
        network = builder(classes=classes, **options)
    if not isinstance(network, nn.Module):
        raise TypeError(f"model {name!r} must give an nn.Module, got {type(network).__name__}; return the network")
    return network


def model_builder(name: str) -> Callable[..., nn.Module]:
    """What is called with `classes` and options to build a network.

    Args:
        name: of MODELS, or `package.module:Class`.

    Returns:
        The class or function.

    >>> model_builder("mlp").__name__
    'MLP'
    """
    return resolve("models", name, MODELS)


def model_options(name: str) -> list[str]:
    """The options of a network.

    Args:
        name: as `model_builder` takes it.

    Returns:
        What its builder takes besides `classes`.

    >>> model_options("mlp")
    ['features', 'hidden', 'dropout']
    """
    return [option for option in signature(model_builder(name)).parameters if option != "classes"]


def model_info(name: str) -> ModelInfo:
    """What a network expects.

    Args:
        name: of MODELS, or `package.module:Class`.

    Returns:
        Its `ModelInfo`; of code that is not the package's the attribute `info`, if it has one.

    >>> model_info("dan").inputs
    'tokens'
    """
    return MODEL_INFO[name] if name in MODEL_INFO else getattr(model_builder(name), "info", UNKNOWN)


__all__ = [
    "IMAGENET",
    "MLP",
    "MODELS",
    "MODEL_INFO",
    "PLUS_MINUS_ONE",
    "Airbench94",
    "DeepAveragingNetwork",
    "DenseNet121",
    "EfficientNetLite0",
    "EstimatorNetwork",
    "GlobalPoolingCNN",
    "ModelInfo",
    "Normalisation",
    "PublishedWeightsError",
    "ResNet",
    "SmallCNN",
    "SwinTransformer",
    "TabularMLP",
    "TextTransformer",
    "VisionTransformer",
    "basic_resnet",
    "build_model",
    "chexnet",
    "densenet121",
    "is_estimator",
    "load_published_resnet",
    "model_builder",
    "model_info",
    "model_options",
    "resnet50",
    "wide_resnet26_10",
]
