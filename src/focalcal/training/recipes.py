"""The recipes by name: every row of the paper's tables, and small ones for a machine without a GPU.

Three kinds of source. "paper": Liang et al., "Focal Calibration Loss". "code": the published code of a reference that
the paper says it follows (Mukhoti et al. 2020 and what came after it; for X-rays a public CheXNet). "judgement": ours.
docs/guide/recipes.md gives the reasons.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from focalcal.models import IMAGENET, PLUS_MINUS_ONE
from focalcal.training.recipe import Recipe
from focalcal.training.recipe_parts import Optimizer, Schedule, Step

_CIFAR_MEAN, _CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
_ALL_TRAINING = {"validation": 0}

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


def _cifar(data_set: str, classes: int, model: str, sources: dict[str, str] | None = None) -> Recipe:
    return Recipe(
        data_set=data_set,
        data_options=_ALL_TRAINING,
        classes=classes,
        model=model,
        optimizer=Optimizer(name="sgd", lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=Schedule(kind="milestones", milestones=(150, 250), factor=0.1),
        epochs=350,
        batch_size=128,
        augmentation=(Step(name="PadCropFlip", options={"pad": 4, "flip": 0.5}),),
        mean=_CIFAR_MEAN,
        std=_CIFAR_STD,
        fcl_gamma=4,
        fcl_lam=1.5,
        sources={**_IMAGE_SOURCES, **(sources or {})},
    )


_TINY_IMAGENET = replace(
    _cifar("tiny_imagenet", 200, "resnet50_tiny"),
    schedule=Schedule(kind="milestones", milestones=(40, 60), factor=0.1),
    epochs=100,
    mean=IMAGENET.mean,
    std=IMAGENET.std,
    sources={**_IMAGE_SOURCES, **_NETWORK_JUDGED, "batch_size": "judgement"},
)

_TEXT_SOURCES = {
    "data_set": "paper",
    "data_options": "code",
    "classes": "paper",
    "model": "paper",
    "model_options": "code",
    "word_vectors": "code",
    "optimizer": "code",
    "optimizer.name": "paper",
    "optimizer.weight_decay": "judgement",
    "schedule": "judgement",
    "epochs": "code",
    "batch_size": "code",
    "drop_last": "code",
    "gradient_clip": "judgement",
    "fcl_gamma": "judgement",
    "fcl_lam": "judgement",
}
_CUT_JUDGED = {"data_options": "judgement", "epochs": "judgement"}


def _text(
    data_set: str, classes: int, data_options: dict[str, Any], epochs: int, sources: dict[str, str] | None = None
) -> Recipe:
    return Recipe(
        data_set=data_set,
        data_options={"num_words": 20_000, **data_options},
        classes=classes,
        model="gp_cnn",
        model_options={"train_embedding": False, "dropout": 0.3},
        word_vectors="glove.6B.100d",
        optimizer=Optimizer(name="adam", lr=1e-3, betas=(0.9, 0.999)),
        epochs=epochs,
        batch_size=128,
        drop_last=True,
        fcl_gamma=3,
        fcl_lam=4,
        sources={**_TEXT_SOURCES, **(sources or {})},
    )


_TRANSFORMER_SOURCES = {
    "data_set": "paper",
    "data_options": "judgement",
    "classes": "paper",
    "model": "paper",
    "model_options": "judgement",
    "initial_weights": "paper",
    "optimizer": "judgement",
    "optimizer.name": "paper",
    "schedule": "judgement",
    "schedule.kind": "paper",
    "epochs": "judgement",
    "batch_size": "judgement",
    "mixed_precision": "judgement",
    "gradient_clip": "judgement",
    "augmentation": "judgement",
    "mean": "code",
    "std": "code",
    "image_size": "paper",  # the native resolution
    "evaluation": "judgement",
    "fcl_gamma": "paper",
    "fcl_lam": "paper",
}
_FLIP = Step(name="RandomFlip", options={"flip": 0.5})


def _fine_tuned(model: str, weights: str) -> Recipe:
    statistics = PLUS_MINUS_ONE if model == "vit_small" else IMAGENET
    return Recipe(
        data_set="cifar100",
        data_options=_ALL_TRAINING,
        classes=100,
        model=model,
        model_options={"image_size": 224, "drop_path": 0.1},
        initial_weights=weights,
        optimizer=Optimizer(name="adamw", lr=5e-5, weight_decay=0.05, undecayed=("bias", "norm", "position")),
        schedule=Schedule(kind="cosine", warmup=1),
        epochs=20,
        batch_size=128,
        mixed_precision=True,
        augmentation=(
            Step(name="RandomResizedCrop", options={"size": 224, "scale": (0.8, 1), "interpolation": "bicubic"}),
            _FLIP,
        ),
        mean=statistics.mean,
        std=statistics.std,
        image_size=224,
        evaluation="resize",
        fcl_gamma=3,
        fcl_lam=1,
        sources=_TRANSFORMER_SOURCES,
    )


def _from_scratch(model: str, drop_path: float) -> Recipe:
    fine_tuned = _fine_tuned(model, "none")
    rand_augment = {"magnitude": 9, "spread": 0.5, "layers": 2, "probability": 0.5}
    return replace(
        fine_tuned,
        model_options={"image_size": 224, "drop_path": drop_path},
        initial_weights=None,
        optimizer=replace(fine_tuned.optimizer, lr=1.25e-4),  # 5e-4 * batch / 512
        schedule=Schedule(kind="cosine", warmup=20),
        epochs=300,
        augmentation=(*fine_tuned.augmentation, Step(name="RandAugment", options=rand_augment)),
        mean=_CIFAR_MEAN,
        std=_CIFAR_STD,
        after_normalisation=(Step(name="RandomErasing", options={"probability": 0.25}),),
        sources={
            **_TRANSFORMER_SOURCES,
            "schedule": "paper",
            "epochs": "paper",
            "after_normalisation": "judgement",
            "image_size": "judgement",
            "mean": "judgement",
            "std": "judgement",
            "fcl_gamma": "judgement",
            "fcl_lam": "judgement",
        },
    )


_CHEXNET = Recipe(
    data_set="chestxray14",
    data_options={"size": 256, "seed": 1},
    classes=14,
    model="chexnet",
    initial_weights="torchvision densenet121 IMAGENET1K_V1",
    optimizer=Optimizer(name="adam", lr=1e-4, betas=(0.9, 0.999), weight_decay=1e-5),
    schedule=Schedule(kind="plateau", factor=0.1, patience=5),
    epochs=100,
    batch_size=16,
    augmentation=(
        Step(name="RandomResizedCrop", options={"size": 224, "scale": (0.08, 1), "interpolation": "bilinear"}),
        _FLIP,
    ),
    mean=IMAGENET.mean,
    std=IMAGENET.std,
    image_size=224,
    evaluation="ten_crop",
    fcl_gamma=2,
    fcl_lam=2,
    sources={
        "data_set": "paper",
        "data_options": "judgement",
        "classes": "paper",
        "model": "paper",
        "initial_weights": "code",
        "optimizer": "code",
        "schedule": "code",
        "epochs": "code",
        "batch_size": "code",
        "gradient_clip": "judgement",
        "augmentation": "code",
        "mean": "code",
        "std": "code",
        "image_size": "code",
        "evaluation": "paper",
        "fcl_gamma": "judgement",
        "fcl_lam": "paper",
    },
)

_LITE_FIELDS = (
    "data_set",
    "data_options",
    "classes",
    "model",
    "model_options",
    "optimizer",
    "schedule",
    "epochs",
    "batch_size",
    "drop_last",
    "gradient_clip",
    "augmentation",
    "mean",
    "std",
    "fcl_gamma",
    "fcl_lam",
)


def _lite(data_set: str, classes: int, model: str, epochs: int, lr: float, **others: Any) -> Recipe:
    """Ours throughout: SGD and half a cosine."""
    usual: dict[str, Any] = {"batch_size": 128, "fcl_gamma": 3, "fcl_lam": 1}
    usual["optimizer"] = Optimizer(name="sgd", lr=lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    usual["schedule"] = Schedule(kind="cosine")
    usual["sources"] = dict.fromkeys(_LITE_FIELDS, "judgement")
    return Recipe(data_set=data_set, classes=classes, model=model, epochs=epochs, **{**usual, **others})


def _lite_text(data_set: str, classes: int, epochs: int, **data_options: Any) -> Recipe:
    """128 tokens and word vectors learnt with the rest, so that no file of vectors is needed."""
    return _lite(
        data_set,
        classes,
        "gp_cnn",
        epochs,
        lr=1e-3,
        data_options={"length": 128, "num_words": 20_000, **data_options},
        model_options={"vocabulary": 20_000, "dimension": 50, "dropout": 0.3},
        optimizer=Optimizer(name="adam", lr=1e-3, betas=(0.9, 0.999)),
        schedule=Schedule(kind="constant"),
        drop_last=True,
        fcl_lam=4,
    )


_DIGITS: dict[str, Any] = {"data_options": {"seed": 1}, "batch_size": 64, "mean": (0.3053,), "std": (0.3761,)}

RECIPES: dict[str, Recipe] = {
    "cifar10_resnet50": _cifar("cifar10", 10, "resnet50", _POINT_STATED),
    "cifar10_resnet110": _cifar("cifar10", 10, "resnet110", _NETWORK_JUDGED),
    "cifar10_wide_resnet26_10": _cifar("cifar10", 10, "wide_resnet26_10"),
    "cifar10_densenet121": _cifar("cifar10", 10, "densenet121"),
    "cifar100_resnet50": _cifar("cifar100", 100, "resnet50"),
    "cifar100_resnet110": _cifar("cifar100", 100, "resnet110", {**_NETWORK_JUDGED, **_POINT_STATED}),
    "cifar100_wide_resnet26_10": _cifar("cifar100", 100, "wide_resnet26_10"),
    "cifar100_densenet121": _cifar("cifar100", 100, "densenet121"),
    "tiny_imagenet_resnet50": _TINY_IMAGENET,
    "newsgroups_gp_cnn": _text("newsgroups_19997", 20, {"cut_header": True, "length": 1000}, 50),
    "ag_news_gp_cnn": _text("ag_news", 4, {"length": 128, "validation": 0}, 20, _CUT_JUDGED),
    "finsen_gp_cnn": _text("finsen", 12, {"length": 256, "strip_tags": False, "validation": 0}, 20, _CUT_JUDGED),
    "cifar100_deit_small": _fine_tuned("deit_small", "facebook/deit-small-patch16-224"),
    "cifar100_vit_small": _fine_tuned("vit_small", "WinKawaks/vit-small-patch16-224"),
    "cifar100_swin_tiny": _fine_tuned("swin_tiny", "microsoft/swin-tiny-patch4-window7-224"),
    "cifar100_deit_small_scratch": _from_scratch("deit_small", drop_path=0.1),
    "cifar100_vit_small_scratch": _from_scratch("vit_small", drop_path=0.1),
    "cifar100_swin_tiny_scratch": _from_scratch("swin_tiny", drop_path=0.2),
    "chestxray14_chexnet": _CHEXNET,
    "cifar10_resnet8_lite": _lite(
        "cifar10",
        10,
        "resnet8",
        epochs=10,
        lr=0.1,
        data_options={"validation": 5000},
        augmentation=(Step(name="PadCropFlip", options={"pad": 4, "flip": 0.5}),),
        mean=_CIFAR_MEAN,
        std=_CIFAR_STD,
        fcl_gamma=4,
        fcl_lam=1.5,
    ),
    "newsgroups_gp_cnn_lite": _lite_text("newsgroups_19997", 20, epochs=10, cut_header=True),
    "ag_news_gp_cnn_lite": _lite_text("ag_news", 4, epochs=3, validation=0),
    "finsen_gp_cnn_lite": _lite_text("finsen", 12, epochs=10, strip_tags=False, validation=0),
    "digits_mlp_lite": _lite(
        "digits", 10, "mlp", epochs=30, lr=0.05, model_options={"features": 64, "hidden": (256, 256)}, **_DIGITS
    ),
    "digits_small_cnn_lite": _lite(
        "digits", 10, "small_cnn", epochs=15, lr=0.05, model_options={"channels": 1, "width": 16}, **_DIGITS
    ),
    "fashion_mnist_small_cnn_lite": _lite(
        "fashion_mnist",
        10,
        "small_cnn",
        epochs=5,
        lr=0.05,
        data_options={"validation": 5000},
        model_options={"channels": 1, "width": 16},
        augmentation=(Step(name="PadCropFlip", options={"pad": 2, "flip": 0.5}),),
        mean=(0.2860,),
        std=(0.3530,),
    ),
}


def recipe(name: str) -> Recipe:
    """The recipe of that name.

    >>> recipe("cifar10_resnet50").schedule.milestones
    (150, 250)
    """
    if name not in RECIPES:
        raise ValueError(f"name must be one of {', '.join(map(repr, RECIPES))}, got {name!r}")
    return RECIPES[name]
