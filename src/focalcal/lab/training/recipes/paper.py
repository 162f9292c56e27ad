"""Every row of the paper's tables: images, texts, transformers and chest X-rays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from focalcal.lab.models import IMAGENET, PLUS_MINUS_ONE
from focalcal.lab.training.recipe import Optimizer, Recipe, Schedule, Step

CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
_ALL_TRAINING = {"validation": 0}
_FLIP = Step(name="RandomFlip", options={"flip": 0.5})
_ADAM = Optimizer(name="adam", lr=1e-3, betas=(0.9, 0.999))


def _cifar(data_set: str, classes: int, model: str) -> Recipe:
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
        mean=CIFAR_MEAN,
        std=CIFAR_STD,
    )


def _common_split(whole: Recipe) -> Recipe:
    """45,000 / 5,000 / 10,000, for the comparison with AdaFocal, which needs validation examples."""
    return replace(whole, data_options={"validation": 5000})


def _text_cnn(data_set: str, classes: int, epochs: int, **data_options: Any) -> Recipe:
    return Recipe(
        data_set=data_set,
        data_options={"num_words": 20_000, **data_options},
        classes=classes,
        model="gp_cnn",
        model_options={"train_embedding": False, "dropout": 0.3},
        word_vectors="glove.6B.100d",
        optimizer=_ADAM,
        epochs=epochs,
        batch_size=128,
        drop_last=True,
    )


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
    )


def _from_scratch(model: str, drop_path: float) -> Recipe:
    tuned = _fine_tuned(model, "none")
    rand_augment = {"magnitude": 9, "spread": 0.5, "layers": 2, "probability": 0.5}
    return replace(
        tuned,
        model_options={"image_size": 224, "drop_path": drop_path},
        initial_weights=None,
        optimizer=replace(tuned.optimizer, lr=1.25e-4),  # 5e-4 * batch / 512
        schedule=Schedule(kind="cosine", warmup=20),
        epochs=300,
        augmentation=(*tuned.augmentation, Step(name="RandAugment", options=rand_augment)),
        mean=CIFAR_MEAN,
        std=CIFAR_STD,
        after_normalisation=(Step(name="RandomErasing", options={"probability": 0.25}),),
    )


_CIFAR10_RESNET50 = _cifar("cifar10", 10, "resnet50")
_CIFAR100_RESNET50 = _cifar("cifar100", 100, "resnet50")
_CIFAR100_RESNET110 = _cifar("cifar100", 100, "resnet110")
_TINY_IMAGENET = replace(
    _cifar("tiny_imagenet", 200, "resnet50_tiny"),
    schedule=Schedule(kind="milestones", milestones=(40, 60), factor=0.1),
    epochs=100,
    mean=IMAGENET.mean,
    std=IMAGENET.std,
)
_CHEXNET = Recipe(
    data_set="chestxray14",
    data_options={"size": 256, "seed": 1},
    classes=14,
    model="chexnet",
    initial_weights="timm/densenet121.tv_in1k",
    optimizer=replace(_ADAM, lr=1e-4, weight_decay=1e-5),
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
)

PAPER: dict[str, Recipe] = {
    "cifar10_resnet50": _CIFAR10_RESNET50,
    "cifar10_resnet110": _cifar("cifar10", 10, "resnet110"),
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
    "newsgroups_gp_cnn": _text_cnn("newsgroups_19997", 20, epochs=50, cut_header=True, length=1000),
    "ag_news_gp_cnn": _text_cnn("ag_news", 4, epochs=20, length=128, validation=0),
    "finsen_gp_cnn": _text_cnn("finsen", 12, epochs=20, length=256, strip_tags=False, validation=0),
    "cifar100_deit_small": _fine_tuned("deit_small", "timm/deit_small_patch16_224.fb_in1k"),
    "cifar100_vit_small": _fine_tuned("vit_small", "timm/vit_small_patch16_224.augreg_in21k_ft_in1k"),
    "cifar100_swin_tiny": _fine_tuned("swin_tiny", "timm/swin_tiny_patch4_window7_224.ms_in1k"),
    "cifar100_deit_small_scratch": _from_scratch("deit_small", drop_path=0.1),
    "cifar100_vit_small_scratch": _from_scratch("vit_small", drop_path=0.1),
    "cifar100_swin_tiny_scratch": _from_scratch("swin_tiny", drop_path=0.2),
    "chestxray14_chexnet": _CHEXNET,
}
