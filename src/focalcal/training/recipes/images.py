"""Residual and dense networks on CIFAR-10, CIFAR-100 and Tiny-ImageNet."""

from __future__ import annotations

from dataclasses import replace

from focalcal.models import IMAGENET
from focalcal.training.recipe import Recipe
from focalcal.training.recipe_parts import Optimizer, Schedule, Step

CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
ALL_TRAINING = {"validation": 0}
FLIP = Step(name="RandomFlip", options={"flip": 0.5})

_IMAGE_SOURCES = {
    "data_set": "paper",
    "data_options": "judgement",
    "classes": "paper",
    "model": "paper",
    "initial_weights": "paper",  # none: from scratch
    "optimizer": "code",
    "optimizer.name": "paper",
    "optimizer.momentum": "paper",
    "optimizer.nesterov": "judgement",
    "schedule": "code",
    "schedule.kind": "paper",
    "epochs": "code",
    "batch_size": "code",
    "gradient_clip": "judgement",
    "augmentation": "code",
    "mean": "code",
    "std": "code",
    "fcl_gamma": "judgement",
    "fcl_lam": "judgement",
}
_POINT_STATED = {"fcl_gamma": "paper", "fcl_lam": "paper"}
_NETWORK_JUDGED = {"model": "judgement"}  # which of two networks of that name
_SPLIT_STATED = {"data_options": "paper"}


def _cifar(data_set: str, classes: int, model: str, sources: dict[str, str] | None = None) -> Recipe:
    return Recipe(
        data_set=data_set,
        data_options=ALL_TRAINING,
        classes=classes,
        model=model,
        optimizer=Optimizer(name="sgd", lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=Schedule(kind="milestones", milestones=(150, 250), factor=0.1),
        epochs=350,
        batch_size=128,
        augmentation=(Step(name="PadCropFlip", options={"pad": 4, "flip": 0.5}),),
        mean=CIFAR_MEAN,
        std=CIFAR_STD,
        fcl_gamma=4,
        fcl_lam=1.5,
        sources={**_IMAGE_SOURCES, **(sources or {})},
    )


def _common_split(whole: Recipe) -> Recipe:
    """45,000 / 5,000 / 10,000, for the comparison with AdaFocal, which needs validation examples."""
    return replace(whole, data_options={"validation": 5000}, sources={**dict(whole.sources), **_SPLIT_STATED})


_TINY_IMAGENET = replace(
    _cifar("tiny_imagenet", 200, "resnet50_tiny"),
    schedule=Schedule(kind="milestones", milestones=(40, 60), factor=0.1),
    epochs=100,
    mean=IMAGENET.mean,
    std=IMAGENET.std,
    sources={**_IMAGE_SOURCES, **_NETWORK_JUDGED, "batch_size": "judgement"},
)

_CIFAR10_RESNET50 = _cifar("cifar10", 10, "resnet50", _POINT_STATED)
_CIFAR100_RESNET50 = _cifar("cifar100", 100, "resnet50")
_CIFAR100_RESNET110 = _cifar("cifar100", 100, "resnet110", {**_NETWORK_JUDGED, **_POINT_STATED})

IMAGES: dict[str, Recipe] = {
    "cifar10_resnet50": _CIFAR10_RESNET50,
    "cifar10_resnet110": _cifar("cifar10", 10, "resnet110", _NETWORK_JUDGED),
    "cifar10_wide_resnet26_10": _cifar("cifar10", 10, "wide_resnet26_10"),
    "cifar10_densenet121": _cifar("cifar10", 10, "densenet121"),
    "cifar100_resnet50": _CIFAR100_RESNET50,
    "cifar100_resnet110": _CIFAR100_RESNET110,
    "cifar100_wide_resnet26_10": _cifar("cifar100", 100, "wide_resnet26_10"),
    "cifar100_densenet121": _cifar("cifar100", 100, "densenet121"),
    "tiny_imagenet_resnet50": _TINY_IMAGENET,
    "cifar10_resnet50_45k": _common_split(_CIFAR10_RESNET50),
    "cifar100_resnet50_45k": _common_split(_CIFAR100_RESNET50),
    "cifar100_resnet110_45k": _common_split(_CIFAR100_RESNET110),
}
