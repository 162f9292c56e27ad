"""CheXNet on ChestX-ray14."""

from __future__ import annotations

from focalcal.models import IMAGENET
from focalcal.training.recipe import Recipe
from focalcal.training.recipe_parts import Optimizer, Schedule, Step
from focalcal.training.recipes.images import FLIP

_CHEXNET = Recipe(
    data_set="chestxray14",
    data_options={"size": 256, "seed": 1},
    classes=14,
    model="chexnet",
    initial_weights="timm/densenet121.tv_in1k",
    optimizer=Optimizer(name="adam", lr=1e-4, betas=(0.9, 0.999), weight_decay=1e-5),
    schedule=Schedule(kind="plateau", factor=0.1, patience=5),
    epochs=100,
    batch_size=16,
    augmentation=(
        Step(name="RandomResizedCrop", options={"size": 224, "scale": (0.08, 1), "interpolation": "bilinear"}),
        FLIP,
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

CHEST_XRAYS: dict[str, Recipe] = {
    "chestxray14_chexnet": _CHEXNET,
}
