"""DeiT-S, ViT-S/16 and Swin-T on CIFAR-100, fine-tuned and from scratch."""

from __future__ import annotations

from dataclasses import replace

from focalcal.models import IMAGENET, PLUS_MINUS_ONE
from focalcal.training.recipe import Recipe
from focalcal.training.recipe_parts import Optimizer, Schedule, Step
from focalcal.training.recipes.images import ALL_TRAINING, CIFAR_MEAN, CIFAR_STD, FLIP

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


def _fine_tuned(model: str, weights: str) -> Recipe:
    statistics = PLUS_MINUS_ONE if model == "vit_small" else IMAGENET
    return Recipe(
        data_set="cifar100",
        data_options=ALL_TRAINING,
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
            FLIP,
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


TRANSFORMERS: dict[str, Recipe] = {
    "cifar100_deit_small": _fine_tuned("deit_small", "timm/deit_small_patch16_224.fb_in1k"),
    "cifar100_vit_small": _fine_tuned("vit_small", "timm/vit_small_patch16_224.augreg_in21k_ft_in1k"),
    "cifar100_swin_tiny": _fine_tuned("swin_tiny", "timm/swin_tiny_patch4_window7_224.ms_in1k"),
    "cifar100_deit_small_scratch": _from_scratch("deit_small", drop_path=0.1),
    "cifar100_vit_small_scratch": _from_scratch("vit_small", drop_path=0.1),
    "cifar100_swin_tiny_scratch": _from_scratch("swin_tiny", drop_path=0.2),
}
